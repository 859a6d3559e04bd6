"""How many members an eviction must leave: updated before every change of membership.

The budget counts the pods of members that serve (see `core.readiness`), and asks for the quorum
of the larger of the number of voters and the desired size. So it is raised before the
first learner joins, and lowered only when a voter has been removed.

A member that is stopped or removed on purpose still counts until its kubelet has reported the end, for a
second or two. So one more is asked for before that: Kubernetes allows no eviction until it has observed the
change of the budget.
"""

from etcd_operator.core.actions import Action, KeepBudget, Plan, ReplaceMember, Stage
from etcd_operator.core.members import Member, quorum
from etcd_operator.core.membership_actions import MoveLeader, RemoveMember
from etcd_operator.core.rules import scale
from etcd_operator.core.state import ClusterState
from etcd_operator.core.status import CATCH_UP
from etcd_operator.core.upgrade import state_machine
from etcd_operator.core.upgrade.step import Step


def budget(state: ClusterState) -> Plan | None:
    """Create, raise, lower or restore the budget of a bootstrapped cluster."""
    actions = missing_budget(state) if state.persisted.is_bootstrapped else []
    if not actions:
        return None
    return Plan(
        actions=tuple(actions),
        stage=Stage.WORKING,
        reason="Protecting",
        message="protecting the quorum from evictions",
        requeue_after=CATCH_UP,
        is_quiet=True,
    )


def missing_budget(state: ClusterState) -> list[Action]:
    """The write of the budget; empty if it exists and is right."""
    wanted = _wanted(state)
    return [] if state.budget == wanted else [KeepBudget(min_available=wanted)]


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


def _wanted(state: ClusterState) -> int:
    """`min_available`, or more where a pod counts, or will count, whose member does not serve."""
    least, voters = min_available(state), len(state.voters)
    if state.external:
        return least
    removal, step = scale.down(state), state_machine.next_step(state)
    if _removes_one(state, removal) or _stops_one(state, step):
        return max(least, min(quorum(voters) + 1, voters))
    is_removing = removal is not None and removal.stage is Stage.WORKING
    is_upgrading = state.persisted.upgrade is not None and step is not None and not step.is_held
    if is_removing or is_upgrading or _counts_too_many(state):
        return max(least, state.budget or 0)
    return least


def _removes_one(state: ClusterState, removal: Plan | None) -> bool:
    """Whether a voter that counts is about to be removed, and the quorum of the others is no smaller."""
    actions = removal.actions if removal is not None else ()
    removed = [state.by_name[action.name] for action in actions if isinstance(action, RemoveMember)]
    return len(state.voters) % 2 == 1 and any(map(_counts, removed))


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
