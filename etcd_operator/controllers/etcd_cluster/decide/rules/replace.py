"""A member whose data cannot come back is removed; `scale.up` adds another one.

Unreachable is not lost (I5): a member is lost only when its storage is gone, or when its own process
reports that there is no data, or none that it can read (a persistent member's in two pods, since a volume
may merely not have been mounted in the first, unless its claim is being deleted). A process that ends for
any other reason, or for an unknown one, however often, still has its data: a full disk, too little memory,
an image or a version that does not work lose nothing, and the next member may end for the same reason.
While the others have no quorum nothing is removed, because etcd would refuse it and the data may still be
needed.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, RecreatePod
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import before_removal, remember
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.membership_actions import RemoveMember
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import CATCH_UP
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import may_fail_by_version

CRASHES = 3
"""Restarts after which a member that reports broken data is believed.

The kubelet restarts at once, then after 10 and 20 s; a disk may answer wrongly once."""


def lost_member(state: ClusterState) -> Plan | None:
    """Remove a voter whose data is gone, while the others keep quorum without it."""
    lost = removable(state)
    if lost is None:
        return None
    return Plan.act(
        *remember(state, before_removal(state, lost.name)),
        RemoveMember(name=lost.name, member_id=lost.id),
        reason="Replacing",
        message=f"{lost.name} lost its data: removing it, so that another member can replace it",
        requeue_after=CATCH_UP,
    )


def removable(state: ClusterState) -> Member | None:
    """A voter whose data is gone and that the others do not need for their quorum; None without one."""
    if not state.persisted.is_bootstrapped or not state.has_quorum:
        return None
    lost = next((voter for voter in state.voters if is_lost(state, voter)), None)
    if lost is None:
        return None
    rest = [voter for voter in state.all_voters if voter is not lost]
    if sum(voter.is_healthy for voter in rest) < quorum(len(rest)):
        return None
    return lost


def removable_corrupt(state: ClusterState) -> Member | None:
    """A listed member whose data etcd found to differ, while a quorum of all voters is not named."""
    if not state.persisted.is_bootstrapped or not state.has_quorum:
        return None
    trusted = sum(voter.is_healthy and voter.id not in state.corrupt for voter in state.all_voters)
    named = next((member for member in state.members if member.id in state.corrupt), None)
    return named if trusted >= state.quorum else None


def remount(state: ClusterState) -> Plan | None:
    """Recreate the pod that is the first to report missing data: its volume may not have been mounted.

    That loses nothing, so it needs no quorum, and may bring one back.
    """
    if not state.persisted.is_bootstrapped or state.persisted.is_recovering:
        return None
    empty = next((member for member in state.members if _must_be_remade(state, member)), None)
    if empty is None:
        return None
    return Plan.act(
        RecreatePod(name=empty.name),
        reason="Remounting",
        message=f"{empty.name} reports that its data is missing: recreating its pod to confirm it",
        requeue_after=CATCH_UP,
    )


def _must_be_remade(state: ClusterState, member: Member) -> bool:
    pod, claim = member.pod, member.claim
    if pod is None or pod.is_terminating or claim is None or claim.is_terminating:
        return False
    is_member = member.entry is not None or not state.has_quorum
    return is_member and _reports_a_loss(state, member) and not member.is_remade


def is_lost(state: ClusterState, member: Member) -> bool:
    """Whether a member that etcd lists has lost its data for good."""
    if member.is_healthy:
        return False
    reports = _reports_a_loss(state, member) and state.kind.is_loss_confirmed(member)
    return reports or state.kind.is_storage_lost(member)


def _reports_a_loss(state: ClusterState, member: Member) -> bool:
    """Its process reports, and not for the first time, that it has no data, or none that it can read.

    Data that a version under trial cannot read may be readable by the earlier one.
    """
    pod = member.pod
    if pod is None or pod.is_running:
        return False
    if pod.has_no_data:
        return pod.restarts > 0
    crashes = 1 if member.is_remade else CRASHES
    return pod.has_broken_data and pod.restarts >= crashes and not may_fail_by_version(state, member)
