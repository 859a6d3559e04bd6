"""The operator's own pods, as a NetworkPolicy names them.

Labels of one pod do not name its successors: Kubernetes 1.35 copies the zone of the node to them, and others
contain versions. What selects the pods of the operator's ReplicaSet applies to all of them.
"""

from dataclasses import dataclass, field
from typing import Any

from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.controllers.shared.manifests.job import APP_LABEL
from etcd_operator.decoding import convert
from etcd_operator.errors import Forbidden, NotFound, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.own_pod import OwnPod

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""Kubernetes sets it on each namespace."""

OF_ONE_REVISION = frozenset({"pod-template-hash", "rollouts-pod-template-hash"})
"""Labels in the selector of a ReplicaSet: the one of the next revision has another value."""


class OperatorUnknown(TerminalError):
    """No NetworkPolicy can name the operator's pods."""


@dataclass(kw_only=True)
class OwnPeer:
    """By the selector of the ReplicaSet of this process, and its namespace. They are read once."""

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
        found = self.client.get(resources.PODS, Key(namespace, name), dict[str, Any])
        if found["spec"].get("hostNetwork"):
            raise OperatorUnknown(f"the operator's pod {name} has hostNetwork: no policy can name it")
        metadata = convert(found["metadata"], ObjectMeta)
        selector = self._of_replica_set(metadata) or _by_name(metadata)
        if not selector:
            raise OperatorUnknown(
                f"the operator's pod {name} is not of a Deployment: "
                f"give it the label {APP_LABEL}, by which a policy can name it"
            )
        return {
            "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}},
            "podSelector": selector,
        }

    def _of_replica_set(self, pod: ObjectMeta) -> RawObject:
        """What selects the pods of all revisions; empty if that is not known."""
        owners = (each for each in pod.owner_references if each.controller and each.kind == "ReplicaSet")
        owner = next(owners, None)
        if owner is None:
            return {}
        try:
            key = Key(pod.namespace, owner.name)
            found = self.client.get(resources.REPLICA_SETS, key, dict[str, Any])
        except (Forbidden, NotFound):
            return {}
        selector = found["spec"]["selector"]
        labels = selector.get("matchLabels", {}).items()
        kept = {
            "matchLabels": {name: value for name, value in labels if name not in OF_ONE_REVISION},
            "matchExpressions": [
                each for each in selector.get("matchExpressions", ()) if each["key"] not in OF_ONE_REVISION
            ],
        }
        return {part: value for part, value in kept.items() if value}


def _by_name(pod: ObjectMeta) -> RawObject:
    name = pod.labels.get(APP_LABEL, "")
    return {"matchLabels": {APP_LABEL: name}} if name else {}
