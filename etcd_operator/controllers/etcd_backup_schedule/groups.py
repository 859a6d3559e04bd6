"""The groups of EtcdBackupSchedules, and of what these mean for clusters.

Groups of their own: without a definition or a right of theirs, clusters are served as before.
"""

from typing import Any

from etcd_operator.api.backups import EtcdBackup
from etcd_operator.controllers.etcd_backup_schedule.caches import schedule_caches
from etcd_operator.controllers.etcd_backup_schedule.health import HealthReconciler
from etcd_operator.controllers.etcd_backup_schedule.observe import ScheduleObserver
from etcd_operator.controllers.etcd_backup_schedule.pruner import Pruner
from etcd_operator.controllers.etcd_backup_schedule.reconciler import (
    ScheduleMetricsReporter,
    ScheduleReconciler,
)
from etcd_operator.controllers.shared.backup_reports import BackupReports
from etcd_operator.controllers.shared.caches import Caches, CacheSource
from etcd_operator.controllers.shared.groups import Group, Wiring
from etcd_operator.controllers.shared.job_reader import JobReader
from etcd_operator.controllers.shared.jobs import JobCaches


def schedule_groups(
    wiring: Wiring,
    source: CacheSource,
    backups: JobCaches[EtcdBackup],
    of_clusters: Caches[Any],
    reports: BackupReports,
) -> tuple[Group, Group]:
    """Both groups, wired but not started. of_clusters: the caches of EtcdClusters with schedules."""
    caches = schedule_caches(source, backups)
    jobs = JobReader(caches=backups, waits=wiring.waits())
    observer = ScheduleObserver(caches=caches, jobs=jobs, clock=wiring.clock)
    reconciler = ScheduleReconciler(
        passes=wiring.passes(caches.schedules, *backups.all()),
        observer=observer,
        metrics=ScheduleMetricsReporter(on_metrics=wiring.on_metrics),
        pruner=Pruner(image=wiring.own_image, failures=wiring.failures()),
    )
    controller = wiring.new_controller("improbable-schedule", reconciler.reconcile)
    caches.wake(controller.enqueue, controller.restart)
    health = HealthReconciler(
        passes=wiring.passes(of_clusters.clusters, reports_unreadable=False),
        caches=caches,
        observer=observer,
        reports=reports,
    )
    health_controller = wiring.new_controller("improbable-backup-health", health.reconcile)
    health.wake(health_controller.enqueue)
    return (
        Group(
            name="backup-schedules",
            informers=(caches.schedules,),
            controllers=(controller,),
            others=backups.all(),
        ),
        Group(
            name="backup-health",
            informers=(),
            controllers=(health_controller,),
            others=(of_clusters.clusters, caches.schedules, backups.owners),
        ),
    )
