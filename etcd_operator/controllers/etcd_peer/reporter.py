"""How what is done for a peer becomes an Event on its cluster."""

from collections.abc import Callable

from etcd_operator.api.improbable import EtcdCluster, EtcdPeer
from etcd_operator.controllers.shared.caches import Caches
from etcd_operator.controllers.shared.reporters import WARNINGS
from etcd_operator.keys import Key
from etcd_operator.kube.events import EventType, Recorder, Reference


def peer_reporter(recorder: Recorder, caches: Caches[EtcdCluster]) -> Callable[[EtcdPeer, str, str], None]:
    """Events of peers, on their clusters."""

    def report(peer: EtcdPeer, reason: str, message: str) -> None:
        cluster = caches.clusters.store.get(Key(peer.metadata.namespace, peer.spec.cluster_name))
        if cluster is not None:
            kind: EventType = "Warning" if reason in WARNINGS else "Normal"
            recorder.record(Reference.to(caches.resource, cluster.metadata), kind, reason, message)

    return report
