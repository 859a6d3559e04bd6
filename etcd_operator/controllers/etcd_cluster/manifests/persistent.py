"""The objects of persistent members (etcd.improbable.io).

A cluster owns its EtcdPeers and its Services; an EtcdPeer owns its ReplicaSet. The
claim has no owner: it outlives everything except a deliberate removal of the member.
"""

import msgspec

from etcd_operator.api import improbable
from etcd_operator.api.improbable import (
    EtcdPeer,
    ExternalMember,
    InitialMember,
    PeerBootstrap,
    StaticBootstrap,
)
from etcd_operator.api.meta import RawObject
from etcd_operator.api.recoveries import OfflineSurvivor
from etcd_operator.api.shared_keys import INITIAL_MEMBERS_ANNOTATION, PEER_LABEL, TOKEN_ANNOTATION
from etcd_operator.api.tls import PLAIN
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.starts import (
    Bootstrapping,
    Joining,
    Resuming,
    Seeding,
    Start,
)
from etcd_operator.controllers.etcd_cluster.manifests.budget import budget as disruption_budget
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.etcd_cluster.manifests.persistent_services import cluster_labels, member_host
from etcd_operator.decoding import convert


def budget(cluster: DesiredCluster, min_available: int) -> RawObject:
    """The disruption budget: an eviction leaves `min_available` members."""
    metadata = metadata_of(cluster, cluster.name, cluster_labels(cluster.name))
    selector = {"matchLabels": {improbable.CLUSTER_LABEL: cluster.name}}
    return disruption_budget(metadata, selector, min_available)


def peer(cluster: DesiredCluster, name: str, start: Start) -> RawObject:
    """The EtcdPeer of a member."""
    spec = improbable.PeerSpec(
        cluster_name=cluster.name,
        version=cluster.version,
        bootstrap=peer_bootstrap(cluster, name, start),
        storage=improbable.Storage(volume_claim_template=cluster.claim_template),
        pod_template=cluster.pod_template,
        tls=cluster.secured if cluster.secured != PLAIN else None,
    )
    return {
        "apiVersion": improbable.API_VERSION,
        "kind": "EtcdPeer",
        "metadata": metadata_of(cluster, name, member_labels(cluster.name, name)),
        "spec": msgspec.to_builtins(spec),
    }


def peer_bootstrap(cluster: DesiredCluster, name: str, start: Start) -> PeerBootstrap:
    """How etcd of the member starts: see `api.improbable.PeerBootstrap`."""
    survivor, sha256 = "", ""
    external = start.external if isinstance(start, Joining) else ()
    match start:
        case Bootstrapping() | Joining():
            members = start.members
        case Resuming():
            members = (name,)
        case Seeding():
            members = (name,)
            survivor = member_host(cluster.name, cluster.namespace, start.source.name, cluster.token)
            if isinstance(start.source, OfflineSurvivor):
                sha256 = start.source.sha256
    hosts = tuple(
        InitialMember(name=member, host=member_host(cluster.name, cluster.namespace, member, start.token))
        for member in members
    )
    return PeerBootstrap(
        initial_cluster_state="New" if isinstance(start, Bootstrapping) else "Existing",
        initial_cluster_token=start.token,
        static=StaticBootstrap(initial_cluster=hosts),
        survivor=survivor,
        sha256=sha256,
        external=tuple(ExternalMember(id=member, url=at) for member, at in external),
    )


def seed_claim(cluster: DesiredCluster, name: str, token: str, *, is_root_owned: bool) -> RawObject:
    """The claim of a seed to which a Job restores a backup, before there is an EtcdPeer."""
    body = peer(cluster, name, Resuming(token=token))
    return claim(convert(body, EtcdPeer), is_root_owned=is_root_owned, is_restored=True)


def claim(peer: EtcdPeer, *, is_root_owned: bool = False, is_restored: bool = False) -> RawObject:
    """The claim, without owner; annotated with its etcd cluster and its EtcdCluster.

    is_root_owned: etcd runs as root on it (see `manifests.security`). is_restored: it gets restored data.
    """
    annotations = {
        TOKEN_ANNOTATION: peer.spec.bootstrap.initial_cluster_token,
        improbable.CLUSTER_UID_ANNOTATION: peer.metadata.controller_uid,
    }
    if peer.spec.bootstrap.initial_cluster_state == "New":
        initial_members = (member.name for member in peer.spec.bootstrap.static.initial_cluster)
        annotations[INITIAL_MEMBERS_ANNOTATION] = ",".join(initial_members)
        annotations[improbable.STARTED_ANNOTATION] = "false"
    if peer.spec.bootstrap.survivor or is_restored:
        annotations[improbable.RESTORED_ANNOTATION] = "true"
    if peer.spec.tls is not None and peer.spec.tls.has_secure_peers:
        annotations[improbable.PEER_TLS_ANNOTATION] = "true"
    if not is_root_owned and peer.spec.pod_template.security_context is None:
        annotations[improbable.NON_ROOT_ANNOTATION] = "true"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": peer.metadata.name,
            "namespace": peer.metadata.namespace,
            "labels": peer_labels(peer),
            "annotations": annotations,
        },
        "spec": peer.spec.storage.volume_claim_template,
    }


def member_labels(cluster_name: str, name: str) -> dict[str, str]:
    """The labels of all objects of a member."""
    return {**cluster_labels(cluster_name), PEER_LABEL: name}


def peer_labels(peer: EtcdPeer) -> dict[str, str]:
    """The same, of an EtcdPeer."""
    return member_labels(peer.spec.cluster_name, peer.metadata.name)
