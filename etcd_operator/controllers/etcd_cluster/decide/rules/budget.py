"""How many members an eviction must leave: updated before every change of membership.

It asks for the quorum of the larger of the number of voters and the desired size (`facts.budget`). So it is
raised before the first learner joins, and lowered only when a voter has been removed.

A member that is stopped or removed on purpose still counts until its kubelet has reported the end, for a
second or two. So one more is asked for right before that: Kubernetes allows no eviction until it has observed
the change of the budget.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Action, KeepBudget, Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.facts.budget import (
    min_available,
    missing_budget,
    stops_next,
)
from etcd_operator.controllers.etcd_cluster.decide.members import quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.holds import CATCH_UP


def budget(state: ClusterState) -> Plan | None:
    """Create the budget of a bootstrapped cluster, restore it, or change it with the number of voters."""
    actions = missing_budget(state) if state.persisted.is_bootstrapped else ()
    return _protecting(*actions) if actions else None


def before_stop(state: ClusterState) -> Plan | None:
    """Ask for one more before the next rules remove a member, or stop one for an upgrade.

    Right before them: what other rules wait for may take days, and evictions go on until then.
    """
    if state.external or not stops_next(state):
        return None
    voters = len(state.voters)
    wanted = max(min_available(state), min(quorum(voters) + 1, voters))
    return _protecting(KeepBudget(min_available=wanted)) if state.budget != wanted else None


def _protecting(*actions: Action) -> Plan:
    return Plan(
        actions=actions,
        stage=Stage.WORKING,
        reason="Protecting",
        message="protecting the quorum from evictions",
        requeue_after=CATCH_UP,
        is_quiet=True,
    )
