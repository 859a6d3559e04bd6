"""Pods of ours that lost the labels by which they are known get them back before anything is concluded.

What lacks its labels is in no cache under its cluster's name: it would count as lost. And a ReplicaSet lets
go of such a pod and makes another one on the same claim; with its labels back, it takes the pod back and
removes the younger of the two.
"""

from etcd_operator.core.actions import Plan, RestoreLabels
from etcd_operator.core.state import ClusterState

STEP = 0.1
"""Seconds until the cluster is looked at again: by then the caches have the pods."""


def restore(state: ClusterState) -> Plan | None:
    """Give pods their labels back."""
    if not state.unlabelled:
        return None
    names = ", ".join(pod.member for pod in state.unlabelled)
    return Plan.act(
        *(RestoreLabels(name=pod.member, pod=pod.name, uid=pod.uid) for pod in state.unlabelled),
        reason="Repairing",
        message=f"giving the pods of {names} their labels back",
        requeue_after=STEP,
    )
