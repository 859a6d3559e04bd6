"""Growing and shrinking: one membership change at a time, learners first (I1, I2).

Each pass decides from what it observes, so that the size may be edited at any speed
while a change is under way.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import DeleteMember, Plan
from etcd_operator.controllers.etcd_cluster.decide.facts.claims import is_copy
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import addition, next_removal
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import left_outside, may_change
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


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
    """Remove the member that leaves next."""
    return next_removal(state)


def up(state: ClusterState) -> Plan | None:
    """Add the next member."""
    return addition(state)


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
