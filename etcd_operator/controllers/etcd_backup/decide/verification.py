"""The ordered rules for one EtcdBackup that is stored and is to be verified. The first with an opinion wins.

Like the backup, its verification is one Job that runs once: what is known of such a Job is decided by the
same rules. Whatever comes of it, the backup remains Completed; the condition Verified has the verdict, and it
is true only if the pod reported that it has read the very backup that this EtcdBackup has stored.
"""

from etcd_operator.api.backups import COMPLETED
from etcd_operator.controllers.etcd_backup.decide import plan as storing
from etcd_operator.controllers.etcd_backup.decide.plan import (
    NOT_STARTED,
    RECHECK,
    Act,
    BackupPlan,
    BackupRule,
    failed,
    in_progress,
)
from etcd_operator.controllers.etcd_backup.decide.result import VERIFIES
from etcd_operator.controllers.etcd_backup.decide.state import RESTORE, BackupState
from etcd_operator.controllers.shared.decide.job_report import JobReport
from etcd_operator.controllers.shared.decide.job_state import START_PATIENCE, JobPod
from etcd_operator.formats import CORRUPT_ALARM
from etcd_operator.versions import restoring

PENDING = "Pending"


def conclude(state: BackupState) -> BackupPlan | None:
    """The pod that has ended decides."""
    return storing.concluded(state, _of_report)


def refuse(state: BackupState) -> BackupPlan | None:
    """Report what cannot be verified, if no Job was made."""
    if state.problem:
        return failed(state, "InvalidSpec", state.problem)
    if state.verify == RESTORE and restoring(state.etcd_version) is None:
        known = f"is {state.etcd_version!r}" if state.etcd_version else "is not known"
        message = f"the version of etcd that sent the snapshot {known}, so no image of etcd can be chosen"
        return failed(state, "VersionUnknown", f"{message}: {VERIFIES.instead}")
    return None


def give_up_start(state: BackupState) -> BackupPlan | None:
    """A Job that a quota or a policy forbids must not keep a schedule from its next backup."""
    if state.waited < START_PATIENCE:
        return None
    minutes = round(START_PATIENCE / 60)
    return failed(
        state, NOT_STARTED, f"the Job could not be created within {minutes} minutes: {state.message}"
    )


def start(state: BackupState) -> BackupPlan | None:
    """Create the Job."""
    message = f"creating the Job that verifies the backup at {state.url}"
    return in_progress(state, "Starting", message, act=Act.CREATE_JOB, requeue_after=RECHECK)


RULES: tuple[BackupRule, ...] = (
    conclude,
    storing.conclude_without_report,
    storing.stop,
    storing.give_up,
    storing.await_job,
    storing.job_lost,
    refuse,
    give_up_start,
    start,
)


def plan(state: BackupState) -> BackupPlan | None:
    """What to do until a stored backup is verified; None if it is, or need not be. Without side effects."""
    if not state.is_to_be_verified:
        return None
    return next(opinion for rule in RULES if (opinion := rule(state)))


def _of_report(state: BackupState, pod: JobPod) -> BackupPlan:
    report = pod.report
    if report is None or report.manifest is None:
        return failed(state, "VerificationFailed", f"the pod did not report what it read: {VERIFIES.instead}")
    if state.sha256 and report.manifest.sha256 != state.sha256:
        message = (
            f"what is stored at {state.url} is a different backup: its SHA-256 is {report.manifest.sha256}"
        )
        return failed(state, "Replaced", message)
    if state.verify == RESTORE and report.restore is None:
        message = f"the pod did not report a test restore: {VERIFIES.instead}"
        return failed(state, "VerificationFailed", message)
    return BackupPlan(
        phase=COMPLETED,
        reason="HashesMatch" if report.restore is None else "Restored",
        message=_proof(report),
        verdict=True,
        trial=report.restore,
        took=report.seconds,
    )


def _proof(report: JobReport) -> str:
    text = "read back, and all hashes match"
    if report.restore is not None:
        text += (
            f"; restored, and served by etcd {report.restore.etcd_version} at revision "
            f"{report.restore.revision}"
        )
        if not report.restore.has_compared_hash:
            text += " (HashKV not compared: that requires etcdutl 3.6 or newer)"
    text += f", in {report.seconds:.1f} s"
    is_doubtful = report.manifest is not None and report.manifest.corrupt_alarm
    return f"{text}; but {CORRUPT_ALARM}" if is_doubtful else text
