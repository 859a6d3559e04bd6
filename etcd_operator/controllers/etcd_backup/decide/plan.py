"""The ordered rules for one EtcdBackup. The first with an opinion wins.

A backup is taken by one Job, which is made once: it has a name that follows from the UID, and the status
names it. What its pod reported decides; what Kubernetes reports of the Job decides only without a report.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from etcd_operator.api.backups import BACKING_UP, COMPLETED, FAILED
from etcd_operator.controllers.etcd_backup.decide.result import STORES, VERIFIES, Work, failure
from etcd_operator.controllers.etcd_backup.decide.state import BackupState
from etcd_operator.controllers.shared.decide.job_report import StoredManifest, TrialReport
from etcd_operator.controllers.shared.decide.job_state import START_PATIENCE, JobEnd, JobPod, JobState
from etcd_operator.formats import CORRUPT_ALARM, bytes_text, counted

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
    SUPPLY_JOB = "create the Secret that its Job waits for"
    STOP_JOB = "delete its Job"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPlan:
    """What the status reports, and what to do.

    While a backup is verified, reason and message are those of the condition Verified.
    """

    phase: str
    reason: str
    message: str
    act: Act = Act.NOTHING
    manifest: StoredManifest | None = None  # of a backup that is stored
    verdict: bool | None = None  # the result of the verification; None until then
    trial: TrialReport | None = None  # a test restore that succeeded
    took: float = 0.0  # seconds
    requeue_after: float | None = None  # seconds until the next pass at the latest; None for an event


BackupRule = Callable[[BackupState], BackupPlan | None]


def accept(state: BackupState) -> BackupPlan | None:
    """Write that it has begun before anything is made."""
    if state.phase == BACKING_UP:
        return None
    return refuse(state) or in_progress(state, "Accepted", f"the backup will be stored at {state.url}")


def conclude(state: BackupState) -> BackupPlan | None:
    """The pod that has ended decides: it reported what it stored, or why it failed."""
    return concluded(state, _completed)


def concluded(
    state: BackupState, of_success: Callable[[BackupState, JobPod], BackupPlan]
) -> BackupPlan | None:
    """What a pod that has succeeded means; the failure if all pods have ended without success."""
    job = state.job
    if job is None:
        return None
    succeeded = next((pod for pod in job.pods if _has_succeeded(pod)), None)
    if succeeded is not None:
        return of_success(state, succeeded)
    if not job.pods or any(not pod.has_ended for pod in job.pods):
        return None
    return failed(state, *failure(job.pods[0], job.name, _work(state)))


def conclude_without_report(state: BackupState) -> BackupPlan | None:
    """The pod was deleted, and its report with it."""
    job, instead = state.job, _work(state).instead
    if job is None or job.end is JobEnd.RUNS:
        return None
    if job.end is JobEnd.FAILED:
        why = f" ({job.message})" if job.message else ""
        return failed(
            state, "PodDeleted", f"the pod was deleted before it reported what it did{why}: {instead}"
        )
    if state.phase == COMPLETED:  # without the report, nothing is proven
        return failed(state, "PodDeleted", f"the pod was deleted before its report was read: {instead}")
    message = f"stored {state.url}; its revision and size are not known, because the pod was deleted"
    return BackupPlan(phase=COMPLETED, reason=STORED, message=f"{message}: see `etcd-operator list`")


def stop(state: BackupState) -> BackupPlan | None:
    """A pod that does not start is not waited for for ever; it must not start later, either."""
    job = state.job
    if job is None or job.is_terminating or job.age < START_PATIENCE or job.has_started:
        return None
    minutes = round(START_PATIENCE / 60)
    message = f"the pod did not start within {minutes} minutes: {_waits_for(job)}"
    return in_progress(state, NOT_STARTED, message, act=Act.STOP_JOB, requeue_after=RECHECK)


def give_up(state: BackupState) -> BackupPlan | None:
    """What never ends must not keep a schedule from its next backup."""
    job = state.job
    if job is None or job.stopping < STOP_PATIENCE:
        return None
    reason, message = state.stopped
    minutes = round(STOP_PATIENCE / 60)
    waited = f"the pod has not ended within {minutes} minutes after it was deleted: check its node"
    return failed(state, reason or NOT_STOPPED, message or f"{waited}{_work(state).if_not_stopped}")


def await_job(state: BackupState) -> BackupPlan | None:
    """Report what the Job does."""
    job = state.job
    if job is None:
        return None
    if job.is_terminating:
        reason, message = state.stopped if state.stopped[0] else ("JobDeleted", "the Job is being deleted")
        return in_progress(state, reason, message, requeue_after=RECHECK)
    running = next((pod for pod in job.pods if pod.has_started), None)
    if running is None:
        left = max(START_PATIENCE - job.age, 1.0)
        if not job.pods:
            left = min(left, RECHECK)  # no event of the Job says why
        return in_progress(
            state,
            "PodPending",
            f"waiting for the pod to start: {_waits_for(job)}",
            act=Act.SUPPLY_JOB if job.secret else Act.NOTHING,
            requeue_after=left,
        )
    if running.is_terminating:
        return in_progress(
            state, "PodTerminating", f"pod {running.name} is being deleted", requeue_after=RECHECK
        )
    return in_progress(state, "Running", f"pod {running.name} {_work(state).does} {state.url}")


def job_lost(state: BackupState) -> BackupPlan | None:
    """The Job was made, and is gone: it is not made again."""
    if not state.is_job_recorded:
        return None
    reason, message = state.stopped
    if not reason:
        reason, message = "JobDeleted", f"the Job was deleted before it ended: {_work(state).instead}"
    return failed(state, reason, message)


def refuse(state: BackupState) -> BackupPlan | None:
    """Report an invalid spec; also one that an operator of another version accepted, if no Job was made."""
    return failed(state, "InvalidSpec", state.problem) if state.problem else None


def await_source(state: BackupState) -> BackupPlan | None:
    """Wait for the cluster: it may be created together with its backup."""
    source = state.source
    if source.endpoints:
        return None
    left = SOURCE_PATIENCE - state.waited
    if left <= 0:
        return failed(state, source.reason, source.message)
    return in_progress(state, source.reason, source.message, requeue_after=min(left, SOURCE_RECHECK))


def start(state: BackupState) -> BackupPlan | None:
    """Create the Job."""
    return in_progress(
        state,
        "Starting",
        f"creating the Job that stores the backup at {state.url}",
        act=Act.CREATE_JOB,
        requeue_after=RECHECK,
    )


RULES: tuple[BackupRule, ...] = (
    accept,
    conclude,
    conclude_without_report,
    stop,
    give_up,
    await_job,
    job_lost,
    refuse,
    await_source,
    start,
)


def rests_on_absence(job: JobState) -> bool:
    """Whether a decision rests on pods that were not seen: a cache that is behind must not make it."""
    if job.end is not JobEnd.RUNS:
        return not any(pod.has_ended for pod in job.pods)
    if job.is_stopping:
        return job.stopping >= STOP_PATIENCE
    return job.age >= START_PATIENCE and not job.has_started


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


def in_progress(
    state: BackupState,
    reason: str,
    message: str,
    *,
    act: Act = Act.NOTHING,
    requeue_after: float | None = None,
) -> BackupPlan:
    """It goes on; a backup that is verified remains Completed."""
    phase = COMPLETED if state.phase == COMPLETED else BACKING_UP
    return BackupPlan(phase=phase, reason=reason, message=message, act=act, requeue_after=requeue_after)


def failed(state: BackupState, reason: str, message: str) -> BackupPlan:
    """It has failed; a backup that is verified remains Completed."""
    if state.phase == COMPLETED:
        return BackupPlan(phase=COMPLETED, reason=reason, message=message, verdict=False)
    return BackupPlan(phase=FAILED, reason=reason, message=message)


def _has_succeeded(pod: JobPod) -> bool:
    """Whether the command has done its work, also if it failed after its report."""
    return pod.exit_code == 0 or (pod.report is not None and pod.report.manifest is not None)


def _completed(state: BackupState, pod: JobPod) -> BackupPlan:
    report, url = pod.report, state.url
    if report is None or report.manifest is None:
        message = f"stored {url}; the pod did not report its revision and size: see `etcd-operator list`"
        return BackupPlan(phase=COMPLETED, reason=STORED, message=message)
    manifest = report.manifest
    message = (
        f"stored {url}: revision {manifest.revision}, {counted(manifest.keys, 'key')}, "
        f"{bytes_text(manifest.size)}, from {report.source} in {report.seconds:.1f} s"
    )
    if manifest.corrupt_alarm:
        message += f"; {CORRUPT_ALARM}"
    return BackupPlan(phase=COMPLETED, reason=STORED, message=message, manifest=manifest)


def _waits_for(job: JobState) -> str:
    pod = next(iter(job.pods), None)
    if pod is None and job.refusal:
        return job.refusal
    if pod is None:
        return f"there is none yet, see `kubectl describe job {job.name}`"
    return pod.waits_for or f"see `kubectl describe pod {pod.name}`"
