"""Which changes queue which EtcdPeers."""

from collections.abc import Callable
from typing import Any

from etcd_operator.api import improbable
from etcd_operator.controllers.shared.caches import Caches
from etcd_operator.keys import Key
from etcd_operator.kube.views import Claim


def wake_peers(caches: Caches[improbable.EtcdCluster], enqueue: Callable[[Key], None]) -> None:
    """A peer and its ReplicaSet have one name; claims and the cluster's status concern all its peers."""

    def wake_all(cluster: Key | None) -> None:
        for peer in caches.of_cluster(caches.peers, cluster) if cluster is not None else ():
            enqueue(peer.metadata.key)

    def on_change(old: Any, new: Any) -> None:
        value = new or old
        enqueue(value.metadata.key)

    def on_claim(old: Claim | None, new: Claim | None) -> None:
        value = new or old
        wake_all(caches.cluster_of(value.metadata) if value is not None else None)

    def on_cluster(old: improbable.EtcdCluster | None, new: improbable.EtcdCluster | None) -> None:
        """What its peers are checked against; a deleted one takes them along by itself."""
        if new is not None and (old is None or _identity(old) != _identity(new)):
            wake_all(new.metadata.key)

    caches.clusters.add_handler(on_cluster)
    for informer in (caches.peers, caches.replica_sets):
        if informer is not None:
            informer.add_handler(on_change)
    if caches.claims is not None:
        caches.claims.add_handler(on_claim)


def _identity(cluster: improbable.EtcdCluster) -> tuple[object, ...]:
    return cluster.metadata.uid, cluster.status.bootstrap, cluster.status.recovery
