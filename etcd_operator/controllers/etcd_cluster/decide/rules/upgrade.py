"""The rules of an upgrade."""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade import state_machine
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import skew_refusal


def refused(state: ClusterState) -> Plan | None:
    """Report why the desired version is refused. The members are kept at the versions that they run."""
    why = skew_refusal(state) if state.persisted.is_bootstrapped else ""
    return Plan.hold("UpgradeRefused", why) if why else None


def roll(state: ClusterState) -> Plan | None:
    """Take the next step of the upgrade that is under way or desired."""
    return state_machine.roll(state)
