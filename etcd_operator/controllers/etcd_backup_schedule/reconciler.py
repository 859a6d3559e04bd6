"""One pass over one EtcdBackupSchedule: observe, plan, create the EtcdBackup, write the status, clean up.

The EtcdBackup comes before the status. Its name follows from the time of the schedule, so another try meets
the same object; and if the status is never written, the next pass knows from the EtcdBackup that this time is
over. Caches may be behind: right before it is created, the schedule and its EtcdBackups are read live.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from etcd_operator.api.backup_schedules import KIND, SCHEDULE_LABEL, EtcdBackupSchedule, ScheduleStatus
from etcd_operator.api.backups import COMPLETED, EtcdBackup
from etcd_operator.api.meta import Condition, condition_of
from etcd_operator.controllers.etcd_backup_schedule.caches import cluster_of
from etcd_operator.controllers.etcd_backup_schedule.decide.health import judge
from etcd_operator.controllers.etcd_backup_schedule.decide.metrics import (
    ScheduleMemory,
    remembered,
    schedule_metrics,
)
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import INVALID, SchedulePlan, plan
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import FAILED_REASON, PRUNED_REASON
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import is_of_schedule
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState, is_active
from etcd_operator.controllers.etcd_backup_schedule.decide.status import (
    PRUNED,
    VERIFIED,
    described,
    status,
    to_be_reported,
)
from etcd_operator.controllers.etcd_backup_schedule.manifests import schedule as render
from etcd_operator.controllers.etcd_backup_schedule.observe import ScheduleObserver, is_own
from etcd_operator.controllers.etcd_backup_schedule.pruner import Pruner
from etcd_operator.controllers.etcd_backup_schedule.readers import being_read
from etcd_operator.controllers.shared.decide.holds import BEHIND
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.passes import Passes
from etcd_operator.engine.controller import Result
from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.events import EventType
from etcd_operator.kube.views import Written
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
        ended: Iterable[EtcdBackup],
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


@dataclass(frozen=True, kw_only=True)
class ScheduleReconciler:
    """Creates the EtcdBackups of EtcdBackupSchedules."""

    passes: Passes[EtcdBackupSchedule]
    observer: ScheduleObserver
    metrics: ScheduleMetricsReporter
    pruner: Pruner

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        return self.passes.over(key, self._pass, self._deleted)

    def _deleted(self, key: Key) -> None:
        self.metrics.forget(key)
        self.pruner.failures.passed(key)
        self.observer.jobs.forget(key)

    def _pass(self, schedule: EtcdBackupSchedule, objects: Objects) -> Result:
        state = self.observer.observe(schedule, objects)
        made = plan(state)
        if made is None:
            self.metrics.forget(schedule.metadata.key)
            return Result()
        return _Pass(reconciler=self, schedule=schedule, state=state, objects=objects).carry_out(made)


@dataclass(frozen=True, kw_only=True)
class _Pass:
    """One schedule, as it is seen in one pass."""

    reconciler: ScheduleReconciler
    schedule: EtcdBackupSchedule
    state: ScheduleState
    objects: Objects

    def carry_out(self, made: SchedulePlan) -> Result:
        """Act and report. Raises the errors of `Client`."""
        held = self._start(made, made.start) if made.start is not None else None
        if held is not None:
            return held
        pruner = self.reconciler.pruner
        prune, after = pruner.act(self.schedule, self.state.prune, made.prune, self.objects)
        self._write(replace(made, prune=prune))
        self._remove_surplus(made)
        self.reconciler.passes.failures.passed(self._key)
        waits = [seconds for seconds in (made.requeue_after, after) if seconds is not None]
        return Result(requeue_after=min(waits, default=None))

    def _remove_surplus(self, made: SchedulePlan) -> None:
        """But for those whose names a restore under way reads; they go when it has ended."""
        read = {each.name for each in being_read(self.objects)} if made.surplus else set()
        for backup in made.surplus:
            if backup.metadata.name not in read:
                self.objects.remove(resources.BACKUPS, backup.metadata)

    def _start(self, made: SchedulePlan, due: datetime) -> Result | None:
        """Create the EtcdBackup; how the pass ends if that was not possible."""
        try:
            if not self._is_still_due():
                return Result(requeue_after=BEHIND)
            self._create(due)
        except OperatorError as error:
            return self.reconciler.passes.failed(self._key, error, partial(self._hold, made))
        return None

    def _is_still_due(self) -> bool:
        """Whether the API server shows the same: caches may be behind what another operator did."""
        metadata, previous = self.schedule.metadata, self.schedule.status
        found = self.objects.find(resources.SCHEDULES, metadata.name, EtcdBackupSchedule)
        return (
            found is not None
            and found.metadata.uid == metadata.uid
            and not found.metadata.is_deleting
            and found.metadata.generation == metadata.generation
            and found.status.since == previous.since
            and not any(is_active(backup) for backup in self._live_backups())
        )

    def _live_backups(self) -> tuple[EtcdBackup, ...]:
        metadata = self.schedule.metadata
        listing = self.objects.client.list(
            resources.BACKUPS,
            EtcdBackup,
            namespace=metadata.namespace,
            label_selector=f"{SCHEDULE_LABEL}={metadata.name}",
        )
        return tuple(
            each
            for each in listing.whole()
            if each.metadata.controller_uid == metadata.uid
            and is_of_schedule(each, metadata.name)
            and is_own(each, self.schedule)
        )

    def _create(self, due: datetime) -> None:
        template = self.schedule.spec["backupTemplate"]
        body = render.scheduled_backup(self.schedule.metadata, template, due)
        if self.objects.create(resources.BACKUPS, body):
            self._event("Normal", "BackupStarted", f"created EtcdBackup {body['metadata']['name']}")
            return
        name = body["metadata"]["name"]
        found = self.objects.find(resources.BACKUPS, name, EtcdBackup)
        if found is not None and found.spec != template:
            message = f"EtcdBackup {name} exists, and its spec is not that of this schedule: delete it"
            raise NameConflict(message, is_passing=False)

    def _hold(self, made: SchedulePlan, reason: str, message: str) -> None:
        """Write why the EtcdBackup cannot be created."""
        warning = reason, message
        self._write(
            replace(made, is_ready=False, reason=reason, message=message, start=None, warning=warning)
        )

    def _write(self, made: SchedulePlan) -> None:
        """Write the status if it is new, with its Events. Raises Conflict on an outdated cache."""
        metadata, previous = self.schedule.metadata, self.schedule.status
        wanted = status(previous, self.state, made, generation=metadata.generation)
        ended = to_be_reported(previous, self.state, made)
        self.reconciler.metrics.observed(self.schedule, self.state, ended, wanted)
        if wanted == previous:
            return
        if self.objects.write_status(resources.SCHEDULES, metadata, wanted, Written):
            for backup in ended:
                self._record_end(backup)
            self._record_events(previous, wanted, made)

    def _record_end(self, backup: EtcdBackup) -> None:
        if backup.status.phase == COMPLETED:
            self._event("Normal", "BackupCompleted", described(backup))
        else:
            self._event("Warning", "BackupFailed", described(backup))

    def _record_events(self, previous: ScheduleStatus, wanted: ScheduleStatus, made: SchedulePlan) -> None:
        pruned = condition_of(previous.conditions, PRUNED)
        if made.warning is not None:
            self._event("Warning", *made.warning)
        if made.reason == INVALID:
            self._event("Warning", INVALID, made.message)
        if made.prune.verdict == "False" and pruned != condition_of(wanted.conditions, PRUNED):
            self._event("Warning", FAILED_REASON, made.prune.message)
        elif made.prune.removed:
            self._event("Normal", PRUNED_REASON, made.prune.message)
        verdicts = (condition_of(status.conditions, VERIFIED) for status in (previous, wanted))
        self._record_verdict(*verdicts)

    def _record_verdict(self, before: Condition | None, verdict: Condition | None) -> None:
        if verdict is None or (before is not None and before.message == verdict.message):
            return
        if verdict.status == "True":
            self._event("Normal", "BackupVerified", verdict.message)
        elif verdict.status == "False":
            self._event("Warning", "VerificationFailed", verdict.message)

    def _event(self, kind: EventType, reason: str, message: str) -> None:
        self.reconciler.passes.event(self.schedule, kind, reason, message)

    @property
    def _key(self) -> Key:
        return self.schedule.metadata.key
