"""How members with TLS serve clients: recorded first, then carried out by restarts."""

from dataclasses import replace

import msgspec

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.desired import members_of
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import RESTARTING


def change(state: ClusterState) -> Plan | None:
    """Record how clients are to be served. `upgrade.roll` restarts the members that serve them otherwise."""
    recorded, asked = state.persisted.tls, state.desired.tls
    if recorded is None or asked is None or not state.persisted.is_bootstrapped:
        return None
    wanted = members_of(asked)
    record = msgspec.structs.replace(recorded, mode=wanted.mode, min_version=wanted.min_version)
    if record == recorded:
        return None
    return Plan.act(
        Remember(persisted=replace(state.persisted, tls=record)),
        reason=RESTARTING,
        message=f"recording how clients are served: tls.client.mode {record.mode}, minVersion "
        f"{record.min_version or 'TLS1.2'}",
        requeue_after=STEP,
    )
