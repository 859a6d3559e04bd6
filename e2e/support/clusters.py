"""Documents of the clusters that tests create: as small as they can be, so that many fit."""

from typing import Any

import pytest

Document = dict[str, Any]

RESTRICTED_POD = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
RESTRICTED_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""Security contexts that the Pod Security Standard `restricted` admits."""

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


def each_kind(*, ephemerals: Any = (), persistents: Any = ()) -> pytest.MarkDecorator:
    """Run a test with a `kind` of cluster after the other; arguments: marks of one of the two."""
    return pytest.mark.parametrize(
        "kind",
        [
            pytest.param(ephemeral, id="ephemeral", marks=ephemerals),
            pytest.param(persistent, id="persistent", marks=persistents),
        ],
    )


def size_of(document: Document) -> int:
    """How many members a document declares; the oldest form has `size` at the top."""
    spec = document.get("spec", {})
    return int(spec.get("size") or spec.get("replicas") or document["size"])
