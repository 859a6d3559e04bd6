"""Growing and shrinking: one membership change at a time, learners first (I1, I2).

Each pass decides from what it observes, so that the size may be edited at any speed
while a change is under way.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import DeleteMember, Plan
from etcd_operator.controllers.etcd_cluster.decide.facts.claims import is_copy
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import addition, next_removal
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import (
    left_outside,
    may_change,
    pending_learner,
)
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import kept_survivor
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState

UNSCHEDULED = 60.0
"""Seconds for which a learner may have no node, before the kept survivor is deleted to free its node."""


def unlisted_objects(state: ClusterState) -> Plan | None:
    """Remove the objects of members that a quorum no longer lists."""
    if not may_change(state):
        return None
    unlisted = (member for member in state.members if member.entry is None)
    removed = [m for m in unlisted if _is_left_over(state, m) and not _is_second_copy(state, m)]
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
    """Remove the member that leaves next."""
    return next_removal(state)


def up(state: ClusterState) -> Plan | None:
    """Add the next member."""
    return addition(state)


def _is_second_copy(state: ClusterState, member: Member) -> bool:
    """Whether it is the survivor of a lost cluster, and only the seed has its data as well.

    A voter that reports itself as a learner may lack what came before its promotion. The survivor makes room
    if no node is found for the next member.
    """
    if member is not kept_survivor(state):
        return False
    learner = pending_learner(state)
    pod = learner.pod if learner is not None else None
    is_unschedulable = learner is not None and learner.problem is not None
    if pod is not None and not pod.is_assigned and is_unschedulable and pod.creating_for >= UNSCHEDULED:
        return False
    answers = (voter.answer for voter in state.healthy_voters)
    have = sum(answer is not None and not answer.is_learner for answer in answers)
    return have < min(2, state.desired.size)


def _is_left_over(state: ClusterState, member: Member) -> bool:
    """Whether objects of a member that etcd does not list are ours to remove.

    A claim alone is removed only if this very cluster recorded on it that it is a member's, or created it for
    a member that never answered (it was created late, after the member was removed): any other claim of such
    a name may be somebody's copy.
    """
    if member.is_terminating or member.name in left_outside(state):
        return False
    if member.pod is not None or member.peer is not None or member.has_service:
        return True
    claim = member.claim
    if claim is not None and claim.member_id:
        return claim.cluster_id == state.persisted.cluster_id and not is_copy(state.members, claim)
    made = (claim.cluster_uid, claim.token) if claim is not None else ("", "")
    return made == (state.desired.uid, state.desired.token)
