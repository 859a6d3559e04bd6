"""The IDs that etcd derives from names, before any member has started."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from etcd_operator.formats import hex_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A cluster of etcd. IDs are hexadecimal without 0x, as etcd's own tools print them."""

    cluster_id: str
    member_ids: Mapping[str, str]

    @property
    def voters(self) -> tuple[str, ...]:
        """All members, as `name=ID`."""
        return tuple(f"{name}={member_id}" for name, member_id in self.member_ids.items())


def identity(peer_urls: Mapping[str, str], token: str) -> Identity:
    """The cluster that members with these peer URLs and this token form.

    As etcd 3.4 to 3.7 compute it: the SHA-1 of URL and token is the ID of a member, that of all IDs in order
    the ID of the cluster, eight bytes of each. (The ID of a member that joins later depends on the time.)
    """
    numbers = {name: _number(f"{url}{token}".encode()) for name, url in peer_urls.items()}
    cluster = _number(b"".join(number.to_bytes(8, "big") for number in sorted(numbers.values())))
    member_ids = {name: hex_id(number) for name, number in numbers.items()}
    return Identity(cluster_id=hex_id(cluster), member_ids=member_ids)


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest()[:8], "big")
