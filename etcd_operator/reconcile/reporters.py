"""How what is done becomes an Event on a cluster."""

from collections.abc import Callable
from typing import Any

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.core.status import WARNINGS
from etcd_operator.keys import Key
from etcd_operator.kube.events import EventType, Recorder, Reference
from etcd_operator.reconcile.caches import Caches, Cluster


def cluster_reporter(recorder: Recorder, caches: Caches[Cluster]) -> Callable[[Any, str, str, bool], None]:
    """Events on the clusters of one group."""

    def report(cluster: Any, reason: str, message: str, is_warning: bool) -> None:  # noqa: FBT001 -- see `cluster.ReportEvent`
        kind: EventType = "Warning" if is_warning else "Normal"
        recorder.record(Reference.to(caches.resource, cluster.metadata), kind, reason, message)

    return report


def peer_reporter(
    recorder: Recorder, caches: Caches[improbable.EtcdCluster]
) -> Callable[[EtcdPeer, str, str], None]:
    """Events of peers, on their clusters."""

    def report(peer: EtcdPeer, reason: str, message: str) -> None:
        cluster = caches.clusters.store.get(Key(peer.metadata.namespace, peer.spec.cluster_name))
        if cluster is not None:
            kind: EventType = "Warning" if reason in WARNINGS else "Normal"
            recorder.record(Reference.to(caches.resource, cluster.metadata), kind, reason, message)

    return report
