"""The voters and the pending learner: whether they may change, whose data cannot come back, who made them."""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, RecreatePod
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import may_fail_by_version
from etcd_operator.controllers.shared.decide.holds import CATCH_UP

CRASHES = 3
"""Restarts after which a member that reports broken data is believed.

The kubelet restarts at once, then after 10 and 20 s; a disk may answer wrongly once."""


def may_change(state: ClusterState) -> bool:
    """Whether etcd's list is to be trusted, and there is a member to ask for a change of it.

    Without one, as where an alarm names the only voter, other rules report the reason.
    """
    return state.persisted.is_bootstrapped and state.has_quorum and bool(state.all_healthy_voters)


def is_losing_data(state: ClusterState, voter: Member) -> bool:
    """Whether its storage is being deleted, although it still serves."""
    storage = state.kind.storage_of(voter)
    return storage is not None and storage.is_terminating


def pending_learner(state: ClusterState) -> Member | None:
    """The learner among our members; None without one."""
    return next((m for m in state.members if m.entry is not None and m.entry.is_learner), None)


@fact
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


@fact
def removable_corrupt(state: ClusterState) -> Member | None:
    """A listed member whose data etcd found to differ, while a quorum of all voters is not named."""
    if not state.persisted.is_bootstrapped or not state.has_quorum:
        return None
    trusted = sum(voter.is_healthy and voter.id not in state.corrupt for voter in state.all_voters)
    named = next((member for member in state.members if member.id in state.corrupt), None)
    return named if trusted >= state.quorum else None


@fact
def remounting(state: ClusterState) -> Plan | None:
    """Recreate the pod that is the first to report missing data: its volume may not have been mounted.

    That loses nothing, so it needs no quorum, and may bring one back.
    """
    recovery = state.persisted.recovery_under_way
    if not state.persisted.is_bootstrapped or (recovery is not None and not recovery.failure):
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


@fact
def in_former_pods(state: ClusterState) -> tuple[str, ...]:
    """The members that serve in pods of the other operator: only pods of this one have the readiness gate.

    Members that do not serve have other rules.
    """
    return tuple(member.name for member in state.members if _is_in_former_pod(member))


@fact
def left_outside(state: ClusterState) -> tuple[str, ...]:
    """The removed members of which only a ReplicaSet of the other operator is left, by its pod.

    Nothing that this operator may delete ends that pod.
    """
    if not state.kind.may_be_taken_over:
        return ()
    return tuple(member.name for member in state.members if _is_outside(member))


def _is_in_former_pod(member: Member) -> bool:
    pod = member.pod
    if pod is None or pod.is_terminating or pod.is_gated or not member.is_healthy:
        return False
    return member.peer is not None and not member.has_replica_set


def _is_outside(member: Member) -> bool:
    pod, claim = member.pod, member.claim
    if member.entry is not None or pod is None or pod.is_terminating or pod.is_gated:
        return False
    return member.peer is None and (claim is None or claim.is_terminating)
