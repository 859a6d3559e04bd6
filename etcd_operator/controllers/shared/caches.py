"""What the operator keeps of Kubernetes, arranged by cluster.

Every object that belongs to a cluster is found under the key `namespace/name` of the
cluster that its label names. Nothing is read from the API server during a pass.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from etcd_operator.api import coreos, improbable
from etcd_operator.api.meta import HasMetadata, ObjectMeta
from etcd_operator.controllers.shared.decide.clusters import ClusterResource, cluster_of_member
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.decode import Unreadable
from etcd_operator.kube.informer import Informer, OnCrash
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.resources import Selection
from etcd_operator.kube.store import Index
from etcd_operator.kube.views import Budget, Claim, NetworkPolicy, ReplicaSet, Service

BY_CLUSTER = "cluster"
BY_NAMESPACE = "namespace"

Cluster = TypeVar("Cluster", bound=ClusterResource)
Object = TypeVar("Object", bound=HasMetadata)


@dataclass(frozen=True, kw_only=True)
class Caches(Generic[Cluster]):
    """The informers of one API group. `label` names the cluster on what belongs to it.

    unlabelled: pods that lack this label, and carry another one that only members' pods have.
    policies: of all namespaces and of everybody; passes do not wait for them (see `etcd_cluster.network`).
    """

    label: str
    resource: resources.Resource
    clusters: Informer[Cluster]
    pods: Informer[Pod]
    unlabelled: Informer[Pod]
    services: Informer[Service]
    budgets: Informer[Budget]
    policies: Informer[NetworkPolicy]
    peers: Informer[improbable.EtcdPeer] | None = None
    claims: Informer[Claim] | None = None
    replica_sets: Informer[ReplicaSet] | None = None

    def all(self) -> Iterator[Informer[Any]]:
        """Every informer; of two for pods first the one that shows what the operator has made."""
        yield self.clusters
        yield from self.parts()
        yield self.unlabelled

    def parts(self) -> Iterator[Informer[Any]]:
        """The informers of what belongs to clusters."""
        ours = (self.pods, self.services, self.budgets, self.peers, self.claims, self.replica_sets)
        for informer in ours:
            if informer is not None:
                yield informer

    def cluster_of(self, metadata: ObjectMeta) -> Key | None:
        """The cluster that an object's label names; None without that label."""
        name = metadata.labels.get(self.label)
        return Key(metadata.namespace, name) if name else None

    def of_cluster(self, informer: Informer[Object] | None, key: Key) -> tuple[Object, ...]:
        """What belongs to a cluster, ordered by name."""
        return informer.store.by_index(BY_CLUSTER, str(key)) if informer is not None else ()

    def unreadable(self, key: Key) -> Iterator[str]:
        """What of a cluster exists but cannot be read, itself or what may belong to it: each as a phrase.

        The cluster's own last known value may be outdated: it may be about to be deleted.
        """
        itself = self.clusters.store.unreadable_at(key)
        if itself is not None:
            yield f"{self.resource.kind} {key.name} ({itself.error})"
        for informer in (self.unlabelled, *self.parts()):
            for each in informer.store.unreadable:
                if self._may_be_of(key, each):
                    yield f"{informer.resource.kind} {each.key.name} ({each.error})"

    def _may_be_of(self, cluster: Key, found: Unreadable) -> bool:
        """By its label; what has none by its name, because all objects of a cluster begin with its name."""
        if found.key.namespace != cluster.namespace:
            return False
        label, name = found.labels.get(self.label), found.key.name
        return label == cluster.name if label else f"{name}-".startswith(f"{cluster.name}-")

    def wake(self, enqueue: Callable[[Key], None], restart: Callable[[Key], None]) -> None:
        """Queue a cluster's key whenever the cluster or anything that belongs to it changes.

        `restart` it when somebody requests something else: what failed before may pass now.
        """

        def on_cluster(old: Cluster | None, new: Cluster | None) -> None:
            value = new or old
            if value is None:
                return
            if old is None or new is None or _requested(old.metadata) != _requested(new.metadata):
                restart(value.metadata.key)
            else:
                enqueue(value.metadata.key)

        def on_part(old: Object | None, new: Object | None) -> None:
            for value in (old, new):
                key = self.cluster_of(value.metadata) if value is not None else None
                if key is not None:
                    enqueue(key)

        def on_budget(old: Budget | None, new: Budget | None) -> None:
            """Its status follows each change of a pod, for which the pod itself has an event."""
            if old is None or new is None or old.spec != new.spec:
                on_part(old, new)

        self.policies.add_handler(partial(self._on_policy, enqueue))
        self.clusters.add_handler(on_cluster)
        self.clusters.add_unreadable_handler(enqueue)
        self.unlabelled.add_handler(partial(_on_unlabelled, enqueue))
        for informer in self.parts():
            informer.add_handler(on_budget if informer is self.budgets else on_part)

    def _on_policy(
        self, enqueue: Callable[[Key], None], old: NetworkPolicy | None, new: NetworkPolicy | None
    ) -> None:
        """One of a cluster has its name; any other one may select the members of each cluster there."""
        for value in (value for value in (old, new) if value is not None):
            metadata = value.metadata
            if value.is_of_cluster:
                enqueue(metadata.key)
                continue
            if old is not None and new is not None and old.spec == new.spec:
                continue
            for cluster in self.clusters.store.values():
                if cluster.metadata.namespace == metadata.namespace:
                    enqueue(cluster.metadata.key)


def _requested(metadata: ObjectMeta) -> tuple[object, ...]:
    """What people change of a cluster; our own writes of its status change none of this."""
    return (
        metadata.uid,
        metadata.generation,
        metadata.annotations,
        metadata.labels,
        metadata.deletion_timestamp,
    )


def _on_unlabelled(enqueue: Callable[[Key], None], old: Pod | None, new: Pod | None) -> None:
    """Queue the cluster that a pod was made for; it stands in its name."""
    if new is not None and old is None:
        enqueue(Key(new.metadata.namespace, cluster_of_member(member_of(new))))


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSource:
    """Where caches are filled from."""

    client: Client
    namespace: str
    on_crash: OnCrash

    def of(
        self,
        resource: resources.Resource,
        kind: type[Object],
        selector: str = "",
        indexes: Mapping[str, Index[Object]] | None = None,
    ) -> Informer[Object]:
        """All objects of a resource, or those that a label selector selects."""
        selection = Selection(resource=resource, namespace=self.namespace, label_selector=selector)
        return Informer(self.client, selection, kind, on_crash=self.on_crash, indexes=indexes)

    def parts(self, resource: resources.Resource, kind: type[Object], label: str) -> Informer[Object]:
        """All objects whose `label` names a cluster."""

        def by_cluster(value: Object) -> tuple[str, ...]:
            name = value.metadata.labels.get(label)
            return (str(Key(value.metadata.namespace, name)),) if name else ()

        return self.of(resource, kind, label, {BY_CLUSTER: by_cluster})


def cached(informer: Informer[Object] | None, key: Key) -> Object | None:
    """The object of that key; None also where the group has no such objects."""
    return informer.store.get(key) if informer is not None else None


def member_of(pod: Pod) -> str:
    """The member that a pod was made for, whatever its labels: its host name, or its own name."""
    return pod.spec.hostname or pod.metadata.name


def policy_cache(source: CacheSource) -> Informer[NetworkPolicy]:
    """All NetworkPolicies, for both groups."""
    by_namespace: dict[str, Index[NetworkPolicy]] = {BY_NAMESPACE: lambda each: (each.metadata.namespace,)}
    return source.of(resources.NETWORK_POLICIES, NetworkPolicy, "", by_namespace)


def _common(
    source: CacheSource,
    policies: Informer[NetworkPolicy],
    resource: resources.Resource,
    kind: type[Cluster],
    label: str,
    other: str,
) -> Caches[Cluster]:
    """The informers that both groups have; `other`: a label that only pods of members have."""
    return Caches(
        label=label,
        resource=resource,
        clusters=source.of(resource, kind),
        pods=source.parts(resources.PODS, Pod, label),
        unlabelled=source.of(resources.PODS, Pod, f"{other},!{label}"),
        services=source.parts(resources.SERVICES, Service, label),
        budgets=source.parts(resources.BUDGETS, Budget, label),
        policies=policies,
    )


def coreos_caches(source: CacheSource, policies: Informer[NetworkPolicy]) -> Caches[coreos.EtcdCluster]:
    """The informers of coreos.com."""
    resource, label = resources.COREOS_CLUSTERS, coreos.CLUSTER_LABEL
    return _common(source, policies, resource, coreos.EtcdCluster, label, coreos.NODE_LABEL)


def improbable_caches(
    source: CacheSource, policies: Informer[NetworkPolicy]
) -> Caches[improbable.EtcdCluster]:
    """The informers of etcd.improbable.io."""
    resource, label = resources.IMPROBABLE_CLUSTERS, improbable.CLUSTER_LABEL
    return replace(
        _common(source, policies, resource, improbable.EtcdCluster, label, improbable.TOKEN_LABEL),
        peers=source.parts(resources.PEERS, improbable.EtcdPeer, label),
        claims=source.parts(resources.CLAIMS, Claim, label),
        replica_sets=source.parts(resources.REPLICA_SETS, ReplicaSet, label),
    )
