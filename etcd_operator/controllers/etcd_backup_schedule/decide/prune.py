"""When old stored backups of a schedule are removed, and what came of it; which ones: `archive.retention`.

One Job after each backup that was completed, and after each edit of the retention. Its name follows from the
schedule, so there are never two at once. It can be stopped anywhere and repeated: the next one goes on. One
that fails is repeated after the next backup; no backup waits for it.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from etcd_operator.controllers.shared.decide.job_report import LONGEST_MESSAGE, STORE_REASONS, without_flags
from etcd_operator.controllers.shared.decide.job_state import LINGER, JobEnd, JobState
from etcd_operator.formats import CORRUPT_ALARM, counted

PRUNED_REASON, FAILED_REASON = "BackupsPruned", "PruneFailed"
NO_BACKUP, PRUNING, PENDING, STOPPING = "NoBackup", "Pruning", "PodPending", "Stopping"
NOT_STARTED, DATA_CORRUPT = "NotStarted", "DataCorrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneState:
    """What was observed. All texts may be empty."""

    retention: str = ""  # of the spec, in one text
    recorded: tuple[str, ...] = ()  # URLs of the newest backups that the status of an EtcdBackup has
    newest: str = ""  # the URL of the newest backup that is completed
    done: str = ""  # the request that was carried out last, as in the status
    pending: str = ""  # what the pod of the Job waits for, as in the status
    is_backing_up: bool = False  # a backup runs, or begins
    doubtful: str = ""  # the newest EtcdBackup, if it was taken under an alarm CORRUPT
    job: JobState | None = None

    @property
    def request(self) -> str:
        """What has to be carried out; empty for nothing."""
        return f"{self._by_retention}{self.newest}" if self.retention and self.newest else ""

    @property
    def is_outdated(self) -> bool:
        """Whether the Job was made for another retention."""
        job = self.job
        return job is not None and not (self.retention and job.request.startswith(self._by_retention))

    @property
    def _by_retention(self) -> str:
        return f"{self.retention} after "


NO_RETENTION = PruneState()


class PruneAct(Enum):
    """What is done."""

    NOTHING = "nothing"
    CREATE = "create the Job"
    REMOVE = "delete the Job"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunePlan:
    """What to do, and the condition Pruned."""

    act: PruneAct = PruneAct.NOTHING
    verdict: Literal["True", "False", "Unknown", ""] | None = ""  # "" leaves it as it is, None removes it
    reason: str = ""
    message: str = ""
    ended: str = ""  # the request of a Job that has ended
    removed: int | None = None  # how many backups; None if that is not known
    stored: int | None = None  # how many are left; None if that is not known


UNCHANGED = PrunePlan()


def plan_prune(state: PruneState) -> PrunePlan:
    """What to do about old backups of a schedule with a valid spec. Deterministic, without side effects."""
    job = state.job
    if job is not None and job.is_terminating and job.request == state.done:
        return UNCHANGED  # its result stays
    if job is not None and job.is_terminating:
        return PrunePlan(verdict="Unknown", reason=STOPPING, message=f"Job {job.name} is being deleted")
    if job is not None and job.end is JobEnd.RUNS:
        # One that is still suspended was made by an operator that ended, or could not go on: see `pruner`.
        return PrunePlan(act=PruneAct.REMOVE) if state.is_outdated or job.is_suspended else _in_progress(job)
    if job is not None and state.retention and job.request != state.done:
        return _ended(job, state.pending)
    return _at_rest(state)


def _at_rest(state: PruneState) -> PrunePlan:
    """No Job runs."""
    if not state.retention:
        act = PruneAct.REMOVE if state.job is not None else PruneAct.NOTHING
        return PrunePlan(act=act, verdict=None)
    if not state.request:
        return PrunePlan(verdict="Unknown", reason=NO_BACKUP, message="no backup has been completed yet")
    if state.job is not None and state.job.lingering >= LINGER:
        return PrunePlan(act=PruneAct.REMOVE)
    if state.doubtful:
        message = f"no old backup is removed: EtcdBackup {state.doubtful} was {CORRUPT_ALARM}"
        return PrunePlan(verdict="False", reason=DATA_CORRUPT, message=message)
    if state.request == state.done or state.is_backing_up:
        return UNCHANGED
    return PrunePlan(act=PruneAct.CREATE if state.job is None else PruneAct.REMOVE)


def _in_progress(job: JobState) -> PrunePlan:
    waits = (pod.waits_for for pod in job.pods if not pod.has_started and pod.waits_for)
    waits_for = job.refusal or next(waits, "")
    if waits_for:
        message = f"waiting for the pod of Job {job.name} to start: {waits_for}"
        return PrunePlan(verdict="Unknown", reason=PENDING, message=message)
    return PrunePlan(verdict="Unknown", reason=PRUNING, message=f"Job {job.name} removes old backups")


def _ended(job: JobState, pending: str) -> PrunePlan:
    if job.end is JobEnd.FAILED:
        reason, message = _failure(job, pending)
        return PrunePlan(verdict="False", reason=reason, message=message, ended=job.request)
    report = job.report
    if report is None or report.removed is None:
        message = "old backups were removed; how many is not known, because the pod was deleted"
        return PrunePlan(verdict="True", reason=PRUNED_REASON, message=message, ended=job.request)
    return PrunePlan(
        verdict="True",
        reason=PRUNED_REASON,
        message=f"removed {counted(report.removed, 'backup')}, {report.kept} left",
        ended=job.request,
        removed=report.removed,
        stored=report.kept,
    )


def _failure(job: JobState, pending: str) -> tuple[str, str]:
    later = "; old backups remain until their removal is tried again, after the next backup"
    report = job.report
    if report is not None and report.error:
        message = without_flags(report.error)[:LONGEST_MESSAGE]
        return STORE_REASONS.get(report.reason, FAILED_REASON), f"{message}{later}"
    if pending:
        return NOT_STARTED, f"the Job has ended while {pending}{later}"
    why = job.message or "no reason is given"
    return FAILED_REASON, f"the Job failed: {why}{later}"
