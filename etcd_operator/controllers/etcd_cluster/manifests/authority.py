"""The CAs of one side of a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Record
from etcd_operator.pki.authority import KeyPair


@dataclass(frozen=True, kw_only=True)
class Authority:
    """The CAs of one side, with their keys in the order of the record."""

    record: Record
    pairs: tuple[KeyPair, ...] = field(repr=False)  # without keys, if cert-manager issues
    # of cert-manager, by file name; each with its chain
    leafs: Mapping[str, KeyPair] = field(default_factory=dict, repr=False)

    @property
    def is_issued_elsewhere(self) -> bool:
        """Whether cert-manager issues, and the operator has no key of a CA."""
        return bool(self.leafs)

    @cached_property
    def issuer(self) -> KeyPair:
        """The CA that signs."""
        by_id = zip(self.record.trusted, self.pairs, strict=True)
        return next(pair for ca, pair in by_id if ca.key_id == self.record.issuer)

    @cached_property
    def bundle(self) -> bytes:
        """What members and clients trust."""
        return b"".join(pair.certificate for pair in self.pairs)

    def is_after(self, key_id: str) -> bool:
        """Whether the CA of that key is the issuer, or the one that it replaces.

        Not the next one: a cluster whose members have that for an issuer has left this state behind.
        """
        ids = [ca.key_id for ca in self.record.trusted]
        return key_id in ids[: ids.index(self.record.issuer) + 1]
