"""What a fresh cluster holds before anybody uses it: cluster DNS and the default StorageClass.

Promises: DNS answers are never cached (TTL 0, no cache plugin), so tests see a change at once; a name
outside of the cluster does not exist, because nothing may leave the machine.
"""

from __future__ import annotations

from typing import Any

from . import images
from .plan import Plan

COREFILE = """cluster.local:53 in-addr.arpa:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa {
        ttl 0
    }
}
.:53 {
    template ANY ANY {
        rcode NXDOMAIN
    }
}
"""
STORAGE_CLASS = "standard"
_LABELS = {"k8s-app": "kube-dns"}
_META = {"name": "coredns", "namespace": "kube-system"}


def manifests(plan: Plan) -> dict[str, Any]:
    """Return all objects as one List."""
    items = [
        _storage_class(),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _META},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _META, "data": {"Corefile": COREFILE}},
        *_rights(),
        _deployment(),
        _service(plan),
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _storage_class() -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/host-path",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def _rights() -> list[dict[str, Any]]:
    group = "rbac.authorization.k8s.io"
    read = ["list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": read},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
    ]
    name = "system:coredns"
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rules,
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", **_META}],
        },
    ]


def _deployment() -> dict[str, Any]:
    container = {
        "name": "coredns",
        "image": images.COREDNS,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
    }
    pod = {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 1,
        "tolerations": [_leave_lost_node("not-ready"), _leave_lost_node("unreachable")],
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**_META, "labels": _LABELS},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS, "annotations": {"corefile": COREFILE}}, "spec": pod},
        },
    }


def _leave_lost_node(taint: str) -> dict[str, Any]:
    """Let DNS move away from a lost node in seconds instead of the usual five minutes."""
    key = f"node.kubernetes.io/{taint}"
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}


def _service(plan: Plan) -> dict[str, Any]:
    ports = [{"name": f"dns-{name.lower()}", "port": 53, "protocol": name} for name in ("UDP", "TCP")]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": _LABELS},
        "spec": {"clusterIP": plan.dns_address, "selector": _LABELS, "ports": ports},
    }
