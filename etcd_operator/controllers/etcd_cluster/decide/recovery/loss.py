"""What is left of a cluster that has no quorum, and whether it may elect a leader."""

from dataclasses import dataclass

from etcd_operator.controllers.etcd_cluster.decide.member_names import ordinal_of
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import voters_of
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left of the lost cluster.

    remaining: members whose data may still exist. silent: voters that are given up although theirs may.
    """

    remaining: dict[str, Member]
    state: ClusterState
    silent: tuple[str, ...] = ()

    @property
    def responders(self) -> tuple[Member, ...]:
        """Those of the remaining whose member list is known: they answer, or their data was read.

        Not those of an etcd cluster that was given up, which may run on where nobody could stop them.
        """
        return tuple(member for member in self.remaining.values() if self._is_known(member))

    def _is_known(self, member: Member) -> bool:
        return member.report is not None and bool(member.report.members) and not self._is_given_up(member)

    def _is_given_up(self, member: Member) -> bool:
        return member.report is not None and member.report.cluster_id in self.state.persisted.given_up_ids

    @property
    def given_up(self) -> tuple[Member, ...]:
        """Those of the remaining that answer for an etcd cluster that was given up."""
        return tuple(member for member in self.remaining.values() if self._is_given_up(member))

    def may_elect(self, responder: Member) -> bool:
        """Whether the voters that this member lists may still be a majority."""
        voters = voters_of(self.state, responder)
        able = [name for name in voters if not name or name in self.remaining]
        return len(able) >= quorum(len(voters))

    @property
    def all_voters(self) -> tuple[str, ...]:
        """Every voter that any responder lists, and those that were found to vote, by number.

        One that was cut off from its peers may take a voter for a learner, or not know of it.
        """
        names = {name for responder in self.responders for name in voters_of(self.state, responder) if name}
        names |= {name for name, member in self.remaining.items() if member.has_voted}
        return tuple(sorted(names, key=ordinal_of))

    @property
    def lost_voters(self) -> tuple[str, ...]:
        """Those of them whose data is gone for good, or given up."""
        return tuple(name for name in self.all_voters if name not in self.remaining)

    @property
    def able(self) -> tuple[Member, ...]:
        """Those from which data can be fetched: a pod that is being deleted may end at any moment."""
        return tuple(m for m in self.responders if m.pod is not None and not m.pod.is_terminating)


def left_of(state: ClusterState) -> Left:
    """What is left, but for the seed of a recovery under way."""
    recovery = state.persisted.recovery_under_way
    seed = recovery.seed if recovery is not None else ""
    remaining = {m.name: m for m in state.members if m.name != seed and not is_gone(m)}
    return Left(remaining=remaining, state=state)


def is_gone(member: Member) -> bool:
    """Whether its data is certainly gone; a member that cannot be reached still has it."""
    return member.pod is None or member.pod.is_finished
