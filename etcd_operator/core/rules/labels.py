"""The labels of members' pods are restored before anything is concluded from the absence of a pod.

A pod without its labels is in no cache under its cluster's name: it would count as lost. And a ReplicaSet
releases such a pod and creates another one on the same claim; once the labels are restored, it adopts the
pod again and deletes the younger of the two.
"""

from etcd_operator.core.actions import Plan, RestoreLabels
from etcd_operator.core.state import ClusterState

STEP = 0.1
"""Seconds until the cluster is observed again: by then the caches have the pods."""


def restore(state: ClusterState) -> Plan | None:
    """Restore the labels of pods."""
    if not state.unlabelled:
        return None
    names = ", ".join(pod.member for pod in state.unlabelled)
    return Plan.act(
        *(RestoreLabels(name=pod.member, pod=pod.name, uid=pod.uid) for pod in state.unlabelled),
        reason="Repairing",
        message=f"restoring the labels of the pods of {names}",
        requeue_after=STEP,
    )
