"""Clusters as the two earlier operators make them: their objects, labels and owners, without those operators.

CoreOS' operator (etcd.database.coreos.com/v1beta2): pods with a random suffix, which the EtcdCluster owns, a
headless Service for peers and one for clients, both selecting by labels that our pods have, too.
Improbable's operator (etcd.improbable.io/v1alpha1): an EtcdPeer for each member, which owns a ReplicaSet of
one pod; claims without an owner; everything under the names that our objects have.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from e2e.support.clusters import IMPROBABLE, Document
from e2e.support.space import Space
from e2e.support.waiting import LONG, wait_until

IMAGE = "quay.io/coreos/etcd:v{}"
DATABASE = "etcd.database.coreos.com"
COREOS_SUFFIXES = ("7fpbkgxwc2", "mzs4k9t6vd", "x2n8qlh5jr")
PEERS_CRD = "etcdpeers.etcd.improbable.io"
PAUSED = "etcd.improbable.io/paused"
ADMISSION = "admissionregistration.k8s.io/v1"
APP = {"app.kubernetes.io/name": "etcd"}


@dataclass(frozen=True)
class Predecessor:
    """Such a cluster. selector: of its members' pods."""

    space: Space
    name: str
    selector: str

    def pods(self) -> list[Document]:
        """The pods, by name."""
        found = self.space.kubectl.json("get", "pods", "--selector", self.selector)["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def addresses(self) -> list[str]:
        """The addresses of the pods that run."""
        return [
            pod["status"]["podIP"]
            for pod in self.pods()
            if pod["status"].get("podIP") and "deletionTimestamp" not in pod["metadata"]
        ]

    def wait_running(self, size: int) -> None:
        """Wait until all containers run."""
        wait_until(
            lambda: len([pod for pod in self.pods() if pod["status"]["phase"] == "Running"]) == size,
            LONG,
            lambda: f"{self.name} runs: {[pod['status'] for pod in self.pods()]}",
        )


def _owner(stored: Document) -> list[Document]:
    metadata = stored["metadata"]
    return [
        {
            "apiVersion": stored["apiVersion"],
            "kind": stored["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


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
    owner = _owner(kubectl.json("get", f"etcdclusters.{DATABASE}", name))
    kubectl.create(_deployment())
    labels = {"app": "etcd", "etcd_cluster": name}
    client, peer = ({"name": key, "port": port} for key, port in (("client", 2379), ("peer", 2380)))
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True}
    kubectl.create(_service(name, labels, owner, ports=[client, peer], **headless))
    kubectl.create(_service(f"{name}-client", labels, owner, ports=[client]))
    names = [f"{name}-{suffix}" for suffix in COREOS_SUFFIXES]
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
        spec = _coreos_pod(each, name, host.format(each), initial, version)
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


def _service(name: str, labels: Document, owner: list[Document], **spec: Any) -> Document:
    metadata = {"name": name, "labels": labels, "ownerReferences": owner}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": labels, **spec}}


def _coreos_pod(name: str, cluster: str, host: str, initial: str, version: str) -> Document:
    command = [
        "/usr/local/bin/etcd",
        "--data-dir=/var/etcd/data",
        f"--name={name}",
        f"--initial-advertise-peer-urls=http://{host}:2380",
        "--listen-peer-urls=http://0.0.0.0:2380",
        "--listen-client-urls=http://0.0.0.0:2379",
        f"--advertise-client-urls=http://{host}:2379",
        f"--initial-cluster={initial}",
        "--initial-cluster-state=new",
        "--initial-cluster-token=8f2a1c5e-6b1d-4f5e-9f0e-3f6f2f1f7a11",
        "--strict-reconfig-check=true",
        "--listen-metrics-urls=http://0.0.0.0:2381",
    ]
    ports = [{"name": "server", "containerPort": 2380}, {"name": "client", "containerPort": 2379}]
    mounts = [{"name": "etcd-data", "mountPath": "/var/etcd"}]
    container = {"name": "etcd", "image": IMAGE.format(version), "command": command, "ports": ports}
    return {
        "hostname": name,
        "subdomain": cluster,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [{**container, "volumeMounts": mounts}],
        "volumes": [{"name": "etcd-data", "emptyDir": {}}],
    }


def of_improbable(space: Space, document: Document) -> Predecessor:
    """The cluster of a document as Improbable's operator leaves it; its resource is paused for ours.

    Their EtcdPeers lack a field that our schema requires, so the schema is relaxed meanwhile: the test must
    be exclusive.
    """
    kubectl, name, version = space.kubectl, document["metadata"]["name"], document["spec"]["version"]
    paused = {**document["metadata"], "annotations": {PAUSED: "true"}}
    kubectl.create({**document, "metadata": paused})
    owner = _owner(kubectl.json("get", f"etcdclusters.{IMPROBABLE.partition('/')[0]}", name))
    cluster_labels = {**APP, "etcd.improbable.io/cluster-name": name}
    ports = [{"name": "etcd-client", "port": 2379}, {"name": "etcd-peer", "port": 2380}]
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True}
    kubectl.create(_service(name, cluster_labels, owner, ports=ports, **headless))
    names = [f"{name}-{number}" for number in range(document["spec"]["replicas"])]
    hosts = {each: f"{each}.{name}.{space.namespace}.svc" for each in names}
    for each in names:
        labels = {**cluster_labels, "etcd.improbable.io/peer-name": each}
        peer = _peer(each, document, hosts, cluster_labels, owner)
        with _relaxed_peers(space):
            kubectl.create(peer)
        claim = document["spec"]["storage"]["volumeClaimTemplate"]
        kubectl.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": each, "labels": labels},
                "spec": {"accessModes": ["ReadWriteOnce"], **claim},
            }
        )
        peer_owner = _owner(kubectl.json("get", PEERS_CRD, each))
        kubectl.create(_replica_set(each, name, labels, peer_owner, hosts, version))
    made = Predecessor(space, name, f"etcd.improbable.io/cluster-name={name}")
    made.wait_running(len(names))
    return made


@contextmanager
def stopped_webhooks(space: Space) -> Iterator[None]:
    """The namespace and the webhooks of Improbable's operator, which is stopped: they refuse every write."""
    kubectl, system = space.kubectl, "etcd-cluster-operator-system"
    kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system}})
    named = [
        ("MutatingWebhookConfiguration", "etcd-cluster-operator-mutating-webhook-configuration"),
        ("ValidatingWebhookConfiguration", "etcd-cluster-operator-validating-webhook-configuration"),
    ]
    for kind, name in named:
        metadata, webhooks = {"name": name}, [_webhook(system)]
        kubectl.create({"apiVersion": ADMISSION, "kind": kind, "metadata": metadata, "webhooks": webhooks})
    try:
        yield
    finally:
        for kind, name in (*named, ("Namespace", system)):
            kubectl("delete", kind, name, "--ignore-not-found")


def _webhook(namespace: str) -> Document:
    rule = {
        "apiGroups": ["etcd.improbable.io"],
        "apiVersions": ["v1alpha1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["etcdclusters", "etcdpeers"],
    }
    service = {"namespace": namespace, "name": "etcd-cluster-operator-webhook-service", "path": "/"}
    return {
        "name": "webhook.etcd.improbable.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "failurePolicy": "Fail",
        "rules": [rule],
        "sideEffects": "None",
    }


@contextmanager
def _relaxed_peers(space: Space) -> Iterator[None]:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/bootstrap/required"
    before = space.kubectl.json("get", "crd", PEERS_CRD)
    schema = before["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    required = schema["properties"]["spec"]["properties"]["bootstrap"]["required"]
    theirs = [field for field in required if field != "initialClusterToken"]

    def write(fields: list[str]) -> None:
        patch = f'[{{"op":"replace","path":"{path}","value":{fields!r}}}]'.replace("'", '"')
        space.kubectl("patch", "crd", PEERS_CRD, "--type=json", "--patch", patch)

    write(theirs)
    try:
        yield
    finally:
        write(required)


def _peer(
    name: str, document: Document, hosts: dict[str, str], labels: Document, owner: list[Document]
) -> Document:
    initial = [{"name": each, "host": host} for each, host in hosts.items()]
    spec = document["spec"]
    return {
        "apiVersion": IMPROBABLE,
        "kind": "EtcdPeer",
        "metadata": {"name": name, "labels": labels, "ownerReferences": owner},
        "spec": {
            "clusterName": document["metadata"]["name"],
            "version": spec["version"],
            "bootstrap": {"static": {"initialCluster": initial}, "initialClusterState": "New"},
            "storage": spec["storage"],
        },
    }


def _replica_set(
    name: str,
    cluster: str,
    labels: Document,
    owner: list[Document],
    hosts: dict[str, str],
    version: str,
) -> Document:
    environment = {
        "ETCD_INITIAL_CLUSTER": ",".join(f"{each}=http://{host}:2380" for each, host in hosts.items()),
        "ETCD_NAME": name,
        "ETCD_INITIAL_CLUSTER_TOKEN": cluster,
        "ETCD_INITIAL_ADVERTISE_PEER_URLS": f"http://{hosts[name]}:2380",
        "ETCD_ADVERTISE_CLIENT_URLS": f"http://{hosts[name]}:2379",
        "ETCD_LISTEN_PEER_URLS": "http://0.0.0.0:2380",
        "ETCD_LISTEN_CLIENT_URLS": "http://0.0.0.0:2379",
        "ETCD_INITIAL_CLUSTER_STATE": "new",
        "ETCD_DATA_DIR": "/var/lib/etcd",
    }
    container = {
        "name": "etcd",
        "image": IMAGE.format(version),
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "ports": [
            {"name": "etcd-client", "containerPort": 2379},
            {"name": "etcd-peer", "containerPort": 2380},
        ],
        "volumeMounts": [{"name": "etcd-data", "mountPath": "/var/lib/etcd"}],
    }
    volume = {"name": "etcd-data", "persistentVolumeClaim": {"claimName": name}}
    spec = {"hostname": name, "subdomain": cluster, "containers": [container], "volumes": [volume]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": labels, "ownerReferences": owner},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
