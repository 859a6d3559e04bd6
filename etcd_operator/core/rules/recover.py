"""A member whose data cannot come back is taken out; growing puts another in its place.

Unreachable is not lost (I5): a member is lost only when the thing that held its data is
gone. While the others have no quorum nothing is removed, because etcd would not agree
and the data may still be needed.
"""

from etcd_operator.core.actions import Plan, RemoveMember
from etcd_operator.core.members import Member, quorum
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade import may_fail_by_version

CLAIM_LOST = "ClaimLost"
"""Why a peer's objects are not made again (see `reconcile.peer`)."""

CRASHES = 3
"""Restarts after which a sealed member that ends at once is taken for one without its data.

The kubelet restarts at once, then after 10 and 20 s; a member that says why it ends is not waited for."""


def lost_member(state: ClusterState) -> Plan | None:
    """Remove a voter whose data is gone, while the others keep quorum without it."""
    lost = removable(state)
    if lost is None:
        return None
    return Plan.act(
        RemoveMember(name=lost.name, member_id=lost.id),
        reason="Replacing",
        message=f"{lost.name} has lost its data: removing it, another member takes its place",
        requeue_after=0.05,
    )


def removable(state: ClusterState) -> Member | None:
    """A voter whose data is gone and that the others do not need for their quorum."""
    if not state.record.is_born or not state.has_quorum:
        return None
    lost = next((voter for voter in state.voters if is_lost(state, voter)), None)
    if lost is None:
        return None
    rest = len(state.voters) - 1
    if sum(voter.is_healthy for voter in state.voters if voter is not lost) < quorum(rest):
        return None
    return lost


def is_lost(state: ClusterState, member: Member) -> bool:
    """Whether a member that etcd lists has lost its data for good."""
    if member.is_healthy:
        return False
    if not state.desired.is_persistent:
        return _pod_is_gone(member)
    return _volume_is_gone(member, crashes_count=not may_fail_by_version(state, member))


def _pod_is_gone(member: Member) -> bool:
    """An ephemeral member's data goes with its pod; a pod that is being deleted never comes back."""
    pod = member.pod
    if pod is None or pod.is_finished or pod.is_on_lost_node:
        return True
    return (pod.is_terminating and member.answer is None) or _has_no_data(member)


def _volume_is_gone(member: Member, *, crashes_count: bool) -> bool:
    """The claim is gone or lost, or the process refuses again and again to start without data.

    A peer without a ReplicaSet is only just being made: its claim is late, not lost. A member that
    crashes at the version it is being upgraded to says nothing about its data: crashes do not count.
    """
    if member.claim is None:
        was_told = member.trouble is not None and member.trouble.reason == CLAIM_LOST
        return member.peer is None or member.has_replica_set or was_told
    if member.claim.is_lost or _has_no_data(member):
        return True
    if not crashes_count:
        return False
    sealed = member.peer is not None and member.peer.is_sealed
    pod = member.pod
    return sealed and pod is not None and not pod.is_running and pod.restarts >= CRASHES


def _has_no_data(member: Member) -> bool:
    """Its process says, and not for the first time, that it was started without its data."""
    pod = member.pod
    return pod is not None and not pod.is_running and pod.has_no_data and pod.restarts > 0
