"""The objects of persistent members (etcd.improbable.io).

A cluster owns its EtcdPeers and its Services; an EtcdPeer owns its ReplicaSet. The
claim has no owner: it outlives everything except a deliberate removal of the member.
"""

import msgspec

from etcd_operator.api import improbable
from etcd_operator.api.cluster_spec import PLAIN
from etcd_operator.api.improbable import (
    EtcdPeer,
    ExternalMember,
    InitialMember,
    PeerBootstrap,
    StaticBootstrap,
)
from etcd_operator.api.meta import RawObject
from etcd_operator.api.recoveries import OfflineSurvivor
from etcd_operator.api.shared_keys import (
    CLIENTS_LABEL,
    INITIAL_MEMBERS_ANNOTATION,
    LOADED_ANNOTATION,
    PEER_LABEL,
    TOKEN_ANNOTATION,
)
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Bootstrapping,
    Joining,
    Resuming,
    Seeding,
    Start,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests import survivor_reader, tls_pod
from etcd_operator.controllers.etcd_cluster.manifests.budget import budget as disruption_budget
from etcd_operator.controllers.etcd_cluster.manifests.metadata import metadata_of
from etcd_operator.controllers.etcd_cluster.manifests.options import (
    DOWNWARD_API_OPTIONS,
    LISTEN,
    MIN_VERSION,
    Options,
    as_annotations,
    as_env,
    as_environment,
    downward_api_env,
    etcd_options,
    fixed,
)
from etcd_operator.controllers.etcd_cluster.manifests.persistent_services import (
    cluster_labels,
    member_host,
    peer_service_name,
)
from etcd_operator.controllers.etcd_cluster.manifests.steps import RUN_STEPS, add_steps
from etcd_operator.controllers.shared.manifests.owner import owned_by
from etcd_operator.controllers.shared.manifests.pod import (
    DATA_DIR,
    DATA_VOLUME,
    ETCD_CONTAINER,
    RESTORED_DIR,
    add_volume,
    etcd_pod_spec,
    go_max_procs,
)
from etcd_operator.controllers.shared.manifests.security import Security, security
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT
from etcd_operator.decoding import convert
from etcd_operator.pods.contract import METRICS_PORT

LOOPBACKS = ("127.0.0.1", "::1")
"""Of both address families, because the families of the pod are not known when it is rendered. A client of a
name tries all of its addresses."""


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
    if peer.spec.tls is not None and peer.spec.tls.peer:
        annotations[improbable.PEER_TLS_ANNOTATION] = "true"
    if not is_root_owned and peer.spec.pod_template.security_context is None:
        annotations[improbable.NON_ROOT_ANNOTATION] = "true"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": peer.metadata.name,
            "namespace": peer.metadata.namespace,
            "labels": _peer_labels(peer),
            "annotations": annotations,
        },
        "spec": peer.spec.storage.volume_claim_template,
    }


def replica_set(
    peer: EtcdPeer,
    image: str,
    *,
    is_restored: bool = False,
    is_root_owned: bool = False,
    own_image: str = "",
) -> RawObject:
    """The ReplicaSet of the EtcdPeer, with one pod.

    A change of the template does not affect the running pod; it applies to the next one.
    is_restored: the claim is, or will be, that of a seed.
    is_root_owned: the claim was created when etcd ran as root (see `manifests.security`).
    own_image: the operator's, for a seed that fetches from a reader.
    """
    name, namespace = peer.metadata.name, peer.metadata.namespace
    labels = _peer_labels(peer)
    owners = owned_by(improbable.API_VERSION, "EtcdPeer", name=name, uid=peer.metadata.uid)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": owners},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": _pod_template(
                peer,
                image,
                labels,
                RESTORED_DIR if is_restored else DATA_DIR,
                security(peer.spec.pod_template, is_root_owned=is_root_owned),
                own_image,
            ),
        },
    }


def _pod_template(
    peer: EtcdPeer, image: str, labels: dict[str, str], data_dir: str, contexts: Security, own_image: str
) -> RawObject:
    template = peer.spec.pod_template
    name, cluster = peer.metadata.name, peer.spec.cluster_name
    bootstrap = peer.spec.bootstrap
    token = bootstrap.initial_cluster_token
    host = member_host(cluster, peer.metadata.namespace, name, token)
    options = _options(peer, host, data_dir)
    container: RawObject = {
        "name": ETCD_CONTAINER,
        "image": image,
        "command": ["/usr/local/bin/etcd"],
        "env": _environment(peer, options),
        "ports": [
            {"name": "etcd-client", "containerPort": CLIENT_PORT},
            {"name": "etcd-peer", "containerPort": PEER_PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "volumeMounts": [{"name": DATA_VOLUME, "mountPath": DATA_DIR}],
    }
    extra: RawObject = {
        "hostname": name,
        "subdomain": peer_service_name(cluster, token),
        # etcd resolves its own advertised names at start; they must not depend on DNS.
        "hostAliases": [{"ip": ip, "hostnames": [host, name]} for ip in LOOPBACKS],
    }
    volume: RawObject = {"persistentVolumeClaim": {"claimName": name}}
    annotations = {
        **template.metadata.annotations,
        **as_annotations(options, improbable.POD_KEYS, _changeable(options)),
    }
    if LOADED_ANNOTATION in peer.metadata.annotations:
        annotations[LOADED_ANNOTATION] = peer.metadata.annotations[LOADED_ANNOTATION]
    spec = etcd_pod_spec(
        template,
        container,
        keys=improbable.POD_KEYS,
        members={"matchLabels": {improbable.CLUSTER_LABEL: cluster}},
        security=contexts,
        data_volume=volume,
        extra=extra,
    )
    if peer.spec.tls is not None:
        add_volume(
            spec,
            tls_pod.volume(name, peer.spec.tls, copies=bool(bootstrap.survivor) and not bootstrap.sha256),
        )
    if bootstrap.survivor:
        annotations |= RUN_STEPS
        add_steps(
            spec,
            survivor=bootstrap.survivor,
            name=name,
            host=host,
            data_dir=data_dir,
            token=token,
            fetch=_fetch(spec, peer, own_image),
            secured=peer.spec.tls or PLAIN,
        )
    pod_labels = {**template.metadata.labels, **labels, improbable.TOKEN_LABEL: token}
    if bootstrap.initial_cluster_state == "New" and token != cluster:
        pod_labels[CLIENTS_LABEL] = token  # other pods get it when they serve (`decide.readiness`)
    return {"metadata": {"labels": pod_labels, "annotations": annotations}, "spec": spec}


def _fetch(spec: RawObject, peer: EtcdPeer, own_image: str) -> RawObject | None:
    """The first step of a seed whose survivor answers nobody; None for all others."""
    bootstrap = peer.spec.bootstrap
    if not bootstrap.sha256:
        return None
    return survivor_reader.fetch(
        spec,
        host=bootstrap.survivor,
        name=bootstrap.survivor,
        secured=peer.spec.tls or PLAIN,
        sha256=bootstrap.sha256,
        cluster=peer.spec.cluster_name,
        version=peer.spec.version,
        image=own_image,
    )


def _options(peer: EtcdPeer, host: str, data_dir: str) -> Options:
    bootstrap = peer.spec.bootstrap
    return etcd_options(
        name=peer.metadata.name,
        host=host,
        data_dir=data_dir,
        initial_cluster={member.name: member.host for member in bootstrap.static.initial_cluster},
        state=bootstrap.initial_cluster_state.lower(),
        token=bootstrap.initial_cluster_token,
        external=((member.id, member.url) for member in bootstrap.external),
        secured=peer.spec.tls or PLAIN,
        version=peer.spec.version,
    )


def _environment(peer: EtcdPeer, options: Options) -> list[RawObject]:
    environment = as_environment(fixed(options, _changeable(options)))
    threads = go_max_procs(peer.spec.pod_template.resources)
    if threads is not None:
        environment["GOMAXPROCS"] = str(threads)
    return [*as_env(environment), *downward_api_env(improbable.POD_KEYS, _changeable(options))]


def _changeable(options: Options) -> tuple[str, ...]:
    """The options that are annotations of the pod; some of those about TLS say how it serves clients."""
    named = tuple(name for name in tls_pod.NAME_OPTIONS if name in options)
    return (*DOWNWARD_API_OPTIONS, *((LISTEN, MIN_VERSION) if "cert-file" in options else ()), *named)


def member_labels(cluster_name: str, name: str) -> dict[str, str]:
    """The labels of all objects of a member."""
    return {**cluster_labels(cluster_name), PEER_LABEL: name}


def _peer_labels(peer: EtcdPeer) -> dict[str, str]:
    return member_labels(peer.spec.cluster_name, peer.metadata.name)
