"""What metrics show of EtcdBackupSchedules, as passes over them find it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from etcd_operator.api.backup_schedules import KIND, EtcdBackupSchedule, ScheduleStatus
from etcd_operator.controllers.etcd_backup_schedule.caches import cluster_of
from etcd_operator.controllers.etcd_backup_schedule.decide.health import judge
from etcd_operator.controllers.etcd_backup_schedule.decide.metrics import (
    ScheduleMemory,
    remembered,
    schedule_metrics,
)
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduledBackup, ScheduleState
from etcd_operator.keys import Key
from etcd_operator.object_metrics import OnMetrics


@dataclass(eq=False, kw_only=True)
class ScheduleMetricsReporter:
    """Passes on the metrics of each schedule. Only passes over a key call this with it."""

    on_metrics: OnMetrics
    _kept: dict[Key, ScheduleMemory] = field(default_factory=dict)

    def observed(
        self,
        schedule: EtcdBackupSchedule,
        state: ScheduleState,
        ended: Iterable[ScheduledBackup],
        wanted: ScheduleStatus,
    ) -> None:
        """A pass found `state`, and is about to write `wanted`, which reports what has `ended`."""
        metadata, cluster = schedule.metadata, cluster_of(schedule)
        key = metadata.key
        kept = remembered(self._kept.get(key), metadata.uid, state, ended, wanted)
        self._kept[key] = kept
        name = cluster.name if cluster is not None else ""
        template = schedule.spec.get("backupTemplate")
        is_verified = isinstance(template, dict) and bool(template.get("verify"))
        shown = schedule_metrics(kept, name, state, wanted, judge(state, wanted), is_verified=is_verified)
        self.on_metrics(KIND, key, shown)

    def forget(self, key: Key) -> None:
        """The schedule is deleted."""
        self._kept.pop(key, None)
        self.on_metrics(KIND, key, None)
