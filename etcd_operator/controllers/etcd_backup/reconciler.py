"""One pass over one EtcdBackup: observe, plan, write the status, act; first to store it, then to verify it.

The first status is written before anything is made, with the resourceVersion of what was decided on: a pass
on an outdated cache fails there. Before the Job is made, the EtcdBackup is read live, because another
operator may have finished it meanwhile.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import assert_never

from etcd_operator.api.backups import BACKING_UP, COMPLETED, FAILED, EtcdBackup
from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_backup.decide import verification
from etcd_operator.controllers.etcd_backup.decide.plan import Act, BackupPlan, plan
from etcd_operator.controllers.etcd_backup.decide.state import RESTORE
from etcd_operator.controllers.etcd_backup.decide.status import status
from etcd_operator.controllers.etcd_backup.manifests import backup_job
from etcd_operator.controllers.etcd_backup.observe import BackupObserver, ObservedBackup
from etcd_operator.controllers.shared.decide.holds import BEHIND
from etcd_operator.controllers.shared.decide.job_state import LINGER, JobState
from etcd_operator.controllers.shared.groups import Wiring
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.passes import Passes
from etcd_operator.engine.controller import Result
from etcd_operator.errors import Forbidden, OperatorError
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Written
from etcd_operator.versions import image_of, restoring


@dataclass(frozen=True, kw_only=True)
class BackupReconciler:
    """Takes and verifies the backups that EtcdBackups ask for."""

    wiring: Wiring
    passes: Passes[EtcdBackup]
    observer: BackupObserver

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        return self.passes.over(key, self._pass, self.observer.jobs.forget)

    def _pass(self, backup: EtcdBackup, objects: Objects) -> Result:
        key = backup.metadata.key
        observed = self.observer.observe(backup, objects)
        left = self._left(backup)
        for job in left:
            if job.lingering >= LINGER:
                objects.remove(resources.JOBS, job)
        made = plan(observed.state) or verification.plan(observed.state)
        if made is not None:
            result = self._carry_out(observed, made, objects)
            again = [seconds for seconds in (result.requeue_after, LINGER if left else None) if seconds]
            return replace(result, requeue_after=min(again, default=None))
        self.passes.failures.passed(key)
        if left:
            return Result(requeue_after=LINGER)
        self.observer.jobs.forget(key)
        return Result()

    def _left(self, backup: EtcdBackup) -> list[JobState]:
        """The Jobs whose pods go on although all that they reported is recorded: they keep claims in use."""
        metadata, status, jobs = backup.metadata, backup.status, self.observer.jobs
        is_verified = status.verification is not None and bool(status.verification.completion_time)
        done = {False: status.phase in (COMPLETED, FAILED), True: is_verified}
        names = [backup_job.job_name(metadata, is_verification=which) for which in done if done[which]]
        found = [jobs.cached(metadata.key, metadata.uid, name) for name in names]
        return [job for job in found if job is not None and job.lingers and not job.is_terminating]

    def _carry_out(self, observed: ObservedBackup, made: BackupPlan, objects: Objects) -> Result:
        match made.act:
            case Act.CREATE_JOB:
                return self._create_job(observed, made, objects)
            case Act.SUPPLY_JOB:
                return self._supply_job(observed, made, objects)
            case Act.STOP_JOB:
                self._write(observed, made, objects)
                if observed.state.job is not None:
                    # After its pod: while the Job exists, nothing is concluded.
                    objects.remove(resources.JOBS, observed.state.job, propagation="Foreground")
            case Act.NOTHING:
                self._write(observed, made, objects)
            case _:
                assert_never(made.act)
        self.passes.failures.passed(observed.backup.metadata.key)
        return Result(requeue_after=made.requeue_after)

    def _create_job(self, observed: ObservedBackup, made: BackupPlan, objects: Objects) -> Result:
        """Make it, or report why it cannot be made; its own event leads to the next pass."""
        try:
            if not self._is_still_wanted(observed, objects):
                return Result(requeue_after=BEHIND)
            self._make(observed, objects)
        except OperatorError as error:
            return self._failed(observed, made, error, objects)
        self.passes.failures.passed(observed.backup.metadata.key)
        return Result(requeue_after=made.requeue_after)

    def _supply_job(self, observed: ObservedBackup, made: BackupPlan, objects: Objects) -> Result:
        """Make the Secret that the pod waits for, or report why it cannot be made."""
        job, spec, metadata = observed.state.job, observed.spec, observed.backup.metadata
        try:
            if job is not None and spec is not None and not _has_secret(job, objects):
                credentials = self.observer.sources.credentials(spec.source, metadata.namespace)
                objects.create(resources.SECRETS, backup_job.secret(metadata, job, credentials))
        except OperatorError as error:
            return self._failed(observed, made, error, objects)
        self._write(observed, made, objects)
        self.passes.failures.passed(metadata.key)
        return Result(requeue_after=made.requeue_after)

    def _failed(
        self, observed: ObservedBackup, made: BackupPlan, error: OperatorError, objects: Objects
    ) -> Result:
        return self.passes.failed(
            observed.backup.metadata.key,
            error,
            lambda reason, message: self._write(
                observed, replace(made, reason=reason, message=message), objects
            ),
        )

    def _is_still_wanted(self, observed: ObservedBackup, objects: Objects) -> bool:
        """Whether the API server shows the same: caches may be behind what another operator did."""
        name, uid = observed.backup.metadata.name, observed.backup.metadata.uid
        found = objects.find(resources.BACKUPS, name, EtcdBackup)
        if found is None or found.metadata.uid != uid or found.metadata.is_deleting:
            return False
        if not observed.state.is_to_be_verified:
            return found.status.phase == BACKING_UP and not found.status.job_name
        due = found.status.verification
        return due is not None and not (due.job_name or due.completion_time)

    def _make(self, observed: ObservedBackup, objects: Objects) -> None:
        body = self._body(observed)
        if objects.create(resources.JOBS, body):
            reason = "VerificationStarted" if observed.state.is_to_be_verified else "BackupStarted"
            self.passes.event(observed.backup, "Normal", reason, f"created Job {body['metadata']['name']}")

    def _body(self, observed: ObservedBackup) -> RawObject:
        state, metadata, spec = observed.state, observed.backup.metadata, observed.spec
        if spec is None:
            raise TypeError("a backup without a valid spec has no Job")
        image = self.wiring.own_image()
        if not state.is_to_be_verified:
            endpoints = state.source.endpoints
            return backup_job.job(
                metadata,
                spec,
                image=image,
                url=state.url,
                endpoints=endpoints,
                has_secret=state.source.needs_secret,
            )
        version = restoring(state.etcd_version) if state.verify == RESTORE else None
        etcd_image = image_of(self.wiring.defaults.repository, version) if version is not None else ""
        return backup_job.verification_job(
            metadata,
            spec,
            image=image,
            url=state.url,
            etcd_image=etcd_image,
            size=observed.backup.status.size,
        )

    def _write(self, observed: ObservedBackup, made: BackupPlan, objects: Objects) -> None:
        """Write the status if it is new, with the Event of an end. Raises Conflict on an outdated cache."""
        backup = observed.backup
        now = timestamp(self.wiring.clock.now())
        generation = backup.metadata.generation
        wanted = status(backup.status, observed.state, made, generation=generation, now=now)
        if wanted == backup.status:
            return
        if made.phase != BACKING_UP and observed.state.job is not None:
            _remove_secret(observed.state.job, objects)
        if objects.write_status(resources.BACKUPS, backup.metadata, wanted, Written):
            self._record_end(backup, made)

    def _record_end(self, backup: EtcdBackup, made: BackupPlan) -> None:
        if backup.status.phase == COMPLETED:
            self._record_verdict(backup, made)
        elif made.phase == COMPLETED:
            self.passes.event(backup, "Normal", "BackupCompleted", made.message)
        elif made.phase == FAILED:
            self.passes.event(backup, "Warning", "BackupFailed", made.message)

    def _record_verdict(self, backup: EtcdBackup, made: BackupPlan) -> None:
        if made.verdict is True:
            self.passes.event(backup, "Normal", "BackupVerified", made.message)
        elif made.verdict is False:
            self.passes.event(backup, "Warning", "VerificationFailed", made.message)


def _has_secret(job: JobState, objects: Objects) -> bool:
    """Whether the Secret of a Job that needs one exists, live. Raises the errors of `Client`."""
    found = objects.find(resources.SECRETS, job.secret, Written)
    return found is not None and found.metadata.controller_uid == job.uid


def _remove_secret(job: JobState, objects: Objects) -> None:
    """The Job has ended: nothing needs its certificate any more."""
    with suppress(Forbidden):  # the certificate expires, and the Secret is deleted with the Job
        if job.secret:
            objects.remove_of(job.uid, resources.SECRETS, job.secret)
