"""The objects of an ephemeral member (coreos.com): a pod and a Service of the same name."""

from etcd_operator.api import coreos
from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping, Joining
from etcd_operator.controllers.etcd_cluster.manifests import tls_pod
from etcd_operator.controllers.etcd_cluster.manifests.budget import budget as disruption_budget
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.etcd_cluster.manifests.options import (
    Options,
    as_annotations,
    as_flags,
    downward_api_env,
    etcd_options,
    fixed,
    in_place,
)
from etcd_operator.controllers.shared.manifests.pod import (
    DATA_VOLUME,
    ETCD_CONTAINER,
    add_volume,
    etcd_pod_spec,
)
from etcd_operator.controllers.shared.manifests.security import security
from etcd_operator.controllers.shared.manifests.service import service
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT
from etcd_operator.pods.contract import METRICS_PORT

DATA_DIR = "/var/etcd/data"
MOUNT_PATH = "/var/etcd"


def cluster_labels(cluster: DesiredCluster) -> dict[str, str]:
    """The labels of all objects of the cluster."""
    return {coreos.APP_LABEL: "etcd", coreos.CLUSTER_LABEL: cluster.name}


def services(cluster: DesiredCluster) -> tuple[RawObject, ...]:
    """The client Service, with the name of the cluster."""
    labels = cluster_labels(cluster)
    metadata = metadata_of(cluster, cluster.name, labels)
    return (service(metadata, labels, ("client", CLIENT_PORT), headless=False),)


def member_service(cluster: DesiredCluster, name: str) -> RawObject:
    """The Service of one member, whose name does not depend on the pod's IP.

    Peers use it to reach a seed before clients may (see `manifests.seed`), so it does not select by the label
    that admits clients.
    """
    labels = _member_labels(cluster, name)
    ports = (("server", PEER_PORT), ("client", CLIENT_PORT))
    metadata = metadata_of(cluster, name, labels)
    return service(metadata, member_selector(cluster, name), *ports, headless=False)


def member_host(cluster: DesiredCluster, name: str) -> str:
    """The name of the member's Service; with one certificate for all members, in the form of its wildcard."""
    return f"{name}.{cluster.namespace}.svc" if cluster.secured.has_wildcards else name


def budget(cluster: DesiredCluster, min_available: int) -> RawObject:
    """The disruption budget: an eviction leaves `min_available` members."""
    labels = cluster_labels(cluster)
    selector = members_selector(cluster.name)
    return disruption_budget(metadata_of(cluster, cluster.name, labels), selector, min_available)


def members_selector(name: str) -> RawObject:
    """Selects the pods of all members; the pod of the backup tool has the label of the cluster, too."""
    is_member = {"key": coreos.NODE_LABEL, "operator": "Exists"}
    return {"matchLabels": {coreos.CLUSTER_LABEL: name}, "matchExpressions": [is_member]}


def pod(
    cluster: DesiredCluster, name: str, start: Bootstrapping | Joining, *, copies: bool = False
) -> RawObject:
    """The pod of a member; its data exists as long as the pod.

    One that joins lacks the label that admits clients until it serves (`decide.readiness`). copies: for a
    seed that copies the data of a survivor.
    """
    options = _options(cluster, name, start)
    changeable = in_place(options)
    container: RawObject = {
        "name": ETCD_CONTAINER,
        "image": cluster.image,
        "command": ["/usr/local/bin/etcd", *as_flags(fixed(options, changeable))],
        "env": downward_api_env(coreos.POD_KEYS, changeable),
        "ports": [
            {"name": "server", "containerPort": PEER_PORT},
            {"name": "client", "containerPort": CLIENT_PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "volumeMounts": [{"name": DATA_VOLUME, "mountPath": MOUNT_PATH}],
    }
    is_admitted = isinstance(start, Bootstrapping)
    labels = _member_labels(cluster, name) if is_admitted else member_selector(cluster, name)
    metadata = metadata_of(cluster, name, labels)
    metadata["annotations"] = {
        coreos.VERSION_ANNOTATION: cluster.version,
        **as_annotations(options, coreos.POD_KEYS, changeable),
    }
    spec = etcd_pod_spec(
        cluster.pod_template,
        container,
        keys=coreos.POD_KEYS,
        members=members_selector(cluster.name),
        security=security(cluster.pod_template),
        data_volume={"emptyDir": {}},
        extra={},
    )
    # Without TLS, too: it may be added while the pod runs, and the volumes of a pod never change.
    add_volume(spec, tls_pod.volume(name, cluster.secured, copies=copies, is_kept=True))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _options(cluster: DesiredCluster, name: str, start: Bootstrapping | Joining) -> Options:
    return etcd_options(
        name=name,
        host=member_host(cluster, name),
        data_dir=DATA_DIR,
        initial_cluster={member: member_host(cluster, member) for member in start.members},
        state="new" if isinstance(start, Bootstrapping) else "existing",
        token=start.token,
        external=start.external if isinstance(start, Joining) else (),
        secured=cluster.secured,
        version=cluster.version,
    )


def member_selector(cluster: DesiredCluster, name: str) -> dict[str, str]:
    """The labels that select a member's pod, whether or not clients may reach it."""
    return {coreos.CLUSTER_LABEL: cluster.name, coreos.NODE_LABEL: name}


def _member_labels(cluster: DesiredCluster, name: str) -> dict[str, str]:
    return {**cluster_labels(cluster), coreos.NODE_LABEL: name}
