"""How many members an eviction must leave, and whether one that counts is about to be stopped.

The budget counts the pods of members that serve (see `decide.readiness`), and asks for the quorum
of the larger of the number of voters and the desired size.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    KeepBudget,
    MoveLeader,
    Plan,
    RemoveMember,
    ReplaceMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import next_removal
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade import state_machine
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import Step


@fact
def missing_budget(state: ClusterState) -> tuple[Action, ...]:
    """The write of the budget; empty if it exists and is right."""
    wanted = max(min_available(state), (state.budget or 0) if _keeps_more(state) else 0)
    return () if state.budget == wanted else (KeepBudget(min_available=wanted),)


@fact
def min_available(state: ClusterState) -> int:
    """The quorum of the larger of the number of voters and the desired size.

    In an adoption external members vote, too: as many of ours as are needed beside the healthy ones of them.

    While nobody reports who votes, the initial members count (before the bootstrap), or else the budget is
    not lowered.
    """
    bootstrap = state.persisted.bootstrap
    voters = len(state.voters)
    if bootstrap is not None and not state.persisted.is_bootstrapped:
        voters = len(bootstrap.members)
    healthy = sum(member.is_healthy for member in state.external)
    beside = min(state.quorum - healthy, len(state.voters)) if state.external else 0
    wanted = max(quorum(max(voters, state.desired.size)), beside)
    return max(wanted, state.budget or 0) if voters == 0 else wanted


def _keeps_more(state: ClusterState) -> bool:
    """Whether a budget that asks for more stays: a pod counts, or will count, whose member does not serve."""
    if state.external:
        return False
    removal, step = next_removal(state), state_machine.next_step(state)
    if removal is not None and removal.stage is Stage.WORKING:
        return True
    return _is_upgrading(state, step) or _counts_too_many(state)


def _is_upgrading(state: ClusterState, step: Step | None) -> bool:
    """Whether an upgrade has stopped a member, or is about to stop the next one."""
    if step is None or step.is_held:
        return False
    return _stops_one(state, step) or (state.persisted.upgrade is not None and not _awaits_others(state))


def _awaits_others(state: ClusterState) -> bool:
    """Whether an upgrade waits for members that it has not stopped, which may last for days."""
    answers = [voter.answer for voter in state.voters]
    have_problems = any(answer is None or answer.is_unhealthy or answer.errors for answer in answers)
    return state.upgrading_member is None and have_problems


def _stops_one(state: ClusterState, step: Step | None) -> bool:
    """Whether the upgrade is about to stop a voter that counts."""
    action = step.action if step is not None else None
    if isinstance(action, ReplaceMember):
        return _counts(state.by_name[action.name])
    return isinstance(action, MoveLeader)


def _counts_too_many(state: ClusterState) -> bool:
    """Whether a pod counts whose member is no voter that serves (any more)."""
    return any(_counts(member) and member not in state.healthy_voters for member in state.members)


def _counts(member: Member) -> bool:
    return member.pod is not None and bool(member.pod.serves) and not member.pod.is_terminating


@fact
def stops_next(state: ClusterState) -> bool:
    """Whether a member that counts is about to be removed or stopped, if no other rule comes before that."""
    return _removes_one(state, next_removal(state)) or _stops_one(state, state_machine.next_step(state))


def _removes_one(state: ClusterState, removal: Plan | None) -> bool:
    """Whether a voter that counts is about to be removed, and the quorum of the others is no smaller."""
    actions = removal.actions if removal is not None else ()
    removed = [state.by_name[action.name] for action in actions if isinstance(action, RemoveMember)]
    return len(state.voters) % 2 == 1 and any(map(_counts, removed))
