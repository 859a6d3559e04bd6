"""The one learner that may be pending: it is started, promoted, or removed to begin again (I1, I2)."""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    Plan,
)
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import (
    after_addition,
    before_removal,
    remember,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.member_names import ordinal_of
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.membership_actions import Promote, RemoveMember
from etcd_operator.controllers.etcd_cluster.decide.polling import pause
from etcd_operator.controllers.etcd_cluster.decide.rules.objects import joining
from etcd_operator.controllers.etcd_cluster.decide.rules.replace import is_lost, removable, removable_corrupt
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import start_again
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import joining_version
from etcd_operator.controllers.etcd_cluster.decide.upgrade.state_machine import grows_first

STEP = 0.1
"""Seconds between observations while a member starts or catches up: neither causes an event."""

LONG_SILENCE = 120.0
"""Seconds of silence after which a learner that runs is reported."""

TOO_LONG = 600.0
"""Seconds of silence after which it is removed: the leader has sent some gigabytes by then."""

RECHECK = 2.0
"""Seconds between observations of a learner that has been silent for long."""


def remove_outdated(state: ClusterState) -> Plan | None:
    """Remove a learner that has not started before a lost voter, or one with corrupt data, is removed.

    Its flags list the members as they were. etcd compares them with the list before it writes
    anything, and refuses for ever once a member is gone (`member count is unequal`).
    """
    learner = pending(state)
    if learner is None or learner.entry is None or learner.entry.name:
        return None
    if removable(state) is None and removable_corrupt(state) is None:
        return None
    return remove(
        state, learner.name, learner.id, f"{learner.name} has not started, and a voter has to be removed"
    )


def finish(state: ClusterState) -> Plan | None:
    """Start the pending learner, promote it, or remove it again."""
    learner = pending(state)
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


def may_change(state: ClusterState) -> bool:
    """Whether etcd's list is to be trusted, and there is a member to ask for a change of it.

    Without one, as where an alarm names the only voter, other rules report the reason.
    """
    return state.persisted.is_bootstrapped and state.has_quorum and bool(state.all_healthy_voters)


def is_losing_data(state: ClusterState, voter: Member) -> bool:
    """Whether its storage is being deleted, although it still serves."""
    storage = state.kind.storage_of(voter)
    return storage is not None and storage.is_terminating


def _await_answer(state: ClusterState, learner: Member) -> Plan:
    """Wait for a learner that runs; report when that takes long, and begin again when it takes too long.

    A process that hangs or is cut off does not recover by itself, but one that receives much data from the
    leader does. So after the first bound the learner is only reported, unless it blocks the repair of another
    member or an upgrade. The second bound is long enough to be the only back-off that attempts need.
    """
    name = learner.name
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


def pending(state: ClusterState) -> Member | None:
    """The learner among our members; None without one."""
    return next((m for m in state.members if m.entry is not None and m.entry.is_learner), None)


def remove(state: ClusterState, name: str, member_id: str, why: str) -> Plan:
    """Remove a learner: it has no vote, and no data that others lack."""
    return Plan.act(
        *remember(state, _with_number_used(before_removal(state, name), state, name)),
        RemoveMember(name=name, member_id=member_id),
        DeleteMember(name=name),
        reason="Removing",
        message=why,
        requeue_after=STEP,
    )


def join(state: ClusterState, name: str, first: tuple[Action, ...]) -> Plan:
    """Create the objects of a member that etcd lists once `first` is done."""
    actions = [*first, *remember(state, _with_number_used(after_addition(state), state, name))]
    start = joining(state, name, state.desired.token)
    actions.append(CreateMember(name=name, start=start, version=joining_version(state)))
    if state.kind.has_member_services:
        actions.append(CreateMemberService(name=name))
    return Plan.act(*actions, reason="ScalingUp", message=f"adding {name}", requeue_after=STEP)


def _with_number_used(record: PersistedState, state: ClusterState, name: str) -> PersistedState:
    """The record with this number used up, where none is used twice.

    Only once etcd lists the name: an add that etcd refuses for now is tried again with the
    same number, and a crash in between leaves the number in etcd's list.
    """
    ordinal = ordinal_of(name)
    if state.kind.reuses_numbers or ordinal < state.persisted.next_ordinal:
        return record
    return replace(record, next_ordinal=ordinal + 1)
