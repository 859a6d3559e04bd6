"""How many members an eviction must leave: updated before every change of membership.

The budget counts the pods of members that serve (see `core.readiness`), and asks for the quorum
of the larger of the number of voters and the desired size. So it is raised before the
first learner joins, and lowered only when a voter has been removed.
"""

from etcd_operator.core.actions import Action, KeepBudget, Plan, Stage
from etcd_operator.core.members import quorum
from etcd_operator.core.state import ClusterState
from etcd_operator.core.status import CATCH_UP


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
    wanted = min_available(state)
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
