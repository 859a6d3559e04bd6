"""etcd in the model world: how members begin, and changes of who they are.

Nothing happens but in the methods called. When a change is refused is shared with the fake etcd, which a
contract compares with the real one (unit/fakes/etcd/rules.py). Connected for five seconds is here: for two
elections (`is_seasoned`). A removed ID never returns; its process ends as soon as it learns of it.
"""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.members import quorum
from etcd_operator.etcd.values import ANYBODY
from unit.fakes.etcd.rules import NOT_FOUND, refuses_learner, refuses_promotion, refuses_removal
from unit.simulation.model_disks import Disk, Entry, Group, Process, minor
from unit.simulation.model_raft import Raft


class EtcdRefused(Exception):
    """etcd does not allow this change, or not yet."""


def _check(text: str) -> None:
    if text:
        raise EtcdRefused(text)


def cluster_id_of(token: str, initial_members: int) -> str:
    """The ID of a cluster follows from how it was bootstrapped."""
    return f"id({token},{initial_members})"


class Etcd(Raft):
    """All etcd processes of the world."""

    # starting

    def bootstrap(self, name: str, disk: Disk, initial_members: tuple[str, ...], token: str) -> bool:
        """Begin an empty member of a new cluster; false if another member remembers this one."""
        cluster_id = cluster_id_of(token, len(initial_members))
        for process in self.alive():
            if process.disk.cluster_id == cluster_id and name in process.disk.published:
                return False
        disk.cluster_id, disk.member_id, disk.committed = cluster_id, f"id-{name}", len(initial_members)
        entries = (
            Entry(id=f"id-{initial_member}", name=initial_member, is_started=True)
            for initial_member in initial_members
        )
        disk.members = {entry.id: entry for entry in entries}
        return True

    def join(self, name: str, disk: Disk, names: tuple[str, ...], version: str) -> bool:
        """Begin an empty member that a running one lists, if it lists exactly those names."""
        best = self._responder()
        if best is None or self.are_unequal(names) or best.disk.minor > minor(version):
            return False
        entry = next(entry for entry in best.disk.members.values() if entry.name == name)
        disk.cluster_id, disk.member_id = best.disk.cluster_id, entry.id
        disk.members, disk.published = dict(best.disk.members), set(best.disk.published)
        return True

    def are_unequal(self, names: tuple[str, ...]) -> bool:
        """Whether a running one lists others than these."""
        best = self._responder()
        return best is not None and {entry.name for entry in best.disk.members.values()} != set(names)

    @property
    def has_responder(self) -> bool:
        """Whether a new member finds anyone to ask."""
        return self._responder() is not None

    def _responder(self) -> Process | None:
        """Whom a new member asks for the list; those of a cluster that was given up have no name any more."""
        able = [p for p in self.alive() if p.has_led and not p.is_cut_off]
        able = [p for p in able if p.disk.cluster_id not in self.given_up]
        return max(able, key=lambda process: process.disk.committed, default=None)

    # changes of membership; `asked` belongs to a serving quorum

    def add_learner(self, asked: Process, name: str) -> None:
        """Raises EtcdRefused as etcd does."""
        group = self._serving(asked)
        voters = group.leader.disk.voters
        learners, connected = len(group.entries) - len(voters), self._connected(group, asked)
        _check(refuses_learner(voters=len(voters), connected=connected, learners=learners))
        entry = Entry(id=f"id-{next(self._numbers)}", name=name, is_learner=True)
        self.listed_names.add(name)
        group.entries[entry.id] = entry
        self._commit(group)

    def promote(self, asked: Process, member_id: str) -> None:
        """Raises EtcdRefused as etcd does."""
        group = self._serving(asked)
        entry = group.entries.get(member_id)
        if entry is None:
            raise EtcdRefused(NOT_FOUND)
        if not entry.is_learner:
            return
        is_in_sync = any(p.disk.member_id == member_id and p.has_led for p in group.up)
        _check(refuses_promotion(is_learner=True, is_in_sync=is_in_sync))
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
        is_leader = group.leader.disk.member_id == member_id
        if is_leader and self.takes_calls(group.leader):  # only itself can transfer the leadership
            self.losses.append(f"{entry.name} was removed while it led")
        self._commit(group)
        self._protect_quorum(group, f"removing {entry.name}")
        self._end_removed(group)

    def move_leader(self, asked: Process, member_id: str) -> None:
        """Raises EtcdRefused as etcd does."""
        group = self._serving(asked)
        transferee = next((voter for voter in group.voters if voter.disk.member_id == member_id), None)
        if asked is not group.leader or transferee is None:
            raise EtcdRefused("not leader, or bad leader transferee")
        self._follow(transferee, group)
        self.leaders[group.cluster_id] = member_id

    def name_corrupt(self, name: str) -> None:
        """The leader finds the data of a member to differ; empty: it cannot name one."""
        for group in self.groups(led=True):
            named = [entry.id for entry in group.entries.values() if entry.name == name]
            group.leader.disk.corrupt.update(named if name else [ANYBODY])
            self._commit(group)

    def disarm(self, asked: Process, member_id: str) -> None:
        """Raises EtcdRefused without a quorum."""
        group = self._serving(asked)
        group.leader.disk.corrupt.discard(member_id)
        self._commit(group)

    def pad(self, asked: Process, entries: int) -> None:
        """Append entries that change nothing. Raises EtcdRefused without a quorum."""
        self._commit(self._serving(asked), entries=entries)

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
        refused = refuses_removal(
            is_active=any(voter.disk.member_id == entry.id for voter in group.voters),
            others=len(rest),
            started=sum(voter.is_started for voter in rest),
            connected=self._connected(group, asked),
        )
        _check(refused)

    def _protect_quorum(self, group: Group, what: str) -> None:
        """No act of the operator may leave fewer voters that work than a quorum."""
        working, voters = len(group.voters), len(group.leader.disk.voters)
        if working < quorum(voters):
            self.losses.append(f"{what} left {working} of {voters} voters working")
