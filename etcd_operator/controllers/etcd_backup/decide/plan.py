"""The ordered rules for one EtcdBackup. The first with an opinion wins.

A backup is taken by one Job, which is made once: it has a name that follows from the UID, and the status
names it. What its pod reported decides; what Kubernetes reports of the Job decides only without a report.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.etcd_backup.decide.result import (
    STORES,
    VERIFIES,
    Failure,
    StoredManifest,
    TrialReport,
    Work,
    failure,
)
from etcd_operator.controllers.etcd_backup.decide.state import (
    BACKING_UP,
    COMPLETED,
    FAILED,
    BackupJobState,
    BackupPodState,
    BackupState,
)
from etcd_operator.controllers.shared.decide.job_end import START_PATIENCE, JobEnd
from etcd_operator.formats import bytes_text, counted

SOURCE_PATIENCE = 60.0
"""Seconds for which the cluster may be missing, or not have served yet: it may be created with its backup."""

STOP_PATIENCE = 600.0
"""Seconds within which a pod that is being deleted has to end: on a lost node it never does."""

NOT_STARTED = "NotStarted"
NOT_STOPPED = "NotStopped"
STORED = "Stored"

RECHECK = 10.0
"""Seconds; the events of what a backup waits for come first."""


SOURCE_RECHECK = 2.0
"""Seconds; no event of a cluster queues its backups."""


class Act(Enum):
    """What is done for a backup, after its status was written."""

    NOTHING = "nothing"
    CREATE_JOB = "create its Job"
    STOP_JOB = "delete its Job"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPlan:
    """What the status reports, what to do, and when to observe again at the latest (seconds).

    reason, message: of the condition. manifest: of a backup that is stored. requeue_after: None for an event.
    While a backup is verified (`verification`), reason and message are those of the condition Verified;
    verdict: its result, None until then. trial: of a test restore that succeeded; took: seconds.
    """

    phase: str
    reason: str
    message: str
    act: Act = Act.NOTHING
    manifest: StoredManifest | None = None
    verdict: bool | None = None
    trial: TrialReport | None = None
    took: float = 0.0
    requeue_after: float | None = None


BackupRule = Callable[[BackupState], BackupPlan | None]


def accept(state: BackupState) -> BackupPlan | None:
    """Write that it has begun before anything is made."""
    if state.phase == BACKING_UP:
        return None
    return refuse(state) or _in_progress("Accepted", f"the backup will be stored at {state.url}")


def conclude(state: BackupState) -> BackupPlan | None:
    """The pod that has ended decides: it reported what it stored, or why it failed."""
    if state.job is None:
        return None
    stored = next((pod for pod in state.job.pods if pod.has_succeeded), None)
    if stored is not None:
        return _completed(state.url, stored)
    if any(not pod.has_ended for pod in state.job.pods):
        return None
    ended = next(iter(state.job.pods), None)
    return _failed(failure_of(ended, state.job)) if ended is not None else None


def conclude_without_pod(state: BackupState) -> BackupPlan | None:
    """The pod was deleted, and its report with it."""
    job = state.job
    if job is None or job.end is JobEnd.RUNS:
        return None
    if job.end is JobEnd.SUCCEEDED:
        return BackupPlan(
            phase=COMPLETED,
            reason=STORED,
            message=f"stored {state.url}; its revision and size are not known, because the pod was deleted: "
            "see `etcd-operator list`",
        )
    why = f" ({job.message})" if job.message else ""
    message = f"the pod was deleted before it reported what it did{why}: {_work(state).instead}"
    return _failed(Failure(reason="PodDeleted", message=message))


def stop(state: BackupState) -> BackupPlan | None:
    """A pod that does not start is not waited for for ever; it must not start later, either."""
    job = state.job
    if job is None or job.is_terminating or job.age < START_PATIENCE or _has_started(job):
        return None
    minutes = round(START_PATIENCE / 60)
    message = f"the pod did not start within {minutes} minutes: {_waits_for(job)}"
    return BackupPlan(
        phase=BACKING_UP, reason=NOT_STARTED, message=message, act=Act.STOP_JOB, requeue_after=RECHECK
    )


def give_up(state: BackupState) -> BackupPlan | None:
    """What never ends must not keep a schedule from its next backup."""
    job = state.job
    if job is None or job.stopping < STOP_PATIENCE:
        return None
    reason, message = state.stopped
    minutes = round(STOP_PATIENCE / 60)
    waited = f"the pod has not ended within {minutes} minutes after it was deleted: check its node"
    return _failed(
        Failure(reason=reason or NOT_STOPPED, message=message or f"{waited}{_work(state).if_not_stopped}")
    )


def await_job(state: BackupState) -> BackupPlan | None:
    """Report what the Job does."""
    job = state.job
    if job is None:
        return None
    if job.is_terminating:
        reason, message = state.stopped if state.stopped[0] else ("JobDeleted", "the Job is being deleted")
        return _in_progress(reason, message, requeue_after=RECHECK)
    running = next((pod for pod in job.pods if pod.has_started), None)
    if running is None:
        left = max(START_PATIENCE - job.age, 1.0)
        return _in_progress(
            "PodPending", f"waiting for the pod to start: {_waits_for(job)}", requeue_after=left
        )
    if running.is_terminating:
        return _in_progress("PodTerminating", f"pod {running.name} is being deleted", requeue_after=RECHECK)
    return _in_progress("Running", f"pod {running.name} {_work(state).does} {state.url}")


def job_lost(state: BackupState) -> BackupPlan | None:
    """The Job was made, and is gone: it is not made again."""
    if not state.is_job_recorded:
        return None
    reason, message = state.stopped
    if not reason:
        reason, message = "JobDeleted", f"the Job was deleted before it ended: {_work(state).instead}"
    return _failed(Failure(reason=reason, message=message))


def refuse(state: BackupState) -> BackupPlan | None:
    """Report an invalid spec; also one that an operator of another version accepted, if no Job was made."""
    return _failed(Failure(reason="InvalidSpec", message=state.problem)) if state.problem else None


def await_source(state: BackupState) -> BackupPlan | None:
    """Wait for the cluster: it may be created together with its backup."""
    source = state.source
    if source.endpoints:
        return None
    left = SOURCE_PATIENCE - state.waited
    if left <= 0:
        return _failed(Failure(reason=source.reason, message=source.message))
    return _in_progress(source.reason, source.message, requeue_after=min(left, SOURCE_RECHECK))


def start(state: BackupState) -> BackupPlan | None:
    """Create the Job."""
    return _in_progress(
        "Starting",
        f"creating the Job that stores the backup at {state.url}",
        act=Act.CREATE_JOB,
        requeue_after=RECHECK,
    )


RULES: tuple[BackupRule, ...] = (
    accept,
    conclude,
    conclude_without_pod,
    stop,
    give_up,
    await_job,
    job_lost,
    refuse,
    await_source,
    start,
)


def rests_on_absence(job: BackupJobState) -> bool:
    """Whether a decision rests on pods that were not seen: a cache that is behind must not make it."""
    if job.end is not JobEnd.RUNS:
        return not any(pod.has_ended for pod in job.pods)
    if job.is_stopping:
        return job.stopping >= STOP_PATIENCE
    return job.age >= START_PATIENCE and not _has_started(job)


def gives_up_source(state: BackupState) -> bool:
    """Whether the backup is about to fail because of its source: a cache that is behind must not make it."""
    is_begun = state.job is not None or state.is_job_recorded
    return not (is_begun or state.problem or state.source.endpoints) and state.waited >= SOURCE_PATIENCE


def plan(state: BackupState) -> BackupPlan | None:
    """What to do until a backup is stored; None then: total, deterministic, without side effects."""
    if state.is_final:
        return None
    return next(opinion for rule in RULES if (opinion := rule(state)))


def _work(state: BackupState) -> Work:
    return VERIFIES if state.phase == COMPLETED else STORES


def _in_progress(
    reason: str, message: str, *, act: Act = Act.NOTHING, requeue_after: float | None = None
) -> BackupPlan:
    return BackupPlan(phase=BACKING_UP, reason=reason, message=message, act=act, requeue_after=requeue_after)


def _failed(why: Failure) -> BackupPlan:
    return BackupPlan(phase=FAILED, reason=why.reason, message=why.message)


def _completed(url: str, pod: BackupPodState) -> BackupPlan:
    report = pod.report
    if report is None or report.manifest is None:
        message = f"stored {url}; the pod did not report its revision and size: see `etcd-operator list`"
        return BackupPlan(phase=COMPLETED, reason=STORED, message=message)
    manifest = report.manifest
    message = (
        f"stored {url}: revision {manifest.revision}, {counted(manifest.keys, 'key')}, "
        f"{bytes_text(manifest.size)}, from {report.source} in {report.seconds:.1f} s"
    )
    return BackupPlan(phase=COMPLETED, reason=STORED, message=message, manifest=manifest)


def failure_of(pod: BackupPodState, job: BackupJobState, work: Work = STORES) -> Failure:
    """Why a pod that has ended failed."""
    if pod.exit_code is None:
        why = pod.message or pod.reason or "no reason is given"
        return Failure(reason=pod.reason or "PodFailed", message=f"the pod failed before it reported: {why}")
    return failure(pod.report, reason=pod.reason, exit_code=pod.exit_code, job=job.name, work=work)


def _has_started(job: BackupJobState) -> bool:
    return any(pod.has_started for pod in job.pods)


def _waits_for(job: BackupJobState) -> str:
    pod = next(iter(job.pods), None)
    if pod is None:
        return f"there is none yet, see `kubectl describe job {job.name}`"
    return pod.waits_for or f"see `kubectl describe pod {pod.name}`"
