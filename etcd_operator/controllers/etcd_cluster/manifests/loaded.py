"""Which CAs the etcd of a pod has loaded, as an annotation: it reads them when it starts, and never again.

The annotation is written when a process is about to start, and only once the pod is known to have these CAs,
or is to be created. If the process starts again by itself, it may load newer ones: then it is restarted once
more than necessary, and nothing is believed that is not so.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from etcd_operator.api.meta import Value
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import SIDES, Side
from etcd_operator.decoding import from_json
from etcd_operator.pki.description import Description


class LoadedCa(Value, frozen=True, kw_only=True):
    """A CA that a process has loaded."""

    key_id: str
    fingerprint: str
    since: int  # from when it is valid, in seconds since the epoch
    until: int  # until when, likewise

    def is_valid(self, now: datetime) -> bool:
        """Whether it is valid now."""
        return self.since <= now.timestamp() <= self.until


class _Loaded(Value, frozen=True, kw_only=True):
    peer: tuple[LoadedCa, ...] = ()
    client: tuple[LoadedCa, ...] = ()


def loaded_text(trusted: Mapping[Side, Iterable[Description]], former: str = "") -> str:
    """The annotation of a pod whose etcd will load these CAs. former: has those of sides that are missing."""
    peer, client = (
        tuple(map(_of, trusted[side])) if side in trusted else loaded_of(former, side) or () for side in SIDES
    )
    return msgspec.json.encode(_Loaded(peer=peer, client=client)).decode()


def _of(ca: Description) -> LoadedCa:
    since, until = (int(at.astimezone(UTC).timestamp()) for at in (ca.not_before, ca.not_after))
    return LoadedCa(key_id=ca.key_id, fingerprint=ca.fingerprint, since=since, until=until)


def loaded_of(text: str, side: Side) -> tuple[LoadedCa, ...] | None:
    """The CAs of one side that it names; None if it cannot be read."""
    try:
        found = from_json(text, _Loaded) if text else _Loaded()
    except msgspec.DecodeError:
        return None
    return (found.peer if side == "peer" else found.client) or None
