"""Clients leave a member before it is removed or stopped (see `facts.departing`)."""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.facts.departing import departing
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


def await_clients(state: ClusterState) -> Plan | None:
    """Wait until no new connection of a client is sent to the member: its label is removed in this pass."""
    member = departing(state)
    if member is None or not state.is_departing_reached:
        return None
    return Plan(
        stage=Stage.WORKING,
        reason="Departing",
        message=f"waiting until no client is sent to {member.name}",
        requeue_after=STEP,
        is_quiet=True,
    )
