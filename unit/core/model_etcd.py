"""etcd in the model world: processes, their data, elections, writes, changes of membership.

Nothing happens but in the methods called. It follows verified-facts.md A, D and H. The log of one cluster
is linear: a process holds a prefix of it (`Disk.committed`), a leader has the longest of those that can
reach each other, writes and changes of members reach a quorum at once and the others at the next election.
Changes are refused as etcd refuses them: one learner at a time; no addition and no removal of a running
voter unless enough voters have been connected for five seconds (`is_seasoned`: for two elections);
promotion only in step; a removed ID never returns, its process ends as soon as it is told.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from etcd_operator.core.members import quorum


class EtcdRefused(Exception):
    """etcd does not allow this change, or not yet."""


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
    is_removed: its process was told that it is no member any more.
    """

    cluster_id: str = ""
    member_id: str = ""
    members: dict[str, Entry] = field(default_factory=dict)
    committed: int = 0
    writes: set[int] = field(default_factory=set)
    published: set[str] = field(default_factory=set)
    is_removed: bool = False

    @property
    def voters(self) -> list[Entry]:
        """Who votes, as far as this log goes."""
        return [entry for entry in self.members.values() if not entry.is_learner]

    def follow(self, leader: "Disk") -> None:
        """Take over the leader's log."""
        self.members = dict(leader.members)
        self.committed = leader.committed
        self.writes, self.published = set(leader.writes), set(leader.published)


@dataclass(kw_only=True, eq=False)
class Process:
    """A running etcd.

    has_led: it has seen a leader since it started. is_seasoned: others have been connected to it for 5 s.
    is_cut_off: it reaches only others that are. is_unheard: the operator does not reach it.
    """

    name: str
    pod: str
    disk: Disk
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


class Etcd:
    """All etcd processes of the world. `losses` says in sentences what must never happen."""

    def __init__(self) -> None:
        self.processes: dict[str, Process] = {}
        self.disks: dict[str, Disk] = {}
        self.leaders: dict[str, str] = {}
        self.acknowledged: dict[str, set[int]] = {}
        self.losses: list[str] = []
        self.listed_names: set[str] = set()
        self._numbers = count(1)

    # for the world around

    def existing_disks(self) -> list[Disk]:
        """Data directories that are still there."""
        raise NotImplementedError

    def process_ended(self, process: Process) -> None:
        """A process ended by itself."""
        raise NotImplementedError

    # starting

    def found(self, name: str, disk: Disk, founders: tuple[str, ...], token: str) -> bool:
        """Begin an empty member of a new cluster; false if another member remembers this one."""
        cluster_id = f"id({token},{len(founders)})"
        for process in self.alive():
            if process.disk.cluster_id == cluster_id and name in process.disk.published:
                return False
        disk.cluster_id, disk.member_id, disk.committed = cluster_id, f"id-{name}", len(founders)
        entries = (Entry(id=f"id-{founder}", name=founder, is_started=True) for founder in founders)
        disk.members = {entry.id: entry for entry in entries}
        return True

    def join(self, name: str, disk: Disk, names: tuple[str, ...]) -> bool:
        """Begin an empty member that a running one lists, if it lists exactly those names."""
        best = self._teller()
        if best is None or self.are_unequal(names):
            return False
        entry = next(entry for entry in best.disk.members.values() if entry.name == name)
        disk.cluster_id, disk.member_id = best.disk.cluster_id, entry.id
        disk.members, disk.published = dict(best.disk.members), set(best.disk.published)
        return True

    def are_unequal(self, names: tuple[str, ...]) -> bool:
        """Whether a running one lists others than these."""
        best = self._teller()
        return best is not None and {entry.name for entry in best.disk.members.values()} != set(names)

    def _teller(self) -> Process | None:
        able = [p for p in self.alive() if p.has_led and not p.is_cut_off]
        return max(able, key=lambda process: process.disk.committed, default=None)

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
            self._judge(group.cluster_id, log.writes)
            self.leaders[group.cluster_id] = log.member_id
            log.committed += 1
            log.published |= {process.name for process in group.up}
            for process in group.up:
                log.members[process.disk.member_id] = replace(
                    log.members[process.disk.member_id], is_started=True
                )
            for process in group.up:
                if process is not group.leader:
                    process.disk.follow(log)
                process.is_seasoned, process.has_led = process.has_led, True
            self._end_removed(group)

    def write(self, preferred: Iterable[int] = ()) -> None:
        """A client writes to each serving quorum: no more members than needed have it when it is told so."""
        for group in self.groups(led=True):
            number = next(self._numbers)
            group.leader.disk.writes.add(number)
            self._commit(group, preferred)
            self.acknowledged.setdefault(group.cluster_id, set()).add(number)
            if len(self.acknowledged) > 1:
                self.losses.append(f"born twice: {sorted(self.acknowledged)} all took writes")

    def _commit(self, group: Group, preferred: Iterable[int] = ()) -> None:
        """The leader's log is one entry longer: a quorum has it, and not more."""
        log = group.leader.disk
        log.committed += 1
        self.leaders[group.cluster_id] = log.member_id
        voters = group.voters
        first = [voters[index % len(voters)] for index in preferred if voters]
        for process in list(dict.fromkeys([*voters[:1], *first, *voters]))[: quorum(len(log.voters))]:
            if process is not group.leader:
                process.disk.follow(log)

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

    # changes of membership; `asked` belongs to a serving quorum

    def add_learner(self, asked: Process, name: str) -> None:
        """Raises EtcdRefused as etcd does."""
        group = self._serving(asked)
        voters = group.leader.disk.voters
        if any(entry.is_learner for entry in group.entries.values()):
            raise EtcdRefused("too many learner members in cluster")
        if len(voters) > 1 and self._connected(group, asked) < quorum(len(voters) + 1):
            raise EtcdRefused("unhealthy cluster")
        entry = Entry(id=f"id-{next(self._numbers)}", name=name, is_learner=True)
        self.listed_names.add(name)
        group.entries[entry.id] = entry
        self._commit(group)

    def promote(self, asked: Process, member_id: str) -> None:
        """Raises EtcdRefused as etcd does."""
        group = self._serving(asked)
        entry = group.entries.get(member_id)
        if entry is None:
            raise EtcdRefused("member not found")
        if not entry.is_learner:
            return
        if not any(p.disk.member_id == member_id and p.has_led for p in group.up):
            raise EtcdRefused("can only promote a learner member which is in sync with leader")
        group.entries[member_id] = replace(entry, is_learner=False)
        self._commit(group, [n for n, p in enumerate(group.voters) if p.disk.member_id == member_id])
        self._protect_quorum(group, f"promoting {entry.name}")

    def remove(self, asked: Process, member_id: str) -> None:
        """Raises EtcdRefused as etcd does."""
        group = self._serving(asked)
        entry = group.entries.get(member_id)
        if entry is None:
            return
        if not entry.is_learner:
            self._may_remove(group, asked, entry)
        del group.entries[member_id]
        if not entry.is_learner and group.leader.disk.member_id == member_id:
            self.losses.append(f"{entry.name} was removed while it led")
        self._commit(group)
        self._protect_quorum(group, f"removing {entry.name}")
        self._end_removed(group)

    def move_leader(self, asked: Process, member_id: str) -> None:
        """Raises EtcdRefused as etcd does."""
        group = self._serving(asked)
        heir = next((voter for voter in group.voters if voter.disk.member_id == member_id), None)
        if asked is not group.leader or heir is None:
            raise EtcdRefused("not leader, or bad leader transferee")
        heir.disk.follow(group.leader.disk)
        self.leaders[group.cluster_id] = member_id

    def listed(self, asked: Process) -> dict[str, Entry]:
        """etcd's list, read through a quorum. Raises EtcdRefused without one."""
        return self._serving(asked).entries

    def _serving(self, asked: Process) -> Group:
        group = self.group_of(asked)
        if group is None:
            raise EtcdRefused("request timed out")
        return group

    def _connected(self, group: Group, asked: Process) -> int:
        return sum(voter is asked or voter.is_seasoned for voter in group.voters)

    def _may_remove(self, group: Group, asked: Process, entry: Entry) -> None:
        rest = [voter for voter in group.leader.disk.voters if voter.id != entry.id]
        if sum(voter.is_started for voter in rest) < quorum(len(rest)):
            raise EtcdRefused("re-configuration failed due to not enough started members")
        is_active = any(voter.disk.member_id == entry.id for voter in group.voters)
        if is_active and self._connected(group, asked) - 1 < quorum(len(rest)):
            raise EtcdRefused("unhealthy cluster")

    def _protect_quorum(self, group: Group, what: str) -> None:
        """No act of the operator may leave fewer voters that work than a quorum."""
        working, voters = len(group.voters), len(group.leader.disk.voters)
        if working < quorum(voters):
            self.losses.append(f"{what} left {working} of {voters} voters working")
