"""What a pass reports of a cluster in metrics."""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.facts.expiries import expiries
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import available
from etcd_operator.object_metrics import CertificateMetrics, ClusterMetrics


def cluster_metrics(state: ClusterState, plan: Plan) -> ClusterMetrics:
    """What a pass that observed `state`, and reports `plan`, has found.

    A pause is a hold here, although nothing is wrong: it also holds the recovery of a lost quorum.
    In an adoption external members serve before ours do; without a quorum nobody serves.
    """
    serves, reason, _ = available(state)
    has_joined = state.persisted.is_adopting and bool(state.members)  # one that was turned back has none
    is_lost = reason == "QuorumLost" or (has_joined and not state.has_quorum)
    is_known = serves or is_lost
    is_held = plan.stage is Stage.HELD and plan.reason not in ("Deleting", "TurnedBack")
    return ClusterMetrics(
        is_available=serves if is_known else None,
        held=plan.reason if is_held else "",
        working=plan.reason if plan.stage is Stage.WORKING else "",
        certificates=tuple(
            CertificateMetrics(kind=each.kind, renewal=each.renewal.timestamp(), expiry=each.end.timestamp())
            for each in expiries(state)
        ),
    )
