"""The pod of a seed that does not get started: a volume that cannot be attached, a Secret that is missing.

Kubernetes reports the reason in Events only, and goes on trying. So nothing is done here but the report.
"""

from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.formats import duration_text

CREATING = (120, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400)
"""Seconds for which the pod of a seed has been ContainerCreating when that is reported, and reported again.

Steps, because each other message is a write of the status. A large image may take the first of them.
"""


def creating(seed: Member) -> str:
    """That the pod of a seed does not get started, as the end of a message; empty if it is not late."""
    pod = seed.pod
    reached = [seconds for seconds in CREATING if pod is not None and pod.creating_for >= seconds]
    if pod is None or not reached:
        return ""
    return (
        f"; the pod {pod.name} has been ContainerCreating for more than {duration_text(reached[-1])}: "
        f"`kubectl describe pod {pod.name}` shows which volume, Secret or image is missing"
    )
