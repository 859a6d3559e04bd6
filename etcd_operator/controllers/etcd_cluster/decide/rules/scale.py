"""Growing and shrinking: one membership change at a time, learners first (I1, I2).

Each pass decides from what it observes, so that the size may be edited at any speed
while a change is under way.
"""

from collections.abc import Iterable

from etcd_operator.controllers.etcd_cluster.decide.actions import Action, DeleteMember, Plan
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Numbers
from etcd_operator.controllers.etcd_cluster.decide.member_names import ordinal_of
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.membership_actions import (
    AddLearner,
    MoveLeader,
    RemoveMember,
)
from etcd_operator.controllers.etcd_cluster.decide.rules.conflicting_claims import is_copy
from etcd_operator.controllers.etcd_cluster.decide.rules.learner import (
    RECHECK,
    STEP,
    is_losing_data,
    join,
    may_change,
)
from etcd_operator.controllers.etcd_cluster.decide.rules.take_over import is_outside
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import RETRY_HELD


def orphaned_objects(state: ClusterState) -> Plan | None:
    """Remove the objects of members that a quorum no longer lists."""
    if not may_change(state):
        return None
    removed = [m for m in state.members if m.entry is None and _is_left_over(state, m)]
    if not removed:
        return None
    names = ", ".join(member.name for member in removed)
    return Plan.act(
        *(DeleteMember(name=member.name) for member in removed),
        reason="Removing",
        message=f"removing what is left of {names}",
        requeue_after=STEP,
    )


def down(state: ClusterState) -> Plan | None:
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


def up(state: ClusterState) -> Plan | None:
    """Add one learner, when every voter is healthy; one whose removal has begun is not asked any more."""
    if not may_change(state) or len(state.voters) >= state.desired.size:
        return None
    if any(not voter.is_healthy and voter not in state.leaving for voter in state.all_voters):
        return None  # upkeep reports which
    name = _next_name(state)
    former = state.by_name.get(name)
    if former is not None and former.claim is not None and not former.claim.is_terminating:
        return Plan.hold(
            "ClaimInTheWay",
            f"the claim {name} holds data of another cluster: delete it, so that a member can be added",
            requeue_after=RETRY_HELD,
        )
    if former is not None:
        return Plan.wait("ScalingUp", f"waiting until the former {name} is deleted", requeue_after=RECHECK)
    return join(state, name, (AddLearner(name=name),))


def _next_name(state: ClusterState) -> str:
    numbers = Numbers(
        size=state.desired.size,
        taken=frozenset([*(m.ordinal for m in state.voters), *(ordinal_of(c.name) for c in state.kept)]),
        leaving=frozenset(member.ordinal for member in state.members if _is_given_up(state, member)),
        known=frozenset(member.ordinal for member in state.members),
        unused=state.persisted.next_ordinal,
    )
    return state.desired.member_name(state.kind.next_ordinal(numbers))


def _is_given_up(state: ClusterState, former: Member) -> bool:
    """Whether this is a member of a lost cluster that is still being deleted."""
    claim = former.claim
    if claim is None or not claim.is_terminating:
        return False
    return claim.cluster_id not in ("", state.persisted.cluster_id)


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


def _is_left_over(state: ClusterState, member: Member) -> bool:
    """Whether objects of a member that etcd does not list are ours to remove.

    A claim alone is removed only if this very cluster recorded on it that it is a member's, or created it for
    a member that never answered (it was created late, after the member was removed): any other claim of such
    a name may be somebody's copy.
    """
    if member.is_terminating or is_outside(state, member):
        return False
    if member.pod is not None or member.peer is not None or member.has_service:
        return True
    claim = member.claim
    if claim is not None and claim.member_id:
        return claim.cluster_id == state.persisted.cluster_id and not is_copy(state.members, claim)
    made = (claim.cluster_uid, claim.token) if claim is not None else ("", "")
    return made == (state.desired.uid, state.desired.token)
