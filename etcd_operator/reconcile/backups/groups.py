"""The groups of EtcdBackups and of their schedules.

Groups of their own: without a definition or a right of theirs, clusters are served as before.
"""

from typing import Any

from etcd_operator.kube.informer import Informer
from etcd_operator.reconcile.backups.caches import BackupCaches, backup_caches
from etcd_operator.reconcile.backups.observe import BackupObserver
from etcd_operator.reconcile.backups.reconciler import BackupReconciler
from etcd_operator.reconcile.backups.schedules.caches import ScheduleCaches, schedule_caches
from etcd_operator.reconcile.backups.schedules.observe import ScheduleObserver
from etcd_operator.reconcile.backups.schedules.reconciler import ScheduleReconciler
from etcd_operator.reconcile.backups.source import Sources
from etcd_operator.reconcile.caches import Source
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.failures import Failures
from etcd_operator.reconcile.waits import Waits
from etcd_operator.reconcile.wiring import Group, Wiring

Clusters = tuple[Informer[Any], ...]
"""The caches of EtcdClusters of both groups."""


def backup_groups(wiring: Wiring, source: Source, clusters: Clusters) -> tuple[Group, Group]:
    """Both groups, wired but not started."""
    backups = backup_caches(source)
    return (
        _backups(wiring, backups, clusters),
        _schedules(wiring, schedule_caches(source, backups.backups)),
    )


def _backups(wiring: Wiring, caches: BackupCaches, clusters: Clusters) -> Group:
    reconciler = BackupReconciler(
        client=wiring.client,
        caches=caches,
        observer=BackupObserver(
            caches=caches, sources=Sources(clusters=clusters), waits=Waits(clock=wiring.clock)
        ),
        expectations=Expectations(),
        recorder=wiring.recorder,
        clock=wiring.clock,
        image=wiring.backup_image,
        repository=wiring.defaults.repository,
        failures=Failures(wiring.clock),
    )
    controller = wiring.new_controller("improbable-backup", reconciler.reconcile)
    caches.wake(controller.enqueue, controller.restart)
    return Group(name="backups", informers=caches.all(), controllers=(controller,), others=clusters)


def _schedules(wiring: Wiring, caches: ScheduleCaches) -> Group:
    reconciler = ScheduleReconciler(
        client=wiring.client,
        caches=caches,
        observer=ScheduleObserver(caches=caches, clock=wiring.clock),
        expectations=Expectations(),
        recorder=wiring.recorder,
        failures=Failures(wiring.clock),
    )
    controller = wiring.new_controller("improbable-schedule", reconciler.reconcile)
    caches.wake(controller.enqueue, controller.restart)
    return Group(
        name="backup-schedules",
        informers=(caches.schedules,),
        controllers=(controller,),
        others=(caches.backups,),
    )
