"""The condition BackupHealthy of clusters that EtcdBackupSchedules name: those of `etcd.improbable.io`.

A controller of its own, so that a pass over members depends on no schedule. It hands the condition over to
that pass, which writes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic

from etcd_operator.api.backup_schedules import EtcdBackupSchedule
from etcd_operator.controllers.etcd_backup_schedule.caches import ScheduleCaches, cluster_of
from etcd_operator.controllers.etcd_backup_schedule.decide.health import Verdict, condition, judge
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import sleep
from etcd_operator.controllers.etcd_backup_schedule.observe import ScheduleObserver
from etcd_operator.controllers.shared.backup_reports import BackupReports
from etcd_operator.controllers.shared.caches import Cluster
from etcd_operator.controllers.shared.decide.backup_health import BackupHealth
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.passes import Passes
from etcd_operator.engine.controller import Result
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key


@dataclass(frozen=True, kw_only=True)
class HealthReconciler(Generic[Cluster]):
    """Reports whether clusters are backed up."""

    passes: Passes[Cluster]
    caches: ScheduleCaches
    observer: ScheduleObserver
    reports: BackupReports

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        return self.passes.over(key, self._pass, self.reports.forget)

    def _pass(self, cluster: Cluster, _: Objects) -> Result:
        if cluster.metadata.is_deleting:
            return Result()
        now = self.observer.clock.now()
        verdicts = {
            schedule.metadata.name: judge(self.observer.observe_backups(schedule), schedule.status)
            for schedule in self.caches.naming(cluster.metadata.key)
        }
        wanted = condition(verdicts, generation=cluster.metadata.generation)
        self.reports.hand_over(cluster, BackupHealth(condition=wanted), timestamp(now))
        return Result(requeue_after=_next(verdicts.values(), now))

    def wake(self, enqueue: Callable[[Key], None]) -> None:
        """Queue a cluster that changed, or one that a schedule names or has named before it changed."""

        def on_cluster(old: Cluster | None, new: Cluster | None) -> None:
            value = new or old
            if value is not None:
                enqueue(value.metadata.key)

        def on_schedule(old: EtcdBackupSchedule | None, new: EtcdBackupSchedule | None) -> None:
            for schedule in filter(None, (old, new)):
                cluster = cluster_of(schedule)
                if cluster is not None:
                    enqueue(cluster)

        self.passes.objects.add_handler(on_cluster)
        self.caches.schedules.add_handler(on_schedule)


def _next(verdicts: Iterable[Verdict], now: datetime) -> float | None:
    """Seconds until time alone changes a verdict, or until somebody may have set the clock."""
    left = [(each.until - now).total_seconds() for each in verdicts if each.until is not None]
    return sleep(min(left)) if left else None
