"""Members that do not run are started at the desired version before anything that may wait for them.

That costs nothing, whatever else is wrong. A learner that finds no node, or data that differs, would keep the
upgrade from its turn, and with it the way back that status advises.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, ReplaceMember
from etcd_operator.controllers.etcd_cluster.decide.facts.former_operator import in_former_pods
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.state_machine import next_step
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import planned


def restart(state: ClusterState) -> Plan | None:
    """Start a voter that does not run, unless one is to be removed or another operator's pods are left."""
    step = next_step(state)
    if step is None or not isinstance(step.action, ReplaceMember):
        return None
    member = state.by_name[step.action.name]
    if member not in state.voters or member.is_running or len(state.voters) > state.desired.size:
        return None
    if state.persisted.is_adopting or in_former_pods(state):
        return None
    return planned(state, step)
