"""The one learner that may be pending: it is started, promoted, or removed to begin again (I1, I2)."""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Promote
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import join, remove
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import (
    is_losing_data,
    is_lost,
    may_change,
    pending_learner,
    removable,
    removable_corrupt,
)
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import RECHECK, STEP, pause
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import creating
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import start_again
from etcd_operator.controllers.etcd_cluster.decide.upgrade.state_machine import grows_first

LONG_SILENCE = 120.0
"""Seconds of silence after which a learner that runs is reported."""

TOO_LONG = 600.0
"""Seconds of silence after which it is removed: the leader has sent some gigabytes by then."""


def remove_outdated(state: ClusterState) -> Plan | None:
    """Remove a learner that has not started before a lost voter, or one with corrupt data, is removed.

    Its flags list the members as they were. etcd compares them with the list before it writes
    anything, and refuses for ever once a member is gone (`member count is unequal`).
    """
    learner = pending_learner(state)
    if learner is None or learner.entry is None or learner.entry.name:
        return None
    if removable(state) is None and removable_corrupt(state) is None:
        return None
    return remove(
        state, learner.name, learner.id, f"{learner.name} has not started, and a voter has to be removed"
    )


def finish(state: ClusterState) -> Plan | None:
    """Start the pending learner, promote it, or remove it again."""
    learner = pending_learner(state)
    if not may_change(state) or learner is None or learner.entry is None:
        return None
    name, entry = learner.name, learner.entry
    has_objects = state.kind.is_made(learner)
    was_lost = is_losing_data(state, learner) or (
        is_lost(state, learner) if has_objects else bool(entry.name)
    )
    if len(state.voters) >= state.desired.size or was_lost:
        why = f"{name} was lost while it joined" if was_lost else f"{name} is not needed"
        return remove(state, name, entry.id, why)
    if not has_objects:
        return join(state, name, ())
    if _has_useless_volume(learner):
        why = f"{name} cannot be scheduled with its volume: removing it, and its claim, to begin again"
        return remove(state, name, entry.id, why)
    if not entry.name and learner.pod is not None and learner.pod.can_never_join:
        return remove(state, name, entry.id, f"{name} can never start as it is: removing it to begin again")
    if learner.problem is not None:
        return start_again(state, learner) or Plan.hold(
            learner.problem.reason, f"{name}: {learner.problem.message}", requeue_after=1.0
        )
    is_terminating = learner.pod is not None and learner.pod.is_terminating
    if learner.answer is None or is_terminating:
        return _await_answer(state, learner)
    return Plan.act(
        Promote(name=name, member_id=entry.id),
        reason="ScalingUp",
        message=f"{name} has caught up: promoting it to a voter",
        requeue_after=STEP,
    )


def _has_useless_volume(learner: Member) -> bool:
    """Whether its pod has had no node for too long, as where no node of the volume's zone is left.

    Without a volume another member would wait for the same node.
    """
    claim, pod = learner.claim, learner.pod
    is_unscheduled = pod is not None and not pod.is_assigned and pod.creating_for >= TOO_LONG
    return is_unscheduled and claim is not None and claim.is_bound


def _await_answer(state: ClusterState, learner: Member) -> Plan:
    """Wait for a learner that runs; report when that takes long, and begin again when it takes too long.

    A process that hangs or is cut off does not recover by itself, but one that receives much data from the
    leader does. So after the first bound the learner is only reported, unless it blocks the repair of another
    member or an upgrade. The second bound is long enough to be the only back-off that attempts need.
    """
    name = learner.name
    late = creating(learner)
    if late:
        step = f"; to begin again with another volume: kubectl delete pvc {name}" if learner.claim else ""
        return Plan.hold("ContainerCreating", f"{name} is joining{late}{step}", requeue_after=RECHECK)
    if learner.silent_for < LONG_SILENCE:
        return Plan.wait("ScalingUp", f"waiting for {name} to start", requeue_after=pause(learner, STEP))
    if learner.silent_for >= TOO_LONG or _is_wanted_otherwise(state):
        return remove(
            state, name, learner.id, f"{name} runs, but does not answer: removing it to begin again"
        )
    return Plan.hold(
        "LearnerSilent",
        f"{name} is joining, but has not answered for {LONG_SILENCE / 60:.0f} minutes: see its log; "
        f"after {TOO_LONG / 60:.0f} minutes, or when it blocks another change, it is removed to begin again",
        requeue_after=RECHECK,
    )


def _is_wanted_otherwise(state: ClusterState) -> bool:
    """Whether something else waits for the learner to go; an upgrade that needs it, or its like, does not."""
    versions = {voter.requested_version for voter in state.voters} - {"", state.desired.version}
    is_upgrade_due = bool(versions) and not state.persisted.is_adopting and not grows_first(state)
    return is_upgrade_due or any(not voter.is_healthy for voter in state.voters)
