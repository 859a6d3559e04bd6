"""The Job that removes old stored backups of a schedule: observed, created, deleted.

Whatever fails here is reported in the condition Pruned, and delays no backup.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import structlog

from etcd_operator.api.backup_schedules import EtcdBackupSchedule, ScheduleSpec, ScheduleStatus
from etcd_operator.api.backups import COMPLETED, EtcdBackup
from etcd_operator.api.meta import condition_of
from etcd_operator.controllers.etcd_backup_schedule.decide import prune
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import PruneAct, PrunePlan, PruneState
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import described_retention
from etcd_operator.controllers.etcd_backup_schedule.decide.status import PRUNED
from etcd_operator.controllers.etcd_backup_schedule.manifests import schedule as render
from etcd_operator.controllers.etcd_backup_schedule.readers import being_read, urls_of
from etcd_operator.controllers.shared.decide.holds import BEHIND, RETRY_HELD
from etcd_operator.controllers.shared.failures import Failures, reason_of
from etcd_operator.controllers.shared.job_reader import JobReader, lacks_report
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.decoding import convert
from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Job

log = structlog.get_logger()


def observe_prune(
    jobs: JobReader,
    schedule: EtcdBackupSchedule,
    spec: ScheduleSpec,
    backups: Sequence[EtcdBackup],
    objects: Objects,
) -> PruneState:
    """What is known of one schedule, whose spec is valid. Raises the errors of `Client`.

    backups: its own EtcdBackups.
    """
    status = schedule.status
    pruned = condition_of(status.conditions, PRUNED)
    done = status.last_prune.request if status.last_prune is not None else ""
    metadata = schedule.metadata
    job = jobs.read(
        metadata.key,
        metadata.uid,
        render.job_name(metadata),
        objects,
        finds=False,
        is_in_doubt=lambda job: lacks_report(job) and job.request != done,
    )
    if job is None:
        jobs.forget(metadata.key)
    return PruneState(
        retention=described_retention(spec.retention) if spec.retention is not None else "",
        newest=_newest(status),
        recorded=_recorded(backups, spec),
        done=done,
        pending=pruned.message if pruned is not None and pruned.reason == prune.PENDING else "",
        job=job,
    )


@dataclass(frozen=True, kw_only=True)
class Pruner:
    """Creates and deletes the Jobs. image: of the Job; may raise, see `OwnImage`."""

    image: Callable[[], str]
    failures: Failures

    def act(
        self, schedule: EtcdBackupSchedule, state: PruneState, plan: PrunePlan, objects: Objects
    ) -> tuple[PrunePlan, float | None]:
        """Do what is planned; what is to be reported, and after how many seconds it is tried again.

        Raises no `OperatorError`.
        """
        key = schedule.metadata.key
        try:
            after = self._act(schedule, state, plan, objects)
        except OperatorError as error:
            log.warning("prune_failed", key=str(key), error=str(error))
            return self._failed(key, error), RETRY_HELD
        self.failures.passed(key)
        return plan, after

    def _act(
        self, schedule: EtcdBackupSchedule, state: PruneState, plan: PrunePlan, objects: Objects
    ) -> float | None:
        if plan.act is PruneAct.REMOVE and state.job is not None:
            objects.remove(resources.JOBS, state.job, propagation="Foreground")
        if plan.act is PruneAct.CREATE:
            if not _is_current(schedule, objects):
                return BEHIND
            self._create(schedule, state, objects)
        return None

    def _create(self, schedule: EtcdBackupSchedule, state: PruneState, objects: Objects) -> None:
        spec, status = convert(schedule.spec, ScheduleSpec), schedule.status
        if spec.retention is None:
            raise TypeError("a schedule without a retention has no such Job")
        read = urls_of(being_read(objects), objects)
        urls = dict.fromkeys(
            (status.last_verified_url, state.newest, status.last_successful_url, *state.recorded, *read)
        )
        body = render.job(
            schedule.metadata,
            spec.backup_template,
            spec.retention,
            image=self.image(),
            request=state.request,
            keep=[url for url in urls if url],
        )
        if not objects.create(resources.JOBS, body):
            return  # an earlier attempt did: whether it goes on is decided by the next pass
        self._resume(render.job_name(schedule.metadata), read, objects)

    def _resume(self, name: str, kept: Collection[str], objects: Objects) -> None:
        """Let a Job begin, unless somebody has begun to read another backup: see `shared.pruning`."""
        job = objects.find(resources.JOBS, name, Job)
        if job is None or job.metadata.is_deleting:
            return
        if set(urls_of(being_read(objects), objects)) <= set(kept):
            objects.merge(resources.JOBS, job.metadata, {"spec": {"suspend": False}})
        else:
            objects.remove(resources.JOBS, job.metadata, propagation="Foreground")

    def _failed(self, key: Key, error: OperatorError) -> PrunePlan:
        """As soon as it is worth a message."""
        message = self.failures.failed(key, error)
        if not message:
            return prune.UNCHANGED
        return PrunePlan(verdict="False", reason=reason_of(error), message=message)


def _recorded(backups: Sequence[EtcdBackup], spec: ScheduleSpec) -> tuple[str, ...]:
    """Where as many of the newest EtcdBackups as are kept have stored their backups.

    Whoever can write to the store can put backups of this series there. They do not displace these.
    """
    most = spec.retention.max_count if spec.retention is not None else None
    stored = [each for each in backups if each.status.phase == COMPLETED and each.status.url]
    stored.sort(key=lambda each: each.metadata.name, reverse=True)  # the name contains the time
    return tuple(each.status.url for each in stored[: most or 0])


def _is_current(schedule: EtcdBackupSchedule, objects: Objects) -> bool:
    """Whether the API server shows the same: a cache may be behind an edit, or behind a newer backup."""
    read = schedule.metadata
    found = objects.find(resources.SCHEDULES, read.name, EtcdBackupSchedule)
    return found is not None and found.metadata.resource_version == read.resource_version


def _newest(status: ScheduleStatus) -> str:
    """The URL of the newest backup that is completed; empty if there is none."""
    last = status.last_backup
    if last is not None and last.phase == COMPLETED and last.url:
        return last.url
    return status.last_successful_url
