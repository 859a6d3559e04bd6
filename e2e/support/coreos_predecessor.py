"""Clusters of CoreOS' operator (etcd.database.coreos.com/v1beta2).

Pods with a random suffix, which the EtcdCluster owns, a headless Service for peers and one for clients, both
selecting by labels that our pods have, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from e2e.support.clusters import Document
from e2e.support.predecessors import Predecessor, member_container, owned_by, service
from e2e.support.space import Space

DATABASE = "etcd.database.coreos.com"
SUFFIXES = ("7fpbkgxwc2", "mzs4k9t6vd", "x2n8qlh5jr")


@contextmanager
def database_crd(space: Space) -> Iterator[None]:
    """The CustomResourceDefinition of CoreOS' operator. Its short name is left out: it would hide ours."""
    names = {"kind": "EtcdCluster", "listKind": "EtcdClusterList", "plural": "etcdclusters"}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    name = f"etcdclusters.{DATABASE}"
    space.kubectl.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {"group": DATABASE, "names": names, "scope": "Namespaced", "versions": [version]},
        }
    )
    try:
        space.kubectl("wait", f"crd/{name}", "--for=condition=Established")
        space.kubectl("api-resources")
        yield
    finally:
        space.kubectl("delete", "crd", name, "--ignore-not-found")
        space.kubectl("api-resources")


def of_coreos(space: Space, name: str, version: str) -> Predecessor:
    """A cluster of three as CoreOS' operator leaves it. Needs `database_crd`."""
    kubectl, made = space.kubectl, Predecessor(space, name, f"app=etcd,etcd_cluster={name},etcd_node")
    kubectl.create(
        {
            "apiVersion": f"{DATABASE}/v1beta2",
            "kind": "EtcdCluster",
            "metadata": {"name": name},
            "spec": {"size": 3, "version": version, "repository": "quay.io/coreos/etcd"},
        }
    )
    owner = owned_by(kubectl.json("get", f"etcdclusters.{DATABASE}", name))
    kubectl.create(_deployment())
    labels = {"app": "etcd", "etcd_cluster": name}
    client, peer = ({"name": key, "port": port} for key, port in (("client", 2379), ("peer", 2380)))
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True}
    kubectl.create(service(name, labels, owner, ports=[client, peer], **headless))
    kubectl.create(service(f"{name}-client", labels, owner, ports=[client]))
    names = [f"{name}-{suffix}" for suffix in SUFFIXES]
    host = f"{{}}.{name}.{space.namespace}.svc"
    initial = ",".join(f"{each}=http://{host.format(each)}:2380" for each in names)
    for each in names:
        pod_labels = {**labels, "etcd_node": each}
        metadata = {
            "name": each,
            "labels": pod_labels,
            "annotations": {"etcd.version": version},
            "ownerReferences": owner,
        }
        spec = _pod(each, name, host.format(each), initial, version)
        kubectl.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    made.wait_running(3)
    return made


def _deployment() -> Document:
    """What stands for the operator itself: it runs no pods."""
    labels = {"name": "etcd-operator"}
    containers = [{"name": "etcd-operator", "image": "quay.io/coreos/etcd-operator:v0.9.4"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "etcd-operator"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


def _pod(name: str, cluster: str, host: str, initial: str, version: str) -> Document:
    flags = [
        "--initial-cluster-token=8f2a1c5e-6b1d-4f5e-9f0e-3f6f2f1f7a11",
        "--strict-reconfig-check=true",
        "--listen-metrics-urls=http://0.0.0.0:2381",
    ]
    ports = [{"name": "server", "containerPort": 2380}, {"name": "client", "containerPort": 2379}]
    container = member_container(name, host, initial, version, *flags, folder="/var/etcd")
    return {
        "hostname": name,
        "subdomain": cluster,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [{**container, "ports": ports}],
        "volumes": [{"name": "etcd-data", "emptyDir": {}}],
    }
