"""What still runs in pods of another operator, whose members became members of ours."""

from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


@fact
def in_former_pods(state: ClusterState) -> tuple[str, ...]:
    """The members that serve in pods of the other operator: only pods of this one have the readiness gate.

    Members that do not serve have other rules.
    """
    return tuple(member.name for member in state.members if _is_in_former_pod(member))


@fact
def left_outside(state: ClusterState) -> tuple[str, ...]:
    """The removed members of which only a ReplicaSet of the other operator is left, by its pod.

    Nothing that this operator may delete ends that pod.
    """
    if not state.kind.may_be_taken_over:
        return ()
    return tuple(member.name for member in state.members if _is_outside(member))


def _is_in_former_pod(member: Member) -> bool:
    pod = member.pod
    if pod is None or pod.is_terminating or pod.is_gated or not member.is_healthy:
        return False
    return member.peer is not None and not member.has_replica_set


def _is_outside(member: Member) -> bool:
    pod, claim = member.pod, member.claim
    if member.entry is not None or pod is None or pod.is_terminating or pod.is_gated:
        return False
    return member.peer is None and (claim is None or claim.is_terminating)
