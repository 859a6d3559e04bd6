"""Who else has to consent to an adoption: the namespaces of the members, and their EtcdClusters.

The operator reaches etcd in all namespaces, and who creates an EtcdCluster may not. Members in another
namespace are adopted only if their Service has the annotation `ADOPTABLE_ANNOTATION`; those of another
EtcdCluster only if that has it. (An address, or a name of another form, does not show where a member runs.)
"""

import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.shared_keys import ADOPTABLE_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply
from etcd_operator.controllers.shared.decide.clusters import ClusterResource
from etcd_operator.keys import Key

_SERVICE = re.compile(r"([^.]+\.)?(?P<name>[^.]+)\.(?P<namespace>[^.]+)\.svc(\.|$)")


def peer_hosts(replies: Iterable[tuple[str, Reply]]) -> tuple[str, ...]:
    """The hosts at which the members that answered reach each other."""
    answers = (reply for _, reply in replies if isinstance(reply, Answer))
    urls = (url for answer in answers for entry in answer.members for url in entry.peer_urls)
    return tuple(urlsplit(url).hostname or "" for url in urls)


def services(desired: DesiredCluster, hosts: Iterable[str]) -> tuple[Key, ...]:
    """The Services of other namespaces among these hosts."""
    found = {key for host in hosts if (key := _service(host)) is not None}
    return tuple(sorted((key for key in found if key.namespace != desired.namespace), key=str))


def _service(host: str) -> Key | None:
    """The Service of `[POD.]SERVICE.NAMESPACE.svc[.DOMAIN]`; None for any other name."""
    found = _SERVICE.match(host.lower())
    return Key(found["namespace"], found["name"]) if found is not None else None


def consents(desired: DesiredCluster, metadata: ObjectMeta) -> bool:
    """Whether the owner of an object permits this resource to adopt what it stands for."""
    name, _, rest = metadata.annotations.get(ADOPTABLE_ANNOTATION, "").partition("/")
    permitted = Key(name, rest) if rest else Key(metadata.namespace, name)
    return permitted == desired.key


def owner(
    desired: DesiredCluster, ids: Collection[str], hosts: Iterable[str], clusters: Iterable[ClusterResource]
) -> ClusterResource | None:
    """The EtcdCluster that has the cluster ID, or a member at one of these hosts, on record, without consent.

    ids: the cluster IDs of the members that answered. hosts: see `peer_hosts`.
    """
    members = {_member(desired, host) for host in hosts}
    for cluster in clusters:
        metadata, bootstrap = cluster.metadata, cluster.status.bootstrap
        if metadata.uid == desired.uid or consents(desired, metadata):
            continue
        names = bootstrap.members if bootstrap is not None else ()
        if cluster.status.cluster_id in ids or any(
            Key(metadata.namespace, each) in members for each in names
        ):
            return cluster
    return None


def _member(desired: DesiredCluster, host: str) -> Key:
    """The namespace and the name that a member with this host has."""
    service = _service(host)
    return Key(service.namespace if service else desired.namespace, host.partition(".")[0])


def of_another_namespace(desired: DesiredCluster, service: Key) -> str:
    """Why members behind a Service of another namespace are not adopted, and who can permit it."""
    return (
        f"members of the cluster to adopt are in the namespace {service.namespace}, which has not consented: "
        f"kubectl annotate service {service.name} --namespace {service.namespace} "
        f"{ADOPTABLE_ANNOTATION}={desired.key}"
    )


def of_another_cluster(desired: DesiredCluster, cluster: ClusterResource, resource: str) -> str:
    """The same for members of another EtcdCluster; resource: its resource, as kubectl has it."""
    key = cluster.metadata.key
    return (
        f"the cluster to adopt is that of the EtcdCluster {key}: it would be run twice; to move it to this "
        f"resource, pause that one and permit it: kubectl annotate {resource} {key.name} --namespace "
        f"{key.namespace} {ADOPTABLE_ANNOTATION}={desired.key}"
    )
