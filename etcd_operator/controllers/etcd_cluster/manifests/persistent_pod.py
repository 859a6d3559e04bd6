"""The ReplicaSet of a persistent member, with its pod (etcd.improbable.io)."""

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import RawObject
from etcd_operator.api.shared_keys import CLIENTS_LABEL, LOADED_ANNOTATION
from etcd_operator.api.tls import PLAIN
from etcd_operator.controllers.etcd_cluster.manifests import survivor_reader, tls_pod
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
from etcd_operator.controllers.etcd_cluster.manifests.persistent import peer_labels
from etcd_operator.controllers.etcd_cluster.manifests.persistent_services import (
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
from etcd_operator.pods.contract import METRICS_PORT

LOOPBACKS = ("127.0.0.1", "::1")
"""Of both address families, because the families of the pod are not known when it is rendered. A client of a
name tries all of its addresses."""


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
    labels = peer_labels(peer)
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
    serving = (LISTEN, MIN_VERSION, tls_pod.CERT_AUTH, tls_pod.CIPHER_SUITES)
    named = tuple(name for name in tls_pod.NAME_OPTIONS if name in options)
    return (*DOWNWARD_API_OPTIONS, *(serving if "cert-file" in options else ()), *named)
