"""Logs in the model world: processes, their data, elections, writes, versions.

Nothing happens but in the methods called. The log of one cluster is linear: a process holds a prefix of it
(`Disk.committed`), a leader has the longest of those that can reach each other, entries reach a quorum at
once and the others at the next election. What versions make of that: model_disks.py.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from etcd_operator.controllers.etcd_cluster.decide.members import quorum
from unit.simulation.model_disks import SNAPSHOT_EVERY, Disk, Group, Process, Releases, cannot_read, minor


class Raft:
    """All logs of the world, and who has which. `losses`: what must never happen, in sentences.

    replaced: IDs of clusters that were begun from a snapshot, and of those that it was taken of.
    given_up: the latter, once the former have a leader (or a person's word, see gives_up_by_name), and what
    was acknowledged by them.
    gives_up_by_name: a cluster is given up by `give_up`, and what it takes after that is given up with it.
    restored: the writes that clusters were begun with, by ID. lost: those acknowledged that they lack.
    to_be_kept: what a recovery by name has to keep.
    requires_user: authentication is on, in all of them, and the operator is no user.
    slow_elections: how many elections bring no leader to quorums that await one.
    """

    def __init__(self) -> None:
        self.processes: dict[str, Process] = {}
        self.disks: dict[str, Disk] = {}
        self.leaders: dict[str, str] = {}
        self.acknowledged: dict[str, set[int]] = {}
        self.replaced: dict[str, str] = {}
        self.given_up: dict[str, set[int]] = {}
        self.gives_up_by_name = False
        self.restored: dict[str, set[int]] = {}
        self.lost: dict[str, set[int]] = {}
        self.to_be_kept: set[int] = set()
        self.losses: list[str] = []
        self.requires_user = False
        self.slow_elections = 0
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

    def hears_clients(self, process: Process) -> bool:
        """Whether clients write to it: those that reach it, or are connected to it."""
        return self.takes_clients(process)

    def acknowledge(self, group: Group) -> None:
        """Clients know that their last write was taken."""

    def takes_calls(self, process: Process) -> bool:
        """Whether the operator could have called it."""
        raise NotImplementedError

    # who can talk to whom

    def alive(self) -> list[Process]:
        """Processes that run and are not frozen."""
        return [process for process in self.processes.values() if not process.is_frozen]

    def groups(self, *, led: bool) -> list[Group]:
        """Quorums of one cluster ID, of those alive; led: that have already found each other."""
        able = [p for p in self.alive() if not led or (p.has_led and not p.awaits_leader)]
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
        led = {group.cluster_id for group in self.groups(led=True)}
        is_slow, self.slow_elections = self.slow_elections > 0, max(0, self.slow_elections - 1)
        for group in self.groups(led=False):
            log = group.leader.disk
            if is_slow and group.cluster_id not in led and any(p.awaits_leader for p in group.up):
                continue
            if not self.gives_up_by_name:
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
                log.old_at = log.committed  # each publishes where it is reached, in the format of 3.5
            for process in group.up:
                self._follow(process, group)
                process.is_seasoned, process.has_led = process.has_led, True
                process.awaits_leader = False
            self._end_removed(group)

    def agree(self) -> None:
        """The cluster version follows the lowest that runs, up only, where all members are known."""
        for group in self.groups(led=True):
            log, versions = group.leader.disk, [minor(process.version) for process in group.up]
            if len(versions) == len(group.entries) and min(versions) > log.minor:
                log.minor = min(versions)
                self._commit(group)

    def write(self, preferred: Iterable[int] = ()) -> None:
        """A client writes to each serving quorum; it is acknowledged as soon as enough have it."""
        for group in self.groups(led=True):
            disk = group.leader.disk
            if disk.corrupt or not any(self.hears_clients(process) for process in group.up):
                continue
            number = next(self._numbers)
            disk.writes.add(number)
            disk.revision += 1
            self._commit(group, preferred)
            self.acknowledge(group)
            if self.gives_up_by_name and group.cluster_id in self.given_up:
                continue
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
        if held != self.restored[group.cluster_id]:
            self.losses.append(f"{group.cluster_id} does not serve what it was begun with")
        self.lost[group.cluster_id] = set[int]().union(*self.acknowledged.values()) - held
        promised = self.given_up.get(old, set()).union(*self.acknowledged.values())
        self.given_up |= dict.fromkeys((old, *self.acknowledged), promised)
        left = [d for d in self.existing_disks() if d.cluster_id in self.given_up and not d.is_learner]
        missed = {number for disk in left for number in disk.writes & promised} - held
        if missed:
            self.losses.append(f"{sorted(missed)} were left behind in {old}, although a voter had them")
        self.acknowledged = {group.cluster_id: promised & held}

    def give_up(self, group: Group) -> None:
        """From now on a cluster that was begun from a snapshot takes the place of another: no way back.

        Of what that one acknowledged, all that `to_be_kept` has must be there.
        """
        old, held = self.replaced.pop(group.cluster_id, ""), group.leader.disk.writes
        if not old:
            return
        promised = set[int]().union(*self.acknowledged.values())
        self.lost[group.cluster_id] = promised - held
        missed = (promised & self.to_be_kept) - held
        if missed:
            self.losses.append(f"{sorted(missed)} were left behind in {old}, although a survivor had them")
        former = {old, *self.acknowledged} - {group.cluster_id}
        self.given_up |= dict.fromkeys(former, promised)
        self.acknowledged = {group.cluster_id: promised & held}

    def _judge(self, cluster_id: str, held: set[int]) -> None:
        """What was acknowledged and still lies on some disk must be served by every quorum.

        But a seed serves nobody yet, and a cluster that was given up by name nobody any more.
        """
        if self.gives_up_by_name and (cluster_id in self.replaced or cluster_id in self.given_up):
            return
        for known, writes in self.acknowledged.items():
            missing = writes - held
            hidden = [d for d in self.existing_disks() if d.cluster_id == known and d.writes & missing]
            if hidden and (known == cluster_id or not held):
                self.losses.append(f"a quorum of {cluster_id} serves without {sorted(missing)} of {known}")

    def _end_removed(self, group: Group) -> None:
        for uid, process in list(self.processes.items()):
            hears_of_it = process in self.alive() and process.is_cut_off is group.leader.is_cut_off
            is_theirs = process.disk.cluster_id == group.cluster_id
            if hears_of_it and is_theirs and process.disk.member_id not in group.entries:
                process.disk.is_removed = True
                del self.processes[uid]
                self.process_ended(process)
