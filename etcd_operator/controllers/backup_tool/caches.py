"""What the operator keeps of Kubernetes for backup tools, beside the caches of their clusters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from etcd_operator.api.coreos import APP_LABEL, CLUSTER_LABEL, EtcdCluster
from etcd_operator.api.coreos_backup import TOOL_APP
from etcd_operator.api.meta import HasMetadata
from etcd_operator.controllers.shared.caches import Caches, CacheSource
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Claim, ReplicaSet

SELECTOR = f"{APP_LABEL}={TOOL_APP},{CLUSTER_LABEL}"


@dataclass(frozen=True, kw_only=True)
class ToolCaches:
    """The informers: `of_clusters` belong to the group of the clusters, the others are ours."""

    of_clusters: Caches[EtcdCluster]
    replica_sets: Informer[ReplicaSet]
    claims: Informer[Claim]

    def own(self) -> tuple[Informer[Any], ...]:
        """The informers that nobody else has."""
        return self.replica_sets, self.claims

    def others(self) -> tuple[Informer[Any], ...]:
        """The informers of the clusters' group that are read here, too."""
        return self.of_clusters.clusters, self.of_clusters.pods, self.of_clusters.services

    def pods(self, key: Key) -> tuple[Pod, ...]:
        """The pods with the labels of a cluster's tool."""
        found = self.of_clusters.of_cluster(self.of_clusters.pods, key)
        return tuple(pod for pod in found if is_of_tool(pod))

    def wake(self, enqueue: Callable[[Key], None], restart: Callable[[Key], None]) -> None:
        """Queue a cluster that changed, or of which an object of its tool did."""

        def on_cluster(old: EtcdCluster | None, new: EtcdCluster | None) -> None:
            value = new or old
            if value is None:
                return
            is_same = old is not None and new is not None and old.spec == new.spec
            (enqueue if is_same else restart)(value.metadata.key)

        def on_part(old: HasMetadata | None, new: HasMetadata | None) -> None:
            for value in (old, new):
                key = self.of_clusters.cluster_of(value.metadata) if value is not None else None
                if key is not None and value is not None and is_of_tool(value):
                    enqueue(key)

        self.of_clusters.clusters.add_handler(on_cluster)
        parts: tuple[Informer[Any], ...] = (self.of_clusters.pods, self.of_clusters.services, *self.own())
        for informer in parts:
            informer.add_handler(on_part)


def is_of_tool(value: HasMetadata) -> bool:
    """Whether an object has the label of backup tools."""
    return value.metadata.labels.get(APP_LABEL) == TOOL_APP


def tool_caches(source: CacheSource, of_clusters: Caches[EtcdCluster]) -> ToolCaches:
    """The informers, not yet started."""
    return ToolCaches(
        of_clusters=of_clusters,
        replica_sets=source.of(resources.REPLICA_SETS, ReplicaSet, selector=SELECTOR),
        claims=source.of(resources.CLAIMS, Claim, selector=SELECTOR),
    )
