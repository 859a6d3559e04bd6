"""The pod that this process runs in, if it is the only operator in it.

A container of a pod is started only after its previous instance has ended, so an operator in the same pod
knows that its predecessor has ended. That is true for one container, not for two, and not for a process that
somebody runs beside it with `kubectl exec` and the same environment. So the pod is *claimed*: a Unix socket
is bound to an abstract name that contains the pod's UID. The kernel gives such a name to one process of a
network namespace at a time, all containers of a pod share that namespace, and the name is released when the
process ends, for whatever reason. Without the claim a process counts as one outside of a pod and waits for
the Lease like any other.
"""

import socket
from collections.abc import Mapping

import msgspec
import structlog

VARIABLES = {
    "uid": "ETCD_OPERATOR_POD_UID",
    "name": "ETCD_OPERATOR_POD_NAME",
    "namespace": "ETCD_OPERATOR_POD_NAMESPACE",
    "node": "ETCD_OPERATOR_NODE_NAME",
}
"""Set by the downward API in the manifests; a process outside of a pod has none of them."""

log = structlog.get_logger()

_claims: list[socket.socket] = []
"""Held until the process ends: a claim is never released earlier."""


class OwnPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that holds or seeks the Lease; `node` is where it runs."""

    uid: str
    name: str
    namespace: str
    node: str


def claim(environment: Mapping[str, str]) -> OwnPod | None:
    """The pod of this process until its end; None outside of a pod, or if another process has claimed it."""
    values = {field: environment.get(variable, "") for field, variable in VARIABLES.items()}
    if not all(values.values()):
        return None
    pod = OwnPod(**values)
    try:
        _claims.append(_bound(f"\0etcd-operator/{pod.uid}"))
    except OSError as error:
        log.warning("pod_not_claimed", pod=pod.name, error=str(error))
        return None
    return pod


def _bound(name: str) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(name)
    except OSError:
        bound.close()
        raise
    return bound
