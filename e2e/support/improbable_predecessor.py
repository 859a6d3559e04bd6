"""Clusters of Improbable's operator (etcd.improbable.io/v1alpha1).

An EtcdPeer for each member, which owns a ReplicaSet of one pod; claims without an owner; everything under the
names that our objects have.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from e2e.support.clusters import IMPROBABLE, Document
from e2e.support.predecessors import IMAGE, Predecessor, owned_by, service
from e2e.support.space import Space

PEERS_CRD = "etcdpeers.etcd.improbable.io"
PAUSED = "etcd.improbable.io/paused"
ADMISSION = "admissionregistration.k8s.io/v1"
APP = {"app.kubernetes.io/name": "etcd"}


def of_improbable(space: Space, document: Document) -> Predecessor:
    """The cluster of a document as Improbable's operator leaves it; its resource is paused for ours.

    Their EtcdPeers lack a field that our schema requires, so the schema is relaxed meanwhile: the test must
    be exclusive.
    """
    kubectl, name, version = space.kubectl, document["metadata"]["name"], document["spec"]["version"]
    paused = {**document["metadata"], "annotations": {PAUSED: "true"}}
    kubectl.create({**document, "metadata": paused})
    owner = owned_by(kubectl.json("get", f"etcdclusters.{IMPROBABLE.partition('/')[0]}", name))
    cluster_labels = {**APP, "etcd.improbable.io/cluster-name": name}
    ports = [{"name": "etcd-client", "port": 2379}, {"name": "etcd-peer", "port": 2380}]
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True}
    kubectl.create(service(name, cluster_labels, owner, ports=ports, **headless))
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
        peer_owner = owned_by(kubectl.json("get", PEERS_CRD, each))
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
