"""Which EtcdPeers the operator acts on: only those that it would make itself.

An EtcdPeer determines how a member's etcd starts, so a handmade one could start a member with the data of
another namespace, or under the labels of another cluster. So the operator verifies each one: its owner is a
live EtcdCluster, and names, hosts and token follow from that cluster.
"""

from collections.abc import Iterator

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdCluster, EtcdPeer
from etcd_operator.api.persisted import TlsRecord
from etcd_operator.api.recoveries import is_recovery_token
from etcd_operator.api.tls import PLAIN
from etcd_operator.controllers.etcd_cluster.dialects.improbable import reserved_names
from etcd_operator.controllers.etcd_cluster.manifests import persistent_services
from etcd_operator.controllers.shared.decide.clusters import is_member_name
from etcd_operator.controllers.shared.manifests.urls import host_of
from etcd_operator.errors import InvalidSpec
from etcd_operator.versions import parse_version

INSTEAD = "EtcdPeers are made by the operator: delete this one, and create an EtcdCluster instead"


def ownership_problem(peer: EtcdPeer, cluster: EtcdCluster | None) -> str:
    """Why a peer does not belong to `cluster`, the live one that its label names; empty if it does."""
    name = peer.metadata.labels.get(improbable.CLUSTER_LABEL, "")
    if cluster is None:
        return f"its EtcdCluster {name!r} does not exist. {INSTEAD}"
    if peer.metadata.controller_uid != cluster.metadata.uid:
        return f"EtcdCluster {name} is not its controller. {INSTEAD}"
    if not is_member_name(peer.metadata.name, cluster.metadata.name):
        return f"members of EtcdCluster {name} are named {name}-<number>. {INSTEAD}"
    return ""


def content_problem(peer: EtcdPeer, cluster: EtcdCluster) -> str:
    """What in a peer of `cluster` differs from what the operator writes; empty if nothing does."""
    if peer.spec.tls is not None and cluster.status.tls is None and "tls" in cluster.spec:
        return "spec.tls is not the TLS of its EtcdCluster, whose status records none: see the reason there"
    wrong = next(_differences(peer, cluster), "")
    return f"{wrong}: delete this EtcdPeer; the operator creates it again" if wrong else ""


def _differences(peer: EtcdPeer, cluster: EtcdCluster) -> Iterator[str]:
    spec, bootstrap = peer.spec, peer.spec.bootstrap
    if spec.cluster_name != cluster.metadata.name:
        yield f"spec.clusterName is {spec.cluster_name!r}, but its EtcdCluster is {cluster.metadata.name}"
    if not _is_token(cluster, bootstrap.initial_cluster_token):
        yield "spec.bootstrap.initialClusterToken is not a token of its EtcdCluster"
    for member in bootstrap.static.initial_cluster:
        if not member.name or _member_at(cluster, member.host) != member.name:
            yield f"spec.bootstrap.static.initialCluster: {member.name!r} at {member.host!r} is not a member"
    external = {member.url for member in bootstrap.external} - _adopted_urls(cluster)
    for url in {url for url in external if not _member_at(cluster, host_of(url))}:
        yield f"spec.bootstrap.external: {url!r} is not a peer URL of the cluster that is adopted"
    survivor = bootstrap.survivor
    if survivor and not _member_at(cluster, survivor):
        yield f"spec.bootstrap.survivor: {survivor!r} is not a member of its EtcdCluster"
    if not (cluster.status.tls or TlsRecord()).admits(spec.tls or PLAIN):
        yield "spec.tls is not the TLS of its EtcdCluster"
    reserved = [name for names in reserved_names(spec.pod_template).values() for name in names]
    if reserved:
        yield f"spec.podTemplate.metadata has reserved names: {', '.join(reserved)}"
    try:
        parse_version(spec.version)
    except InvalidSpec as error:
        yield f"spec.version: {error}"


def _member_at(cluster: EtcdCluster, host: str) -> str:
    """The member with a host name; empty if no member can have that name."""
    name = persistent_services.member_at(cluster.metadata.name, cluster.metadata.namespace, host)
    return name if is_member_name(name, cluster.metadata.name) else ""


def _adopted_urls(cluster: EtcdCluster) -> set[str]:
    adoption = cluster.status.adoption
    return {url for member in adoption.members for url in member.peer_urls} if adoption is not None else set()


def _is_token(cluster: EtcdCluster, token: str) -> bool:
    """Whether it is the token of the bootstrap or of a recovery, also of one that a later one replaced."""
    uid, status = cluster.metadata.uid, cluster.status
    recorded = {persisted.token for persisted in (status.bootstrap, status.recovery) if persisted is not None}
    return token in {uid, *recorded} or is_recovery_token(uid, token)
