"""Data directories and processes of etcd in the model world, as values that `Raft` changes, and its versions.

As measured, and as etcd's source has it: all members share one cluster version, a minor version, which goes
up when all of them run a later one, and never down; a process of an earlier minor version refuses to start
on such data, and such members refuse it; 3.7 panics on log entries of 3.5, unless a raft snapshot lies
behind them.
"""

from dataclasses import dataclass, field

from etcd_operator.api.recoveries import REVISION_BUMP

GOOD = ("3.5.31", "3.5.34", "3.5.90", "3.6.16", "3.6.17", "3.6.90", "3.7.3", "3.7.90")
BEST = {5: "3.5.90", 6: "3.6.90", 7: "3.7.90"}
"""The last of each minor version, which works."""
UNPULLABLE = ("3.5.55", "3.6.55", "3.7.55")
CRASHING = ("3.5.66", "3.6.66", "3.7.66")
"""Their processes end at once."""
REGRESSING = ("3.5.77", "3.6.77", "3.7.77")
"""These work until they are found to be bad; from then on they crash."""

SNAPSHOT_EVERY = 3000
"""Entries of the log between two raft snapshots; the real one takes 10000."""
KEPT = SNAPSHOT_EVERY // 2
"""Entries before its last snapshot that a leader still has; a member further behind gets the snapshot."""


def minor(version: str) -> int:
    """The second number."""
    return _numbers(version)[0]


FLOORS = {6: 32, 7: 11}
"""The patch of the previous minor version that all members need first."""


def is_reachable(running: str, wanted: str) -> bool:
    """Whether etcd can be taken from one version to another."""
    (before, low), (after, high) = _numbers(running), _numbers(wanted)
    if after == before:
        return high >= low
    return after == before + 1 and low >= FLOORS.get(after, 0)


def _numbers(version: str) -> tuple[int, int]:
    _, second, third = version.split(".")
    return int(second), int(third)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A member as etcd lists it."""

    id: str
    name: str
    is_learner: bool = False
    is_started: bool = False


@dataclass(kw_only=True)
class Disk:
    """A data directory; empty while `cluster_id` is.

    members: etcd's list at `committed`, by ID. published: members known to have been there.
    revision: of the newest write, as etcd counts.
    is_removed: its process learned that it is no member any more.
    corrupt: IDs of members that alarms name, as far as this log goes.
    minor: of the cluster version, 0 while there is none. old_at: index of the last entry that 3.5 wrote;
    saved_at: that of the last raft snapshot, which each member saves for itself.
    """

    minor: int = 0
    old_at: int = 0
    saved_at: int = 0
    cluster_id: str = ""
    member_id: str = ""
    members: dict[str, Entry] = field(default_factory=dict)
    committed: int = 0
    writes: set[int] = field(default_factory=set)
    revision: int = 0
    published: set[str] = field(default_factory=set)
    is_removed: bool = False
    corrupt: set[str] = field(default_factory=set)

    @property
    def voters(self) -> list[Entry]:
        """Who votes, as far as this log goes."""
        return [entry for entry in self.members.values() if not entry.is_learner]

    def follow(self, leader: "Disk") -> None:
        """Take over the leader's log, or its last raft snapshot where that is all that it still has."""
        if self.committed < leader.saved_at - KEPT:
            self.saved_at = leader.saved_at
        self.minor, self.old_at = leader.minor, leader.old_at
        self.members, self.corrupt = dict(leader.members), set(leader.corrupt)
        self.committed, self.revision = leader.committed, leader.revision
        self.writes, self.published = set(leader.writes), set(leader.published)

    def restore(self, other: "Disk", bump: int = REVISION_BUMP) -> None:
        """Take what a snapshot of another member holds: nothing of its log, at revisions far ahead."""
        self.writes, self.minor, self.corrupt = set(other.writes), other.minor, set(other.corrupt)
        self.revision = other.revision + bump

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written to it."""
        return not self.cluster_id and not self.revision

    @property
    def is_learner(self) -> bool:
        """Whether it takes itself for a learner, or for no member at all."""
        own = self.members.get(self.member_id)
        return own is None or own.is_learner


@dataclass(kw_only=True, eq=False)
class Process:
    """A running etcd. snapshots: raft snapshots that it has saved.

    has_led: it has seen a leader since it started. is_seasoned: others have been connected to it for 5 s.
    is_cut_off: it reaches only others that are. is_unreachable: the operator does not reach it.
    awaits_leader: it was away, and answers without a leader until the next election.
    unapplied: newest writes in its log that it has not applied yet, and does not report.
    """

    name: str
    pod: str
    disk: Disk
    version: str
    snapshots: int = 0
    has_led: bool = False
    is_seasoned: bool = False
    is_frozen: bool = False
    is_cut_off: bool = False
    is_unreachable: bool = False
    awaits_leader: bool = False
    unapplied: int = 0

    @property
    def sha256(self) -> str:
        """Of its data."""
        return f"{self.disk.cluster_id}-{self.disk.revision}-{self.disk.committed}"

    @property
    def revision(self) -> int:
        """As it reports it."""
        return max(0, self.disk.revision - self.unapplied)


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """A leader that a quorum follows, and the members that it reaches."""

    leader: Process
    up: tuple[Process, ...]

    @property
    def cluster_id(self) -> str:
        return self.leader.disk.cluster_id

    @property
    def entries(self) -> dict[str, Entry]:
        """etcd's list, by ID."""
        return self.leader.disk.members

    @property
    def voters(self) -> list[Process]:
        """The voters that the leader reaches, itself first."""
        listed = {entry.id for entry in self.leader.disk.voters}
        voting = [process for process in self.up if process.disk.member_id in listed]
        return sorted(voting, key=lambda process: process is not self.leader)


@dataclass(kw_only=True)
class Releases:
    """What is known about versions so far. found_bad: those of REGRESSING that crash by now."""

    found_bad: set[str] = field(default_factory=set)

    def is_crashing(self, version: str) -> bool:
        """Whether its processes end on any data."""
        return version in CRASHING or version in self.found_bad

    def complaint(self, version: str, disk: Disk) -> str:
        """What a process of a version logs when it ends on such data; empty if it does not end."""
        if self.is_crashing(version):
            return "panic: this version is bad"
        if disk.minor > minor(version):
            return "invalid downgrade"
        return "panic: unmarshal should never fail" if cannot_read(version, disk) else ""


def cannot_read(version: str, disk: Disk) -> bool:
    """Whether a process of a version finds entries that it cannot read."""
    return minor(version) >= 7 and disk.old_at > disk.saved_at
