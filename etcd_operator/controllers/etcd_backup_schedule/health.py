"""The condition BackupHealthy of clusters that EtcdBackupSchedules name: those of `etcd.improbable.io`.

A controller of its own, so that a pass over members depends on no schedule. Both write the status of the
cluster, each its own part of it, as it was read: a write on an outdated cache is refused.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic

import msgspec

from etcd_operator.api.backup_schedules import EtcdBackupSchedule
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.etcd_backup_schedule.caches import ScheduleCaches, cluster_of
from etcd_operator.controllers.etcd_backup_schedule.decide.health import Verdict, condition, judge
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import sleep
from etcd_operator.controllers.etcd_backup_schedule.observe import ScheduleObserver
from etcd_operator.controllers.shared.caches import Cluster
from etcd_operator.controllers.shared.decide.backup_health import change, merged
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.reporters import ReportEvent
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.engine.controller import Result
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.views import Written


@dataclass(frozen=True, kw_only=True)
class HealthReconciler(Generic[Cluster]):
    """Reports whether clusters are backed up. report: an Event on a cluster."""

    writes: Writes
    clusters: Informer[Cluster]
    caches: ScheduleCaches
    observer: ScheduleObserver
    report: ReportEvent

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        cluster = self.clusters.store.get(key)
        is_unreadable = self.clusters.store.unreadable_at(key) is not None
        if cluster is None or cluster.metadata.is_deleting or is_unreadable:
            return Result()
        return self.writes.pass_over(key, lambda objects: self._pass(cluster, objects))

    def _pass(self, cluster: Cluster, objects: Objects) -> Result:
        now = self.observer.clock.now()
        verdicts = {
            schedule.metadata.name: judge(self.observer.observe_backups(schedule), schedule.status)
            for schedule in self.caches.naming(cluster.metadata.key)
        }
        wanted = condition(verdicts, generation=cluster.metadata.generation)
        self._write(cluster, wanted, now, objects)
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

        self.clusters.add_handler(on_cluster)
        self.caches.schedules.add_handler(on_schedule)

    def _write(self, cluster: Cluster, wanted: Condition | None, now: datetime, objects: Objects) -> None:
        """Write our condition if it is new. Raises Conflict on an outdated cache."""
        before = cluster.status
        conditions = merged(before.conditions, wanted, timestamp(now))
        if conditions == before.conditions:
            return
        status = msgspec.structs.replace(before, conditions=conditions)
        if objects.write_status(self.clusters.resource, cluster.metadata, status, Written):
            self._report(cluster, wanted)

    def _report(self, cluster: Cluster, wanted: Condition | None) -> None:
        event = change(cluster.status.conditions, wanted)
        if wanted is not None and event is not None:
            reason, is_warning = event
            self.report(cluster, reason, wanted.message, is_warning)


def _next(verdicts: Iterable[Verdict], now: datetime) -> float | None:
    """Seconds until time alone changes a verdict, or until somebody may have set the clock."""
    left = [(each.until - now).total_seconds() for each in verdicts if each.until is not None]
    return sleep(min(left)) if left else None
