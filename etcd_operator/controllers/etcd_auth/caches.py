"""What the operator keeps of Kubernetes for EtcdRoles and EtcdUsers, and which changes queue which cluster.

Passes are about clusters: the roles and users of one etcd depend on each other.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from etcd_operator.api.meta import ObjectMeta, Stored, condition_of
from etcd_operator.api.tls import PLAIN
from etcd_operator.api.users import EtcdRole, EtcdUser
from etcd_operator.controllers.shared.caches import Caches, CacheSource, member_of
from etcd_operator.controllers.shared.decide.clusters import ClusterResource
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, endpoint
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Written

BY_CLUSTER = "cluster"


def cluster_of(declared: Stored) -> Key | None:
    """The cluster that an EtcdRole or EtcdUser names, whether or not the rest of its spec is valid."""
    reference = declared.spec.get("clusterRef")
    name = reference.get("name") if isinstance(reference, dict) else None
    return Key(declared.metadata.namespace, name) if isinstance(name, str) and name else None


@dataclass(frozen=True, kw_only=True)
class AuthCaches:
    """EtcdRoles and EtcdUsers; and the clusters of both groups with their members, of other groups."""

    roles: Informer[EtcdRole]
    users: Informer[EtcdUser]
    clusters: tuple[Caches[Any], ...]

    def roles_of(self, cluster: Key) -> tuple[EtcdRole, ...]:
        """The EtcdRoles that name a cluster and are not being deleted, by name."""
        found = self.roles.store.by_index(BY_CLUSTER, str(cluster))
        return tuple(each for each in found if not each.metadata.is_deleting)

    def users_of(self, cluster: Key) -> tuple[EtcdUser, ...]:
        """The EtcdUsers that name a cluster and are not being deleted, by name."""
        found = self.users.store.by_index(BY_CLUSTER, str(cluster))
        return tuple(each for each in found if not each.metadata.is_deleting)

    def has_unreadable(self, namespace: str) -> bool:
        """Whether an EtcdRole or EtcdUser exists of which not even the cluster may be known."""
        stores = (self.roles.store, self.users.store)
        return any(each.key.namespace == namespace for store in stores for each in store.unreadable)

    def cluster(self, key: Key) -> tuple[ClusterResource, Caches[Any]] | None:
        """The cluster of that name. Of two, one in each group, only one is ever served by the operator."""
        found = [(each, caches) for caches in self.clusters if (each := caches.clusters.store.get(key))]
        found.sort(key=lambda pair: not pair[0].status.cluster_id)
        return found[0] if found else None

    def members(self, cluster: ObjectMeta, caches: Caches[Any]) -> dict[str, str]:
        """By `host:port` the members whose pods are ready; not pods that only have their labels."""
        owners, key = {cluster.uid}, cluster.key
        parts: tuple[Informer[Any] | None, ...] = (caches.peers, caches.replica_sets)
        for informer in parts:
            found = caches.of_cluster(informer, key)
            owners |= {each.metadata.uid for each in found if each.metadata.controller_uid in owners}
        return {
            endpoint(pod.status.pod_ip, CLIENT_PORT): member_of(pod)
            for pod in caches.of_cluster(caches.pods, key)
            if pod.metadata.controller_uid in owners and _may_answer(pod)
        }

    def are_all(self, known: Iterable[ObjectMeta], objects: Objects) -> bool:
        """Whether a namespace has no other EtcdRoles and EtcdUsers, live: nothing is removed by mistake.

        known: those that a pass has seen, whether or not they are still in the caches.
        """
        uids = {metadata.uid for metadata in known}
        uids |= {each.metadata.uid for informer in self.informers() for each in informer.store.values()}
        live = (
            each.metadata.uid
            for resource in (resources.ROLES, resources.USERS)
            for each in objects.client.list(resource, Written, namespace=objects.namespace).whole()
        )
        return uids.issuperset(live)

    def informers(self) -> Iterator[Informer[Any]]:
        """Its own informers."""
        yield self.roles
        yield self.users

    def wake(self, enqueue: Callable[[Key], None]) -> None:
        """Queue the cluster that changed, or that an object names or named."""

        def on_declared(old: Stored | None, new: Stored | None) -> None:
            for each in filter(None, (old, new)):
                cluster = cluster_of(each)
                if cluster is not None:
                    enqueue(cluster)

        def on_cluster(old: ClusterResource | None, new: ClusterResource | None) -> None:
            """Most changes of a cluster change nothing for its users."""
            value = new or old
            if value is not None and (old is None or new is None or _facts(old) != _facts(new)):
                enqueue(value.metadata.key)

        self.roles.add_handler(on_declared)
        self.users.add_handler(on_declared)
        for caches in self.clusters:
            caches.clusters.add_handler(on_cluster)


def auth_caches(source: CacheSource, *clusters: Caches[Any]) -> AuthCaches:
    """The informers of EtcdRoles and EtcdUsers, not yet started."""

    def by_cluster(declared: Stored) -> tuple[str, ...]:
        cluster = cluster_of(declared)
        return (str(cluster),) if cluster is not None else ()

    indexes = {BY_CLUSTER: by_cluster}
    return AuthCaches(
        roles=source.of(resources.ROLES, EtcdRole, indexes=indexes),
        users=source.of(resources.USERS, EtcdUser, indexes=indexes),
        clusters=clusters,
    )


def is_served(cluster: ClusterResource) -> bool:
    """Whether a quorum answers, as far as its status says: without one, a question about users hangs."""
    available = condition_of(cluster.status.conditions, "Available")
    return available is None or available.status != "False"


def asks_for_certificates(cluster: ClusterResource) -> bool:
    """Whether members know the operator as root by its certificate."""
    secured = cluster.status.tls.of_members if cluster.status.tls is not None else PLAIN
    return secured.is_dialed and secured.client_cert_auth


def _may_answer(pod: Pod) -> bool:
    return pod.is_ready and not pod.metadata.is_deleting and bool(pod.status.pod_ip)


def _facts(cluster: ClusterResource) -> tuple[object, ...]:
    status, metadata = cluster.status, cluster.metadata
    return metadata.uid, metadata.is_deleting, status.cluster_id, status.auth, is_served(cluster)
