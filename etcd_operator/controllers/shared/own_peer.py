"""The operator's own pods, as a NetworkPolicy names them."""

from dataclasses import dataclass, field
from typing import Any

from etcd_operator.api.meta import RawObject
from etcd_operator.errors import NotFound, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.own_pod import OwnPod

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""Kubernetes sets it on each namespace."""

OF_ONE_POD = frozenset(
    {
        "pod-template-hash",
        "controller-revision-hash",
        "apps.kubernetes.io/pod-index",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels that controllers set: the operator's next pod has another value."""


class OperatorUnknown(TerminalError):
    """No NetworkPolicy can name the operator's pods."""


@dataclass(kw_only=True)
class OwnPeer:
    """By the labels of the pod of this process, and its namespace. They are read once."""

    client: Client
    pod: OwnPod | None
    _known: RawObject | None = field(default=None, init=False)

    def __call__(self) -> RawObject:
        """The peer of a NetworkPolicy. Raises `OperatorUnknown`, and the errors of `Client`."""
        self._known = self._known or self._read()
        return self._known

    def _read(self) -> RawObject:
        if self.pod is None:
            raise OperatorUnknown("the operator does not run in a pod of its own, which a policy could name")
        name, namespace = self.pod.name, self.pod.namespace
        try:
            found = self.client.get(resources.PODS, Key(namespace, name), dict[str, Any])
        except NotFound as error:
            raise OperatorUnknown(f"the operator's own pod {name} does not exist") from error
        labels = found["metadata"].get("labels") or {}
        labels = {label: value for label, value in labels.items() if label not in OF_ONE_POD}
        if found["spec"].get("hostNetwork"):
            raise OperatorUnknown(f"the operator's pod {name} has hostNetwork: no policy can name it")
        if not labels:
            raise OperatorUnknown(f"the operator's pod {name} has no labels by which a policy could name it")
        return {
            "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}},
            "podSelector": {"matchLabels": labels},
        }
