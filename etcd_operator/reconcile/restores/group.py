"""The group of EtcdRestores: without its definition or a right of its own, clusters are served as before."""

from etcd_operator.reconcile.caches import Source
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.failures import Failures
from etcd_operator.reconcile.restores.caches import restore_caches
from etcd_operator.reconcile.restores.jobs import JobReader
from etcd_operator.reconcile.restores.observe import RestoreObserver
from etcd_operator.reconcile.restores.reconciler import RestoreReconciler
from etcd_operator.reconcile.waits import Waits
from etcd_operator.reconcile.wiring import Group, Wiring


def restore_group(wiring: Wiring, source: Source) -> Group:
    """The group, wired but not started."""
    caches, waits = restore_caches(source), Waits(clock=wiring.clock)
    reconciler = RestoreReconciler(
        client=wiring.client,
        caches=caches,
        observer=RestoreObserver(jobs=JobReader(caches=caches, waits=waits), waits=waits),
        expectations=Expectations(),
        recorder=wiring.recorder,
        clock=wiring.clock,
        image=wiring.backup_image,
        repository=wiring.defaults.repository,
        failures=Failures(wiring.clock),
    )
    controller = wiring.new_controller("improbable-restore", reconciler.reconcile)
    caches.wake(controller.enqueue, controller.restart)
    return Group(name="restores", informers=caches.all(), controllers=(controller,), others=())
