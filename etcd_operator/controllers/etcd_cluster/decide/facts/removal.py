"""The next member that leaves a cluster that shrinks, and who leads instead."""

from collections.abc import Iterable

from etcd_operator.controllers.etcd_cluster.decide.actions import Action, Plan
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import is_losing_data, may_change
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.membership_actions import (
    MoveLeader,
    RemoveMember,
)
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


@fact
def next_removal(state: ClusterState) -> Plan | None:
    """Remove one member: an unhealthy one first, else the next by order of departure.

    Its objects are deleted by the next pass (`orphaned_objects`). A removed etcd ends by itself at once; a
    process that is terminated at the same moment takes a second longer.
    """
    if not may_change(state) or len(state.voters) <= state.desired.size:
        return None
    leaving = _leaving_member(state)
    rest = [voter for voter in state.voters if voter is not leaving]
    healthy = [voter for voter in rest if _remains(voter) and not _goes_before(state, voter, leaving)]
    if len(healthy) < quorum(len(rest)):
        names = ", ".join(voter.name for voter in rest if voter not in healthy)
        return Plan.hold(
            "QuorumAtRisk",
            f"not scaling down while {names} are unhealthy or about to lose data",
            requeue_after=1.0,
        )
    return Plan.act(
        *lead_elsewhere(state, leaving, healthy),
        RemoveMember(name=leaving.name, member_id=leaving.id),
        reason="ScalingDown",
        message=f"removing {leaving.name}",
        requeue_after=STEP,
    )


def _leaving_member(state: ClusterState) -> Member:
    unhealthy = [voter for voter in state.voters if not voter.is_healthy]
    losing_data = [voter for voter in state.voters if is_losing_data(state, voter)]
    return _by_departure(state, unhealthy or losing_data or state.voters)[0]


def _remains(voter: Member) -> bool:
    """Whether it serves and continues to: a pod that is being deleted still answers for a moment.

    And a process may have ended since it answered.
    """
    is_going = voter.pod is not None and (voter.pod.is_terminating or not voter.pod.is_running)
    return voter.is_healthy and not is_going


def _goes_before(state: ClusterState, voter: Member, leaving: Member) -> bool:
    """Whether a voter loses its data with its next restart while the silent leaving one keeps its own."""
    return is_losing_data(state, voter) and not is_losing_data(state, leaving)


def _by_departure(state: ClusterState, members: Iterable[Member]) -> list[Member]:
    return sorted(members, key=state.kind.departure)


def lead_elsewhere(state: ClusterState, leaving: Member, healthy: list[Member]) -> list[Action]:
    """Move the leadership to the member that is kept longest, so that it moves once and not at each step.

    A member that lags behind is chosen only if there is no other.
    """
    if state.leader is not leaving:
        return []
    able = [voter for voter in healthy if not state.must_catch_up(voter)] or healthy
    return [
        MoveLeader(name=transferee.name, member_id=transferee.id)
        for transferee in _by_departure(state, able)[-1:]
    ]
