"""Plans of clusters whose disruption budget is always as it must be: see test_protect.py."""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide import plan as rules
from etcd_operator.controllers.etcd_cluster.decide.actions import KeepBudget, Plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


def plan(state: ClusterState) -> Plan:
    """What is planned once the budget suits it."""
    made = rules.plan(state)
    asked = [action.min_available for action in made.actions if isinstance(action, KeepBudget)]
    return rules.plan(replace(state, budget=asked[0])) if asked else made
