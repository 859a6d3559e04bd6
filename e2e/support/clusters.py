"""Documents of the clusters that tests create: as small as they can be, so that many fit."""

from typing import Any

Document = dict[str, Any]

COREOS = "coreos.com/v1"
IMPROBABLE = "etcd.improbable.io/v1alpha1"


def ephemeral(name: str = "example-etcd-cluster", size: int = 3, **spec: Any) -> Document:
    """A cluster of coreos.com."""
    return {
        "apiVersion": COREOS,
        "kind": "EtcdCluster",
        "metadata": {"name": name},
        "spec": {"size": size, **spec},
    }


def persistent(
    name: str = "my-cluster", replicas: int = 3, storage_class: str = "standard", **spec: Any
) -> Document:
    """A cluster of etcd.improbable.io."""
    claim = {"storageClassName": storage_class, "resources": {"requests": {"storage": "50Mi"}}}
    return {
        "apiVersion": IMPROBABLE,
        "kind": "EtcdCluster",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "version": "3.6.16",
            "storage": {"volumeClaimTemplate": claim},
            **spec,
        },
    }


def size_of(document: Document) -> int:
    """How many members a document declares; the oldest form has `size` at the top."""
    spec = document.get("spec", {})
    return int(spec.get("size") or spec.get("replicas") or document["size"])
