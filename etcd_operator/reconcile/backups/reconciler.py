"""One pass over one EtcdBackup: observe, plan, write the status, act; first to store it, then to verify it.

The first status is written before anything is made, with the resourceVersion of what was decided on: a pass
on an outdated cache fails there. Before the Job is made, the EtcdBackup is read live, because another
operator may have finished it meanwhile.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import assert_never

import msgspec
import structlog

from etcd_operator.api.backups import API_VERSION, KIND, EtcdBackup
from etcd_operator.api.meta import RawObject
from etcd_operator.clock import Clock
from etcd_operator.core.backups import verification
from etcd_operator.core.backups.plan import Act, BackupPlan, plan
from etcd_operator.core.backups.state import BACKING_UP, COMPLETED, FAILED, RESTORE
from etcd_operator.core.backups.status import status
from etcd_operator.core.status import BEHIND, CATCH_UP, RETRY_HELD
from etcd_operator.core.versions import image_of, restoring
from etcd_operator.engine.controller import Result
from etcd_operator.errors import NotFound, OperatorError, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.events import EventType, Recorder, Reference
from etcd_operator.kube.views import Written
from etcd_operator.reconcile.backups.caches import BackupCaches
from etcd_operator.reconcile.backups.observe import BackupObserver, ObservedBackup
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.failures import REQUEST_FAILED, Failures
from etcd_operator.reconcile.objects import NameTaken, Objects
from etcd_operator.render import backup_job
from etcd_operator.timestamps import timestamp

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class BackupReconciler:
    """Takes and verifies the backups that EtcdBackups ask for.

    image: of the Jobs; may raise, see `OwnImage`. repository: of etcd's images.
    """

    client: Client
    caches: BackupCaches
    observer: BackupObserver
    expectations: Expectations
    recorder: Recorder
    clock: Clock
    image: Callable[[], str]
    repository: str
    failures: Failures

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        backup = self.caches.backups.store.get(key)
        if backup is None:
            return self._over(key)
        if not self.expectations.are_met(key):
            return Result(requeue_after=CATCH_UP, is_done=False)
        try:
            return self._pass(key, backup)
        except TerminalError as error:
            # No event leads to the next pass: time does.
            log.error("backup_pass_failed", key=str(key), error=str(error))
            return Result(requeue_after=RETRY_HELD)

    def _pass(self, key: Key, backup: EtcdBackup) -> Result:
        objects = self._objects(key)
        observed = self.observer.observe(key, backup, objects)
        made = plan(observed.state) or verification.plan(observed.state)
        return self._carry_out(observed, made, objects) if made is not None else self._over(key)

    def _over(self, key: Key) -> Result:
        self.failures.passed(key)
        self.observer.waits.forget(key)
        return Result()

    def _objects(self, key: Key) -> Objects:
        wrote = self.expectations.noting(key, self.caches.of_resource)
        return Objects(client=self.client, namespace=key.namespace, wrote=wrote)

    def _carry_out(self, observed: ObservedBackup, made: BackupPlan, objects: Objects) -> Result:
        match made.act:
            case Act.CREATE_JOB:
                return self._create_job(observed, made, objects)
            case Act.STOP_JOB:
                self._write(observed, made, objects)
                self._stop_job(observed, objects)
            case Act.NOTHING:
                self._write(observed, made, objects)
            case _:
                assert_never(made.act)
        self.failures.passed(observed.key)
        return Result(requeue_after=made.requeue_after)

    def _create_job(self, observed: ObservedBackup, made: BackupPlan, objects: Objects) -> Result:
        """Make it, or report why it cannot be made; its own event leads to the next pass."""
        try:
            if not self._is_still_wanted(observed, objects):
                return Result(requeue_after=BEHIND)
            self._make(observed, objects)
        except NameTaken as error:
            self._report(observed, made, "NameConflict", error, objects)
            return Result(requeue_after=RETRY_HELD)
        except TerminalError as error:
            self._report(observed, made, type(error).__name__, error, objects)
            return Result(requeue_after=RETRY_HELD)
        except OperatorError as error:
            self._report(observed, made, REQUEST_FAILED, error, objects)
            raise
        self.failures.passed(observed.key)
        return Result(requeue_after=made.requeue_after)

    def _is_still_wanted(self, observed: ObservedBackup, objects: Objects) -> bool:
        """Whether the API server shows the same: caches may be behind what another operator did."""
        name, uid = observed.key.name, observed.backup.metadata.uid
        found = objects.find(resources.BACKUPS, name, EtcdBackup)
        if found is None or found.metadata.uid != uid or found.metadata.deletion_timestamp is not None:
            return False
        if not observed.state.is_to_be_verified:
            return found.status.phase == BACKING_UP and not found.status.job_name
        due = found.status.verification
        return due is not None and not (due.job_name or due.completion_time)

    def _make(self, observed: ObservedBackup, objects: Objects) -> None:
        body = self._body(observed)
        if objects.create(resources.JOBS, body):
            reason = "VerificationStarted" if observed.state.is_to_be_verified else "BackupStarted"
            self._event(observed.backup, "Normal", reason, f"created Job {body['metadata']['name']}")

    def _body(self, observed: ObservedBackup) -> RawObject:
        state, metadata, spec = observed.state, observed.backup.metadata, observed.spec
        if spec is None:
            raise TypeError("a backup without a valid spec has no Job")
        if not state.is_to_be_verified:
            endpoints = state.source.endpoints
            return backup_job.job(metadata, spec, image=self.image(), url=state.url, endpoints=endpoints)
        version = restoring(state.etcd_version) if state.verify == RESTORE else None
        etcd_image = image_of(self.repository, version) if version is not None else ""
        return backup_job.verification_job(
            metadata, spec, image=self.image(), url=state.url, etcd_image=etcd_image
        )

    def _stop_job(self, observed: ObservedBackup, objects: Objects) -> None:
        """Delete the Job after its pod: while it exists, nothing is concluded."""
        job = observed.state.job
        if job is not None:
            objects.remove(resources.JOBS, job, propagation="Foreground")

    def _report(
        self, observed: ObservedBackup, made: BackupPlan, reason: str, error: Exception, objects: Objects
    ) -> None:
        """Write why the Job cannot be made, as soon as it is worth a message."""
        message = self.failures.failed(observed.key, error)
        if message:
            self._write(observed, replace(made, reason=reason, message=message), objects)

    def _write(self, observed: ObservedBackup, made: BackupPlan, objects: Objects) -> None:
        """Write the status if it is new, with the Event of an end. Raises Conflict on an outdated cache."""
        backup = observed.backup
        now = timestamp(self.clock.now())
        generation = backup.metadata.generation
        wanted = status(backup.status, observed.state, made, generation=generation, now=now)
        if wanted == backup.status:
            return
        with suppress(NotFound):  # deleted meanwhile
            objects.write_status(resources.BACKUPS, backup.metadata, msgspec.to_builtins(wanted), Written)
            self._record_end(backup, made)

    def _record_end(self, backup: EtcdBackup, made: BackupPlan) -> None:
        if backup.status.phase == COMPLETED:
            self._record_verdict(backup, made)
        elif made.phase == COMPLETED:
            self._event(backup, "Normal", "BackupCompleted", made.message)
        elif made.phase == FAILED:
            self._event(backup, "Warning", "BackupFailed", made.message)

    def _record_verdict(self, backup: EtcdBackup, made: BackupPlan) -> None:
        if made.verdict is True:
            self._event(backup, "Normal", "BackupVerified", made.message)
        elif made.verdict is False:
            self._event(backup, "Warning", "VerificationFailed", made.message)

    def _event(self, backup: EtcdBackup, kind: EventType, reason: str, message: str) -> None:
        about = Reference(
            api_version=API_VERSION,
            kind=KIND,
            namespace=backup.metadata.namespace,
            name=backup.metadata.name,
            uid=backup.metadata.uid,
        )
        self.recorder.record(about, kind, reason, message)
