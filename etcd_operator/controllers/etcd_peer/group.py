"""How EtcdPeers are wired: their passes belong to the group of persistent clusters."""

from collections.abc import Callable

from etcd_operator.api.improbable import EtcdCluster
from etcd_operator.controllers.etcd_peer.act import PeerReport
from etcd_operator.controllers.etcd_peer.memory import PeerMemory
from etcd_operator.controllers.etcd_peer.observe import PeerObserver
from etcd_operator.controllers.etcd_peer.reconciler import PeerReconciler
from etcd_operator.controllers.shared.caches import Caches
from etcd_operator.controllers.shared.groups import Wiring
from etcd_operator.controllers.shared.passes import cluster_reporter
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.keys import Key


def peer_reconciler(
    wiring: Wiring,
    caches: Caches[EtcdCluster],
    writes: Writes,
    memory: PeerMemory,
    disown: PeerReport,
    wake_cluster: Callable[[Key], None],
) -> PeerReconciler:
    """The passes of EtcdPeers."""
    observer = PeerObserver(
        caches=caches,
        repository=wiring.defaults.repository,
        own_image=wiring.own_image,
        clock=wiring.clock,
        memory=memory,
    )
    return PeerReconciler(
        caches=caches,
        writes=writes,
        observer=observer,
        memory=memory,
        report=cluster_reporter(wiring.recorder, caches),
        disown=disown,
        wake_cluster=wake_cluster,
        failures=wiring.failures(),
    )
