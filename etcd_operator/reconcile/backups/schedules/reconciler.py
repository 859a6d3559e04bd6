"""One pass over one EtcdBackupSchedule: observe, plan, create the EtcdBackup, write the status, clean up.

The EtcdBackup comes before the status. Its name follows from the time of the schedule, so another try meets
the same object; and if the status is never written, the next pass knows from the EtcdBackup that this time is
over. Caches may be behind: right before it is created, the schedule and its EtcdBackups are read live.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
import structlog

from etcd_operator.api.backup_schedules import (
    KIND,
    SCHEDULE_LABEL,
    EtcdBackupSchedule,
    LastBackup,
    ScheduleStatus,
)
from etcd_operator.api.backups import API_VERSION, EtcdBackup
from etcd_operator.api.meta import Condition
from etcd_operator.core.backups.schedules.plan import INVALID, SchedulePlan, plan
from etcd_operator.core.backups.schedules.prune import FAILED_REASON, PRUNED_REASON
from etcd_operator.core.backups.schedules.state import ScheduleState
from etcd_operator.core.backups.schedules.status import PRUNED, SUCCEEDED, VERIFIED, status
from etcd_operator.core.backups.state import COMPLETED, FAILED
from etcd_operator.core.status import BEHIND, CATCH_UP, RETRY_HELD
from etcd_operator.engine.controller import Result
from etcd_operator.errors import NotFound, OperatorError, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.events import EventType, Recorder, Reference
from etcd_operator.kube.views import Written
from etcd_operator.reconcile.backups.schedules.caches import ScheduleCaches
from etcd_operator.reconcile.backups.schedules.figures import ScheduleFigures
from etcd_operator.reconcile.backups.schedules.observe import ScheduleObserver, scheduled_backup
from etcd_operator.reconcile.backups.schedules.pruner import Pruner
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.failures import REQUEST_FAILED, Failures
from etcd_operator.reconcile.objects import NameTaken, Objects
from etcd_operator.render import scheduled_backup as render

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class ScheduleReconciler:
    """Creates the EtcdBackups of EtcdBackupSchedules."""

    client: Client
    caches: ScheduleCaches
    observer: ScheduleObserver
    expectations: Expectations
    recorder: Recorder
    failures: Failures
    figures: ScheduleFigures
    pruner: Pruner

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        schedule = self.caches.schedules.store.get(key)
        if schedule is None:
            self.failures.passed(key)
            self.figures.forget(key)
            self.pruner.failures.passed(key)
            return Result()
        if not self.expectations.are_met(key):
            return Result(requeue_after=CATCH_UP, is_done=False)
        wrote = self.expectations.noting(key, self.caches.of_resource)
        objects = Objects(client=self.client, namespace=key.namespace, wrote=wrote)
        try:
            return self._pass(schedule, objects)
        except TerminalError as error:
            # No event leads to the next pass: time does.
            log.error("schedule_pass_failed", key=str(key), error=str(error))
            return Result(requeue_after=RETRY_HELD)

    def _pass(self, schedule: EtcdBackupSchedule, objects: Objects) -> Result:
        state = self.observer.observe(schedule, objects)
        made = plan(state)
        if made is None:
            self.figures.forget(schedule.metadata.key)
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
        for backup in made.surplus:
            self.objects.remove(resources.BACKUPS, backup)
        self.reconciler.failures.passed(self._key)
        waits = [seconds for seconds in (made.requeue_after, after) if seconds is not None]
        return Result(requeue_after=min(waits, default=None))

    def _start(self, made: SchedulePlan, due: datetime) -> Result | None:
        """Create the EtcdBackup; how the pass ends if that was not possible."""
        try:
            if not self._is_still_due():
                return Result(requeue_after=BEHIND)
            self._create(due)
        except NameTaken as error:
            self._hold(made, "NameConflict", error)
            return Result(requeue_after=RETRY_HELD)
        except TerminalError as error:
            self._hold(made, type(error).__name__, error)
            return Result(requeue_after=RETRY_HELD)
        except OperatorError as error:
            self._hold(made, REQUEST_FAILED, error)
            raise
        return None

    def _is_still_due(self) -> bool:
        """Whether the API server shows the same: caches may be behind what another operator did."""
        metadata, previous = self.schedule.metadata, self.schedule.status
        found = self.objects.find(resources.SCHEDULES, metadata.name, EtcdBackupSchedule)
        return (
            found is not None
            and found.metadata.uid == metadata.uid
            and found.metadata.deletion_timestamp is None
            and found.metadata.generation == metadata.generation
            and found.status.since == previous.since
            and not any(scheduled_backup(backup).is_active for backup in self._live_backups())
        )

    def _live_backups(self) -> tuple[EtcdBackup, ...]:
        metadata = self.schedule.metadata
        listed = self.reconciler.client.list(
            resources.BACKUPS,
            EtcdBackup,
            namespace=metadata.namespace,
            label_selector=f"{SCHEDULE_LABEL}={metadata.name}",
        )
        return tuple(each for each in listed.items if each.metadata.controller_uid == metadata.uid)

    def _create(self, due: datetime) -> None:
        template = self.schedule.spec["backupTemplate"]
        body = render.scheduled_backup(self.schedule.metadata, template, due)
        if self.objects.create(resources.BACKUPS, body):
            self._event("Normal", "BackupStarted", f"created EtcdBackup {body['metadata']['name']}")

    def _hold(self, made: SchedulePlan, reason: str, error: Exception) -> None:
        """Write why the EtcdBackup cannot be created, as soon as it is worth a message."""
        message = self.reconciler.failures.failed(self._key, error)
        if message:
            held = replace(
                made, is_ready=False, reason=reason, message=message, start=None, warning=(reason, message)
            )
            self._write(held)

    def _write(self, made: SchedulePlan) -> None:
        """Write the status if it is new, with its Events. Raises Conflict on an outdated cache."""
        metadata, previous = self.schedule.metadata, self.schedule.status
        wanted = status(previous, self.state, made, generation=metadata.generation)
        self.reconciler.figures.observed(self.schedule, self.state, wanted)
        if wanted == previous:
            return
        with suppress(NotFound):  # deleted meanwhile
            self.objects.write_status(resources.SCHEDULES, metadata, msgspec.to_builtins(wanted), Written)
            self._record_events(previous, wanted, made)

    def _record_events(self, previous: ScheduleStatus, wanted: ScheduleStatus, made: SchedulePlan) -> None:
        if made.warning is not None:
            self._event("Warning", *made.warning)
        if made.reason == INVALID:
            self._event("Warning", INVALID, made.message)
        if made.prune.verdict == "False" and _pruned(previous) != _pruned(wanted):
            self._event("Warning", FAILED_REASON, made.prune.message)
        elif made.prune.removed:
            self._event("Normal", PRUNED_REASON, made.prune.message)
        if _has_just_ended(previous.last_backup, wanted.last_backup):
            verdict = next(each for each in wanted.conditions if each.type == SUCCEEDED)
            if verdict.status == "True":
                self._event("Normal", "BackupCompleted", verdict.message)
            else:
                self._event("Warning", "BackupFailed", verdict.message)
        self._record_verdict(_verdict(previous), _verdict(wanted))

    def _record_verdict(self, before: Condition | None, verdict: Condition | None) -> None:
        if verdict is None or (before is not None and before.message == verdict.message):
            return
        if verdict.status == "True":
            self._event("Normal", "BackupVerified", verdict.message)
        elif verdict.status == "False":
            self._event("Warning", "VerificationFailed", verdict.message)

    def _event(self, kind: EventType, reason: str, message: str) -> None:
        metadata = self.schedule.metadata
        about = Reference(
            api_version=API_VERSION,
            kind=KIND,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
        )
        self.reconciler.recorder.record(about, kind, reason, message)

    @property
    def _key(self) -> Key:
        return self.schedule.metadata.key


def _verdict(status: ScheduleStatus) -> Condition | None:
    return next((each for each in status.conditions if each.type == VERIFIED), None)


def _pruned(status: ScheduleStatus) -> Condition | None:
    return next((each for each in status.conditions if each.type == PRUNED), None)


def _has_just_ended(before: LastBackup | None, last: LastBackup | None) -> bool:
    return last is not None and last.phase in (COMPLETED, FAILED) and last != before
