"""Logs in the model world: processes, their data, elections, writes, versions.

Nothing happens but in the methods called. The log of one cluster is linear: a process holds a prefix of it
(`Disk.committed`), a leader has the longest of those that can reach each other, entries reach a quorum at
once and the others at the next election. What versions make of that: model_versions.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from etcd_operator.api.persisted import REVISION_BUMP
from etcd_operator.core.members import quorum
from unit.core.model_versions import KEPT, SNAPSHOT_EVERY, Log, Releases, cannot_read, minor


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
    is_removed: its process was told that it is no member any more.
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

    def restore(self, other: "Disk") -> None:
        """Take what a snapshot of another member holds: nothing of its log, at revisions far ahead."""
        self.writes, self.minor, self.corrupt = set(other.writes), other.minor, set(other.corrupt)
        self.revision = other.revision + REVISION_BUMP

    @property
    def is_learner(self) -> bool:
        """Whether it takes itself for a learner, or for no member at all."""
        own = self.members.get(self.member_id)
        return own is None or own.is_learner


@dataclass(kw_only=True, eq=False)
class Process:
    """A running etcd. snapshots: raft snapshots that it has saved.

    has_led: it has seen a leader since it started. is_seasoned: others have been connected to it for 5 s.
    is_cut_off: it reaches only others that are. is_unheard: the operator does not reach it.
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
    is_unheard: bool = False


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


class Raft:
    """All logs of the world, and who has which. `losses` says in sentences what must never happen.

    replaced: IDs of clusters that were begun from a snapshot, and of those that it was taken of.
    given_up: the latter, once the former have a leader, and what was acknowledged by them.
    wants_user: authentication is on, in all of them, and the operator is no user.
    """

    def __init__(self) -> None:
        self.processes: dict[str, Process] = {}
        self.disks: dict[str, Disk] = {}
        self.leaders: dict[str, str] = {}
        self.acknowledged: dict[str, set[int]] = {}
        self.replaced: dict[str, str] = {}
        self.given_up: dict[str, set[int]] = {}
        self.losses: list[str] = []
        self.wants_user = False
        self.listed_names: set[str] = set()
        self.releases = Releases()
        self._numbers = count(1)

    # for the world around

    def existing_disks(self) -> list[Disk]:
        """Data directories that are still there."""
        raise NotImplementedError

    def process_ended(self, process: Process) -> None:
        """A process ended by itself."""
        raise NotImplementedError

    def takes_clients(self, process: Process) -> bool:
        """Whether clients reach it."""
        raise NotImplementedError

    # who can talk to whom

    def alive(self) -> list[Process]:
        """Processes that run and are not frozen."""
        return [process for process in self.processes.values() if not process.is_frozen]

    def groups(self, *, led: bool) -> list[Group]:
        """Quorums of one cluster ID, of those alive; led: that have already found each other."""
        able = [p for p in self.alive() if p.has_led or not led]
        sides = sorted({(p.disk.cluster_id, p.is_cut_off) for p in able})
        sets = ([p for p in able if (p.disk.cluster_id, p.is_cut_off) == side] for side in sides)
        return [group for up in sets if (group := self._group(up)) is not None]

    def group_of(self, process: Process) -> Group | None:
        """The serving quorum that a process belongs to."""
        return next((group for group in self.groups(led=True) if process in group.up), None)

    def _group(self, up: list[Process]) -> Group | None:
        def rank(process: Process) -> tuple[int, bool]:
            is_leader = self.leaders.get(process.disk.cluster_id) == process.disk.member_id
            return process.disk.committed, is_leader

        for leader in sorted(up, key=rank, reverse=True):
            listed = leader.disk.members
            own = listed.get(leader.disk.member_id)
            if own is None or own.is_learner:
                continue
            members = tuple(process for process in up if process.disk.member_id in listed)
            followers = [
                p
                for p in members
                if not listed[p.disk.member_id].is_learner and p.disk.committed <= leader.disk.committed
            ]
            if len(followers) >= quorum(len(leader.disk.voters)):
                return Group(leader=leader, up=members)
        return None

    # elections and writes

    def elect(self) -> None:
        """Where a quorum is up, it elects a leader, and all its members catch up."""
        for group in self.groups(led=False):
            log = group.leader.disk
            self._inherit(group)
            self._judge(group.cluster_id, log.writes)
            self.leaders[group.cluster_id] = log.member_id
            log.committed += 1
            log.published |= {process.name for process in group.up}
            for process in group.up:
                log.members[process.disk.member_id] = replace(
                    log.members[process.disk.member_id], is_started=True
                )
            if any(not process.has_led and minor(process.version) < 6 for process in group.up):
                log.old_at = log.committed  # each says where it is to be found, in the format of 3.5
            for process in group.up:
                self._follow(process, group)
                process.is_seasoned, process.has_led = process.has_led, True
            self._end_removed(group)

    def agree(self) -> None:
        """The cluster version follows the lowest that runs, up only, where all members are known."""
        for group in self.groups(led=True):
            log, versions = group.leader.disk, [minor(process.version) for process in group.up]
            if len(versions) == len(group.entries) and min(versions) > log.minor:
                log.minor = min(versions)
                self._commit(group)

    def write(self, preferred: Iterable[int] = ()) -> None:
        """A client writes to each serving quorum: no more members than needed have it when it is told so."""
        for group in self.groups(led=True):
            if group.leader.disk.corrupt or not any(self.takes_clients(process) for process in group.up):
                continue
            number = next(self._numbers)
            group.leader.disk.writes.add(number)
            group.leader.disk.revision += 1
            self._commit(group, preferred)
            self.acknowledged.setdefault(group.cluster_id, set()).add(number)
            if len(self.acknowledged) > 1:
                self.losses.append(f"bootstrapped twice: {sorted(self.acknowledged)} all took writes")

    def write_much(self) -> None:
        """So much that those that are there save a raft snapshot."""
        for group in self.groups(led=True):
            self._commit(group, entries=SNAPSHOT_EVERY)
            for process in group.up:
                self._follow(process, group)

    def _commit(self, group: Group, preferred: Iterable[int] = (), entries: int = 1) -> None:
        """The leader's log is longer: a quorum has it, and not more."""
        log = group.leader.disk
        log.committed += entries
        self.leaders[group.cluster_id] = log.member_id
        voters = group.voters
        first = [voters[index % len(voters)] for index in preferred if voters]
        for process in list(dict.fromkeys([*voters[:1], *first, *voters]))[: quorum(len(log.voters))]:
            self._follow(process, group)

    def _follow(self, process: Process, group: Group) -> None:
        """It takes over the leader's log; once that is long enough it saves a raft snapshot."""
        disk, before = process.disk, process.disk.saved_at
        if process is not group.leader:
            disk.follow(group.leader.disk)
        if disk.committed - disk.saved_at >= SNAPSHOT_EVERY:
            disk.saved_at = disk.committed
        process.snapshots += disk.saved_at > before
        if cannot_read(process.version, disk):
            self.processes.pop(process.pod, None)
            self.process_ended(process)

    def _inherit(self, group: Group) -> None:
        """A cluster that was begun from a snapshot leads: what no voter has any more is forgiven, once."""
        old, held = self.replaced.pop(group.cluster_id, ""), group.leader.disk.writes
        if not old:
            return
        promised = self.given_up.get(old, set()).union(*self.acknowledged.values())
        self.given_up |= dict.fromkeys((old, *self.acknowledged), promised)
        left = [d for d in self.existing_disks() if d.cluster_id in self.given_up and not d.is_learner]
        missed = {number for disk in left for number in disk.writes & promised} - held
        if missed:
            self.losses.append(f"{sorted(missed)} were left behind in {old}, although a voter had them")
        self.acknowledged = {group.cluster_id: promised & held}

    def _judge(self, cluster_id: str, held: set[int]) -> None:
        """What was acknowledged and still lies on some disk must be served by every quorum."""
        for known, writes in self.acknowledged.items():
            missing = writes - held
            hidden = [d for d in self.existing_disks() if d.cluster_id == known and d.writes & missing]
            if hidden and (known == cluster_id or not held):
                self.losses.append(f"a quorum of {cluster_id} serves without {sorted(missing)} of {known}")

    def _end_removed(self, group: Group) -> None:
        for uid, process in list(self.processes.items()):
            is_told = process in self.alive() and process.is_cut_off is group.leader.is_cut_off
            is_theirs = process.disk.cluster_id == group.cluster_id
            if is_told and is_theirs and process.disk.member_id not in group.entries:
                process.disk.is_removed = True
                del self.processes[uid]
                self.process_ended(process)
