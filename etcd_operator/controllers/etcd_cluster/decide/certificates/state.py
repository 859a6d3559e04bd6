"""What is recorded of one CA of a cluster, and what is observed of those that have its certificates."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol

from etcd_operator.api.tls import SecretKeys
from etcd_operator.pki.description import Description

Side = Literal["peer", "client"]

SIDES: tuple[Side, Side] = ("peer", "client")
"""Each CA of a cluster is for one."""


class Trusted(Protocol):
    """What matters of a CA that a process has loaded."""

    @property
    def key_id(self) -> str:
        """Which key it has."""

    @property
    def fingerprint(self) -> str:
        """Which certificate it is."""

    def is_valid(self, now: datetime) -> bool:
        """Whether it is valid now."""


class Phase(StrEnum):
    """How far the rotation of a CA is."""

    STABLE = "Stable"
    TRUSTING = "Trusting"  # every member loads the next CA; clients have time to do so
    REISSUING = "Reissuing"  # the next CA is the issuer; every leaf is replaced
    DROPPING = "Dropping"  # every leaf is of the issuer; clients have time to load theirs; the old CA goes


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedLeaf:
    """A leaf that cert-manager has issued. All members have the same one."""

    file: str  # its name in the Secrets of members; that of the operator itself is in none
    leaf: Description
    ca: Description  # to which its chain leads, maybe by way of others

    @property
    def serial(self) -> str:
        """Which leaf it is."""
        return self.leaf.serial


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is recorded of the CAs of one side, in one write together with the CAs and their keys.

    `trusted` is the bundle that is to be published: the certificates of the old CA, if one is being replaced,
    of the issuer, and of the next CA, in this order. The next CA is there long before it is needed.
    """

    phase: Phase = Phase.STABLE
    trusted: tuple[Description, ...]
    issuer: str  # the key ID of the CA that signs
    since: (
        datetime | None
    )  # since when clients can load what the next phase needs; None: it is not published yet
    request: str = ""  # the last rotation that was requested, as the user named it
    # what members are to have, if cert-manager issues it; the first one is that of the listener, and its CA
    # is the issuer. Without any, the operator signs
    leafs: tuple[IssuedLeaf, ...] = ()
    changed: datetime | None = None  # when `trusted` or `leafs` last became others, with cert-manager
    # of each CA that no leaf of cert-manager needs, since when that is so: by the ID of its key
    former: tuple[tuple[str, datetime], ...] = ()

    @property
    def next(self) -> Description | None:
        """The CA behind the issuer."""
        behind = self.trusted[self._place + 1 :]
        return behind[0] if behind else None

    @property
    def untried(self) -> frozenset[str]:
        """The CAs of cert-manager that have been trusted since something was taken last, and signed nothing.

        Those that have signed are before the issuer (`changes`), or needed by a leaf.
        """
        behind = {ca.key_id for ca in self.trusted[self._place + 1 :]}
        return frozenset(behind - {each.ca.key_id for each in self.leafs})

    @property
    def has_old(self) -> bool:
        """Whether a CA is trusted that has been replaced."""
        return self._place > 0

    @property
    def unused(self) -> tuple[Description, ...]:
        """The CAs that no leaf of cert-manager needs."""
        used = {each.ca.key_id for each in self.leafs}
        return tuple(ca for ca in self.trusted if ca.key_id not in used)

    def outlived(self, now: datetime, keeps: timedelta) -> tuple[Description, ...]:
        """Those of them that are of no use: they have expired, or all that they had signed has.

        keeps: how long a certificate of a client is valid.
        """
        since = dict(self.former)
        return tuple(ca for ca in self.unused if now >= min(since.get(ca.key_id, now) + keeps, ca.not_after))

    def expired(self, now: datetime) -> tuple[IssuedLeaf, ...]:
        """The leafs of cert-manager that are refused, as they, or their CAs, are not valid any more."""
        valid = {ca.key_id for ca in self.trusted if ca.is_valid(now)}
        return tuple(
            each for each in self.leafs if each.ca.key_id not in valid or not each.leaf.is_valid(now)
        )

    @property
    def _place(self) -> int:
        return [ca.key_id for ca in self.trusted].index(self.issuer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What the Secret of a member has of this CA. A process that presents the leaf can read the bundle, too.

    Both are in one Secret, and written at once: Kubernetes replaces all files of a volume in one step.
    """

    leaf: Description  # that of the listener; the others of the same CA are replaced with it
    bundle: tuple[Description, ...]
    # when the Secret was written, if it has leafs of cert-manager: one that is presented was maybe in the
    # former content, too
    written: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCertificates:
    """What is observed of the certificates of one member, for one CA."""

    name: str
    files: Files | None  # None: not written yet
    is_running: bool
    # the serial number of the leaf presented last, or why the last handshake failed; empty before the first
    presented: str = ""
    # the bundle with which the process was started, or one that was published earlier; None: unknown
    loaded: tuple[Trusted, ...] | None = None
    # its leafs can be read, but differ from those wanted: names, duration, issuer of a further leaf, or a
    # seed's leaf that is no longer needed
    is_unwanted: bool = False

    @property
    def has_loaded_files(self) -> bool:
        """Whether the running process presents what its Secret has, so it would also read that bundle."""
        return self.is_running and self.files is not None and self.presented == self.files.leaf.serial


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLeaf:
    """The leaf of a client, in a Secret of its own: when it is loaded is up to the client."""

    name: str
    leaf: Description | None  # None: not written yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that the next step depends on."""

    record: Record
    members: tuple[ObservedCertificates, ...]
    now: datetime
    obstacle: str = ""  # why no voter may be away, as upgrades find it; empty if one may
    clients: tuple[ClientLeaf, ...] = ()
    unwritten: frozenset[str] = frozenset()  # members and clients whose Secrets could not be written just now
    # the bundle that clients find now; None: the side is for members only
    published: tuple[Description, ...] | None = None
    is_unpublished: bool = False  # the bundle for clients could not be written just now
    request: str = ""  # the rotation that is requested
    grace: timedelta = timedelta()  # how long clients take to load what is published
    lasts: timedelta | None = None  # how long a CA is to live by now; None: as long as its certificate says
    # what cert-manager has issued, of each leaf on record; none while it is not known, or one cannot be used
    offered: tuple[IssuedLeaf, ...] = ()
    # how long clients may use certificates of a CA that cert-manager's issuer has replaced
    keeps: timedelta = timedelta()
    # how far the operator's clock is ahead of the API server's; negative if it is behind
    offset: timedelta = timedelta()

    @property
    def issuer_is_valid(self) -> bool:
        """Whether the CA that signs can do so."""
        return any(ca.key_id == self.record.issuer and ca.is_valid(self.now) for ca in self.record.trusted)


Use = Literal["peer", "client", "operator"]
"""Of a certificate of the user: of members for a side, or of the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppliedFacts:
    """What a Secret of the user has."""

    keys: SecretKeys
    leaf: Description
    is_late: bool = False  # whether the certificate should have been renewed for long
    cas: tuple[Description, ...] = ()
    anchors: tuple[Description, ...] = ()  # those of `cas` to which its certificate leads
    # whether it has been known for so long that the volumes of members have followed it
    is_settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """A member that was started with other CAs than the Secret of the user has now."""

    side: Side
    name: str
    is_refusing: bool = False  # whether it refuses the certificate in the Secret, which its peers present
