"""The Services of persistent members, and the names that members have under them."""

from etcd_operator.api import improbable
from etcd_operator.api.meta import RawObject
from etcd_operator.api.shared_keys import CLIENTS_LABEL
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.shared.manifests.service import service
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT

NAME_LABELS = {"app.kubernetes.io/name": "etcd"}


def cluster_labels(name: str) -> dict[str, str]:
    """The labels of all objects of the cluster."""
    return {**NAME_LABELS, improbable.CLUSTER_LABEL: name}


def peer_service_name(cluster_name: str, token: str) -> str:
    """The headless Service under which peers find the members of an etcd cluster.

    The earlier operator made none beside the client Service, and etcd's list has the peer URLs. Its token was
    the name of the cluster, which no token of ours is (`DesiredCluster.has_one_service`).
    """
    return cluster_name if token == cluster_name else f"{cluster_name}-peer"


def member_host(cluster_name: str, namespace: str, member: str, token: str) -> str:
    """The DNS name of a member: pod.hostname and pod.subdomain under the headless Service."""
    return f"{member}.{peer_service_name(cluster_name, token)}.{namespace}.svc"


def member_at(cluster_name: str, namespace: str, host: str) -> str:
    """The member with this DNS name, of this or of the earlier operator; empty for any other name."""
    name = host.partition(".")[0]
    hosts = (member_host(cluster_name, namespace, name, token) for token in ("", cluster_name))
    return name if host in hosts else ""


def client_label(cluster: DesiredCluster) -> str:
    """The label with the token, by which the client Service selects."""
    return improbable.TOKEN_LABEL if cluster.has_one_service else CLIENTS_LABEL


def client_selector(cluster: DesiredCluster) -> dict[str, str]:
    """The labels by which the client Service selects: also by token.

    So one change of the selector moves clients from a given-up cluster to the recovered one, wherever old
    pods still run.
    """
    return {**cluster_labels(cluster.name), client_label(cluster): cluster.token}


def services(cluster: DesiredCluster) -> tuple[RawObject, ...]:
    """The Service for peers, with a name for each member; last, and maybe the same, the one for clients.

    Both select by the token: given-up members that run on somewhere must not find each other.
    """
    labels = cluster_labels(cluster.name)
    metadata, selector = metadata_of(cluster, cluster.name, labels), client_selector(cluster)
    client, peer = ("etcd-client", CLIENT_PORT), ("etcd-peer", PEER_PORT)
    if cluster.has_one_service:
        return (service(metadata, selector, client, peer, headless=True),)
    for_peers = metadata_of(cluster, peer_service_name(cluster.name, cluster.token), labels)
    return (
        service(for_peers, {**labels, improbable.TOKEN_LABEL: cluster.token}, client, peer, headless=True),
        service(metadata, selector, client, headless=False),
    )
