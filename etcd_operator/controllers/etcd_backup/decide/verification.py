"""The ordered rules for one EtcdBackup that is stored and is to be verified. The first with an opinion wins.

Like the backup, its verification is one Job that runs once: what is known of such a Job is decided by the
same rules. Whatever comes of it, the backup remains Completed; the condition Verified has the verdict, and it
is true only if the pod reported that it has read the very backup that this EtcdBackup has stored.
"""

from dataclasses import replace

from etcd_operator.controllers.etcd_backup.decide import plan as storing
from etcd_operator.controllers.etcd_backup.decide.plan import (
    NOT_STARTED,
    RECHECK,
    Act,
    BackupPlan,
    BackupRule,
)
from etcd_operator.controllers.etcd_backup.decide.result import VERIFIES, BackupReport
from etcd_operator.controllers.etcd_backup.decide.state import (
    COMPLETED,
    FAILED,
    RESTORE,
    BackupPodState,
    BackupState,
)
from etcd_operator.controllers.shared.decide.job_end import START_PATIENCE
from etcd_operator.versions import restoring

PENDING = "Pending"


def conclude(state: BackupState) -> BackupPlan | None:
    """The pod that has ended decides."""
    job = state.job
    if job is None:
        return None
    verified = next((pod for pod in job.pods if pod.has_succeeded), None)
    if verified is not None:
        return _of_report(state, verified)
    if not job.pods or any(not pod.has_ended for pod in job.pods):
        return None
    why = storing.failure_of(job.pods[0], job, VERIFIES)
    return _failed(why.reason, why.message)


def conclude_without_pod(state: BackupState) -> BackupPlan | None:
    """The pod was deleted, and its report with it: without that, nothing is proven."""
    made = _of_job(storing.conclude_without_pod)(state)
    if made is None or made.verdict is False:
        return made
    return _failed("PodDeleted", f"the pod was deleted before its report was read: {VERIFIES.instead}")


def refuse(state: BackupState) -> BackupPlan | None:
    """Report what cannot be verified, if no Job was made."""
    if state.problem:
        return _failed("InvalidSpec", state.problem)
    if state.verify == RESTORE and restoring(state.etcd_version) is None:
        known = f"is {state.etcd_version!r}" if state.etcd_version else "is not known"
        message = f"the version of etcd that sent the snapshot {known}, so no image of etcd can be chosen"
        return _failed("VersionUnknown", f"{message}: {VERIFIES.instead}")
    return None


def give_up_start(state: BackupState) -> BackupPlan | None:
    """A Job that a quota or a policy forbids must not keep a schedule from its next backup."""
    if state.waited < START_PATIENCE:
        return None
    minutes = round(START_PATIENCE / 60)
    return _failed(NOT_STARTED, f"the Job could not be created within {minutes} minutes: {state.message}")


def start(state: BackupState) -> BackupPlan | None:
    """Create the Job."""
    message = f"creating the Job that verifies the backup at {state.url}"
    return BackupPlan(
        phase=COMPLETED, reason="Starting", message=message, act=Act.CREATE_JOB, requeue_after=RECHECK
    )


def _of_job(rule: BackupRule) -> BackupRule:
    """A rule about a Job that runs once, for that of a verification."""

    def applied(state: BackupState) -> BackupPlan | None:
        made = rule(state)
        if made is None:
            return None
        return replace(made, phase=COMPLETED, verdict=False if made.phase == FAILED else None)

    return applied


RULES: tuple[BackupRule, ...] = (
    conclude,
    conclude_without_pod,
    _of_job(storing.stop),
    _of_job(storing.give_up),
    _of_job(storing.await_job),
    _of_job(storing.job_lost),
    refuse,
    give_up_start,
    start,
)


def plan(state: BackupState) -> BackupPlan | None:
    """What to do until a stored backup is verified; None if it is, or need not be. Without side effects."""
    if not state.is_to_be_verified:
        return None
    return next(opinion for rule in RULES if (opinion := rule(state)))


def _failed(reason: str, message: str) -> BackupPlan:
    return BackupPlan(phase=COMPLETED, reason=reason, message=message, verdict=False)


def _of_report(state: BackupState, pod: BackupPodState) -> BackupPlan:
    report = pod.report
    if report is None or report.manifest is None:
        return _failed("VerificationFailed", f"the pod did not report what it read: {VERIFIES.instead}")
    if state.sha256 and report.manifest.sha256 != state.sha256:
        message = (
            f"what is stored at {state.url} is a different backup: its SHA-256 is {report.manifest.sha256}"
        )
        return _failed("Replaced", message)
    if state.verify == RESTORE and report.restore is None:
        message = f"the pod did not report a test restore: {VERIFIES.instead}"
        return _failed("VerificationFailed", message)
    return BackupPlan(
        phase=COMPLETED,
        reason="HashesMatch" if report.restore is None else "Restored",
        message=_proof(report),
        verdict=True,
        trial=report.restore,
        took=report.seconds,
    )


def _proof(report: BackupReport) -> str:
    text = "read back, and all hashes match"
    if report.restore is not None:
        text += (
            f"; restored, and served by etcd {report.restore.etcd_version} at revision "
            f"{report.restore.revision}"
        )
        if not report.restore.has_compared_hash:
            text += " (HashKV not compared: that requires etcdutl 3.6 or newer)"
    return f"{text}, in {report.seconds:.1f} s"
