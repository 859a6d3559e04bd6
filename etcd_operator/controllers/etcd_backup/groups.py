"""The groups of EtcdBackups, of their schedules, and of what these mean for clusters.

Groups of their own: without a definition or a right of theirs, clusters are served as before.
"""

from collections.abc import Mapping
from typing import Any

from etcd_operator.api.backups import UID_LABEL, EtcdBackup
from etcd_operator.controllers.etcd_backup.observe import BackupObserver
from etcd_operator.controllers.etcd_backup.reconciler import BackupReconciler
from etcd_operator.controllers.etcd_backup.source import Sources
from etcd_operator.controllers.etcd_backup_schedule.caches import BY_OWNER, ScheduleCaches, schedule_caches
from etcd_operator.controllers.etcd_backup_schedule.health import HealthReconciler
from etcd_operator.controllers.etcd_backup_schedule.metrics import ScheduleMetricsReporter
from etcd_operator.controllers.etcd_backup_schedule.observe import ScheduleObserver
from etcd_operator.controllers.etcd_backup_schedule.pruner import Pruner
from etcd_operator.controllers.etcd_backup_schedule.reconciler import ScheduleReconciler
from etcd_operator.controllers.shared.caches import Caches, CacheSource
from etcd_operator.controllers.shared.groups import Group, Wiring
from etcd_operator.controllers.shared.jobs import JobCaches, job_caches
from etcd_operator.controllers.shared.reporters import cluster_reporter
from etcd_operator.controllers.shared.unreadable import Unreadables
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.store import Index

Clusters = tuple[Informer[Any], ...]
"""The caches of EtcdClusters of both groups."""


def backup_caches(source: CacheSource) -> JobCaches[EtcdBackup]:
    """The informers of EtcdBackups and their Jobs."""
    by_owner: Mapping[str, Index[EtcdBackup]] = {BY_OWNER: lambda backup: (backup.metadata.controller_uid,)}
    return job_caches(source, resources.BACKUPS, EtcdBackup, UID_LABEL, by_owner)


def backup_groups(
    wiring: Wiring,
    source: CacheSource,
    backups: JobCaches[EtcdBackup],
    of_improbable: Caches[Any],
    of_coreos: Caches[Any],
) -> tuple[Group, ...]:
    """All groups, wired but not started."""
    schedules = schedule_caches(source, backups)
    return (
        _backups(wiring, backups, (of_improbable.clusters, of_coreos.clusters)),
        _schedules(wiring, schedules),
        _health(wiring, schedules, of_improbable),
    )


def _backups(wiring: Wiring, caches: JobCaches[EtcdBackup], clusters: Clusters) -> Group:
    reconciler = BackupReconciler(
        caches=caches,
        writes=wiring.writes(caches),
        observer=BackupObserver(caches=caches, sources=Sources(clusters=clusters), waits=wiring.waits()),
        recorder=wiring.recorder,
        clock=wiring.clock,
        image=wiring.own_image,
        repository=wiring.defaults.repository,
        failures=wiring.failures(),
        unreadables=Unreadables(objects=caches.owners, recorder=wiring.recorder),
    )
    controller = wiring.new_controller("improbable-backup", reconciler.reconcile)
    caches.wake(controller.enqueue, controller.restart)
    return Group(name="backups", informers=caches.all(), controllers=(controller,), others=clusters)


def _schedules(wiring: Wiring, caches: ScheduleCaches) -> Group:
    reconciler = ScheduleReconciler(
        caches=caches,
        writes=wiring.writes(caches),
        observer=ScheduleObserver(caches=caches, clock=wiring.clock),
        recorder=wiring.recorder,
        failures=wiring.failures(),
        unreadables=Unreadables(objects=caches.schedules, recorder=wiring.recorder),
        metrics=ScheduleMetricsReporter(on_metrics=wiring.on_metrics),
        pruner=Pruner(image=wiring.own_image, failures=wiring.failures()),
    )
    controller = wiring.new_controller("improbable-schedule", reconciler.reconcile)
    caches.wake(controller.enqueue, controller.restart)
    return Group(
        name="backup-schedules",
        informers=(caches.schedules,),
        controllers=(controller,),
        others=caches.of_backups.all(),
    )


def _health(wiring: Wiring, caches: ScheduleCaches, of_clusters: Caches[Any]) -> Group:
    reconciler = HealthReconciler(
        writes=wiring.writes(of_clusters),
        clusters=of_clusters.clusters,
        caches=caches,
        observer=ScheduleObserver(caches=caches, clock=wiring.clock),
        report=cluster_reporter(wiring.recorder, of_clusters),
    )
    controller = wiring.new_controller("improbable-backup-health", reconciler.reconcile)
    reconciler.wake(controller.enqueue)
    return Group(
        name="backup-health",
        informers=(),
        controllers=(controller,),
        others=(of_clusters.clusters, caches.schedules, caches.backups),
    )
