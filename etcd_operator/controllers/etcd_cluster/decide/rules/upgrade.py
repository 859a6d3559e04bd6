"""The rules of an upgrade."""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, ReplaceMember
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import in_former_pods
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade import state_machine
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import skew_refusal
from etcd_operator.controllers.etcd_cluster.decide.upgrade.state_machine import next_step
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import planned


def refused(state: ClusterState) -> Plan | None:
    """Report why the desired version is refused. The members are kept at the versions that they run."""
    why = skew_refusal(state) if state.persisted.is_bootstrapped else ""
    return Plan.hold("UpgradeRefused", why) if why else None


def roll(state: ClusterState) -> Plan | None:
    """Take the next step of the upgrade that is under way or desired."""
    return state_machine.roll(state)


def restart_crashed(state: ClusterState) -> Plan | None:
    """Start a voter that does not run at the desired version, before anything that may wait for it.

    That costs nothing, whatever else is wrong. A learner that finds no node, or data that differs, would keep
    the upgrade from its turn, and with it the way back that status advises. Not while a voter is to be
    removed, or pods of another operator are left.
    """
    step = next_step(state)
    if step is None or not isinstance(step.action, ReplaceMember):
        return None
    member = state.by_name[step.action.name]
    if member not in state.voters or member.is_running or len(state.voters) > state.desired.size:
        return None
    if state.persisted.is_adopting or in_former_pods(state):
        return None
    return planned(state, step)
