"""Data directories and processes of etcd in the model world, as values that `Raft` changes."""

from dataclasses import dataclass, field

from etcd_operator.api.recoveries import REVISION_BUMP
from unit.simulation.model_versions import KEPT, Log


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A member as etcd lists it."""

    id: str
    name: str
    is_learner: bool = False
    is_started: bool = False


@dataclass(kw_only=True)
class Disk(Log):
    """A data directory; empty while `cluster_id` is.

    members: etcd's list at `committed`, by ID. published: members known to have been there.
    revision: of the newest write, as etcd counts.
    is_removed: its process learned that it is no member any more.
    corrupt: IDs of members that alarms name, as far as this log goes.
    """

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
