"""The Job that removes old stored backups of a schedule: observed, created, deleted.

Whatever fails here is reported in the condition Pruned, and delays no backup.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import structlog

from etcd_operator.api.backup_schedules import (
    PRUNE_ANNOTATION,
    EtcdBackupSchedule,
    ScheduleSpec,
    ScheduleStatus,
)
from etcd_operator.api.meta import condition_of
from etcd_operator.controllers.etcd_backup.decide.state import COMPLETED
from etcd_operator.controllers.etcd_backup.observe import pod_state
from etcd_operator.controllers.etcd_backup_schedule.caches import ScheduleCaches
from etcd_operator.controllers.etcd_backup_schedule.decide import prune
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import (
    PruneAct,
    PruneJob,
    PrunePlan,
    PruneReport,
    PruneState,
)
from etcd_operator.controllers.etcd_backup_schedule.decide.retention import described
from etcd_operator.controllers.etcd_backup_schedule.decide.status import PRUNED
from etcd_operator.controllers.etcd_backup_schedule.manifests import prune_job
from etcd_operator.controllers.etcd_backup_schedule.readers import being_read, urls_of
from etcd_operator.controllers.etcd_cluster.decide.status import BEHIND, RETRY_HELD
from etcd_operator.controllers.shared.decide.job_end import JobEnd
from etcd_operator.controllers.shared.failures import Failures, reason_of
from etcd_operator.controllers.shared.jobs import end_of, live_pods
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.decoding import convert
from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Job, Pod

log = structlog.get_logger()


def observe_prune(
    caches: ScheduleCaches, schedule: EtcdBackupSchedule, spec: ScheduleSpec, objects: Objects
) -> PruneState:
    """What is known of one schedule, whose spec is valid. Raises the errors of `Client`."""
    status = schedule.status
    pruned = condition_of(status.conditions, PRUNED)
    done = status.last_prune.request if status.last_prune is not None else ""
    return PruneState(
        retention=described(spec.retention) if spec.retention is not None else "",
        newest=_newest(status),
        done=done,
        pending=pruned.message if pruned is not None and pruned.reason == prune.PENDING else "",
        job=_job(caches, schedule, done, objects),
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
        urls = dict.fromkeys((status.last_verified_url, state.newest, status.last_successful_url, *read))
        body = prune_job.job(
            schedule.metadata,
            spec.backup_template,
            spec.retention,
            image=self.image(),
            request=state.request,
            keep=[url for url in urls if url],
        )
        objects.create(resources.JOBS, body)

    def _failed(self, key: Key, error: OperatorError) -> PrunePlan:
        """As soon as it is worth a message."""
        message = self.failures.failed(key, error)
        if not message:
            return prune.UNCHANGED
        return PrunePlan(verdict="False", reason=reason_of(error), message=message)


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


def _job(
    caches: ScheduleCaches, schedule: EtcdBackupSchedule, done: str, objects: Objects
) -> PruneJob | None:
    """The Job that was made for this very schedule; anybody else's of that name is none."""
    metadata = schedule.metadata
    found = caches.jobs.store.get(Key(metadata.namespace, prune_job.job_name(metadata)))
    if found is None or found.metadata.controller_uid != metadata.uid:
        return None
    job, pods = _without_pods(found), caches.pods_of(found.metadata)
    made = _with_pods(job, pods)
    if job.end is JobEnd.RUNS or made.report is not None or job.request == done:
        return made
    return _with_pods(job, live_pods(found, objects))  # not in a cache is not absent


def _without_pods(job: Job) -> PruneJob:
    end, message = end_of(job)
    return PruneJob(
        name=job.metadata.name,
        uid=job.metadata.uid,
        request=job.metadata.annotations.get(PRUNE_ANNOTATION, ""),
        end=end,
        message=message,
        is_terminating=job.metadata.is_deleting,
    )


def _with_pods(job: PruneJob, pods: Iterable[Pod]) -> PruneJob:
    listed = tuple(pods)
    reports = [report for pod in listed if (report := _report(pod)) is not None]
    waiting = [found.waits_for for found in map(pod_state, listed) if not found.has_started]
    return replace(job, report=reports[-1] if reports else None, waits_for=next(filter(None, waiting), ""))


def _report(pod: Pod) -> PruneReport | None:
    ended = (each.state.terminated for each in pod.status.container_statuses)
    return next((report for each in ended if each is not None and (report := prune.read(each.message))), None)
