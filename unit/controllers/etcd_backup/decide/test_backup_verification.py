"""What is done to verify one EtcdBackup that is stored: every decision as a table, and what is reported."""

from typing import Any

import msgspec
import pytest

from etcd_operator.api.backups import BackupStatus, Verification
from etcd_operator.api.meta import Condition
from etcd_operator.archive.errors import BackupError
from etcd_operator.controllers.etcd_backup.decide.plan import (
    NOT_STARTED,
    NOT_STOPPED,
    STOP_PATIENCE,
    Act,
    BackupPlan,
)
from etcd_operator.controllers.etcd_backup.decide.plan import plan as plan_to_store
from etcd_operator.controllers.etcd_backup.decide.result import VERIFIES, VERIFY_REASONS, failure
from etcd_operator.controllers.etcd_backup.decide.state import BackupState
from etcd_operator.controllers.etcd_backup.decide.status import status
from etcd_operator.controllers.etcd_backup.decide.verification import plan
from etcd_operator.controllers.shared.decide.job_report import JobReport, TrialReport
from etcd_operator.controllers.shared.decide.job_state import START_PATIENCE, JobEnd, JobPod, JobState
from etcd_operator.formats import CORRUPT_ALARM
from etcd_operator.versions import restoring
from unit.controllers.etcd_backup.decide.test_backups import MANIFEST, URL, job, pod
from unit.controllers.etcd_backup.decide.test_backups import state as any_state

NOW = "2026-11-22T15:00:09Z"
TRIAL = TrialReport(etcd_version="3.6.16", revision=7, has_compared_hash=True)
READ = JobReport(manifest=MANIFEST, seconds=0.25)
RESTORED = JobReport(manifest=MANIFEST, restore=TRIAL, seconds=1.5)
FOREIGN = JobReport(manifest=msgspec.structs.replace(MANIFEST, sha256="cd" * 32), seconds=0.25)
BROKEN = JobReport(error="the object one.db has 7 bytes, not 20512", reason="Damaged")


def state(made: JobState | None = None, **facts: Any) -> BackupState:
    defaults = {
        "phase": "Completed",
        "verify": "Restore",
        "sha256": MANIFEST.sha256,
        "etcd_version": "3.6.16",
    }
    return any_state(made, **{**defaults, **facts})


def planned(given: BackupState) -> BackupPlan:
    made = plan(given)
    assert made is not None
    return made


def ended(report: JobReport | None, exit_code: int = 0, **facts: Any) -> JobState:
    return job(pod(exit_code=exit_code, report=report, **facts))


DECISIONS: dict[str, tuple[BackupState, bool | None, str]] = {
    "its Job is made": (state(), None, "Starting"),
    "its Job cannot be made": (state(waited=START_PATIENCE, message="exceeded quota"), False, NOT_STARTED),
    "what runs is not given up": (state(job(pod(has_started=True)), waited=START_PATIENCE), None, "Running"),
    "of any version": (state(verify="Hash", etcd_version=""), None, "Starting"),
    "restored by which etcd": (state(etcd_version=""), False, "VersionUnknown"),
    "of which there is no image": (state(etcd_version="3.6.1+vendor"), False, "VersionUnknown"),
    "invalid meanwhile": (state(problem="spec.source: no"), False, "InvalidSpec"),
    "no pod yet": (state(job()), None, "PodPending"),
    "running": (state(job(pod(has_started=True))), None, "Running"),
    "goes on": (state(job(pod(has_started=True)), problem="spec.source: no"), None, "Running"),
    "restored": (state(ended(RESTORED)), True, "Restored"),
    "read back": (state(ended(READ), verify="Hash"), True, "HashesMatch"),
    "of an unknown hash": (state(ended(READ), verify="Hash", sha256=""), True, "HashesMatch"),
    "read back only": (state(ended(READ)), False, "VerificationFailed"),
    "another backup": (state(ended(FOREIGN), verify="Hash"), False, "Replaced"),
    "ended without a report": (state(ended(None)), False, "VerificationFailed"),
    "damaged": (state(ended(BROKEN, 3)), False, "Damaged"),
    "stopped": (state(ended(JobReport(error="x", reason="Interrupted"), 143)), False, "Interrupted"),
    "memory": (state(ended(None, 137, reason="OOMKilled", message="its limit")), False, "OutOfMemory"),
    "crashed": (state(ended(None, 1)), False, "VerificationFailed"),
    "evicted": (state(job(pod(has_failed=True, reason="Evicted"))), False, "Evicted"),
    "its pod is gone with the report": (state(job(end=JobEnd.SUCCEEDED)), False, "PodDeleted"),
    "its pod is gone": (state(job(end=JobEnd.FAILED)), False, "PodDeleted"),
    "never started": (state(job(pod(), age=START_PATIENCE)), None, NOT_STARTED),
    "deleted for that": (state(None, is_job_recorded=True, stopped=(NOT_STARTED, "why")), False, NOT_STARTED),
    "somebody deleted its Job": (state(None, is_job_recorded=True), False, "JobDeleted"),
    "on a lost node": (
        state(job(pod(has_started=True, is_terminating=True), stopping=STOP_PATIENCE)),
        False,
        NOT_STOPPED,
    ),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision(name: str) -> None:
    given, *wanted = DECISIONS[name]
    made = planned(given)
    assert (made.phase, [made.verdict, made.reason]) == ("Completed", wanted)
    act = Act.STOP_JOB if name == "never started" else Act.NOTHING
    assert made.act is (Act.CREATE_JOB if made.reason == "Starting" else act)
    assert made.message
    assert "another EtcdBackup" not in made.message, "the backup exists"
    assert plan_to_store(given) is None


def test_a_test_restore_does_not_show_that_the_data_of_a_marked_backup_is_right() -> None:
    marked = msgspec.structs.replace(MANIFEST, corrupt_alarm=True)
    message = planned(state(ended(msgspec.structs.replace(RESTORED, manifest=marked)))).message
    assert message.endswith(f"in 1.5 s; but {CORRUPT_ALARM}")


@pytest.mark.parametrize(
    "facts",
    [
        {"verify": ""},
        {"has_verdict": True},
        {"phase": "Failed"},
        {"phase": "BackingUp"},
        {"is_deleting": True},
    ],
)
def test_what_is_not_verified(facts: dict[str, Any]) -> None:
    assert plan(state(ended(RESTORED), **facts)) is None


def test_what_is_to_be_verified_is_reported_as_such_as_soon_as_it_is_stored() -> None:
    given = state(ended(READ), phase="BackingUp")
    stored = plan_to_store(given)
    assert stored is not None
    made = status(BackupStatus(), given, stored, generation=1, now=NOW)
    assert made.verification == Verification(level="Restore", start_time=NOW)
    verdict = of(made)
    assert (verdict.status, verdict.reason) == ("Unknown", "Pending")
    assert (
        status(
            BackupStatus(), state(ended(READ), phase="BackingUp", verify=""), stored, generation=1, now=NOW
        ).verification
        is None
    )


def of(found: BackupStatus) -> Condition:
    """The condition Verified."""
    (one,) = (each for each in found.conditions if each.type == "Verified")
    return one


STORED_STATUS = BackupStatus(
    phase="Completed",
    completion_time="2026-11-22T15:00:05Z",
    url=URL,
    sha256=MANIFEST.sha256,
    verification=Verification(level="Restore", start_time="2026-11-22T15:00:05Z"),
    conditions=(
        Condition(
            type="Complete", status="True", reason="Stored", last_transition_time="2026-11-22T15:00:05Z"
        ),
        Condition(
            type="Failed", status="False", reason="Stored", last_transition_time="2026-11-22T15:00:05Z"
        ),
        Condition(type="Theirs", status="True", reason="Because"),
    ),
)


def written(given: BackupState, previous: BackupStatus = STORED_STATUS) -> BackupStatus:
    return status(previous, given, planned(given), generation=1, now=NOW)


def test_a_failed_verification_leaves_the_backup_stored() -> None:
    made = written(state(ended(BROKEN, 3)))
    assert (made.phase, made.url, made.conditions[0].status) == ("Completed", URL, "True")
    assert (of(made).status, of(made).message) == ("False", BROKEN.error)
    assert made.verification is not None
    assert (made.verification.completion_time, made.verification.took) == (NOW, 0.0)


def test_before_the_job_is_seen_nothing_is_recorded_of_it() -> None:
    made = written(state())
    assert made.verification == STORED_STATUS.verification
    assert (of(made).status, of(made).reason) == ("Unknown", "Starting")


def test_a_hash_that_etcdutl_cannot_compute_is_reported() -> None:
    old = TrialReport(etcd_version="3.5.35", revision=7, has_compared_hash=False)
    report = msgspec.structs.replace(RESTORED, restore=old)
    assert "HashKV not compared" in planned(state(ended(report))).message


def test_a_pass_without_news_writes_nothing() -> None:
    runs = state(job(pod(has_started=True)))
    assert written(runs, written(runs)) == written(runs)
    assert of(written(runs)).status == "Unknown"


@pytest.mark.parametrize(
    ("version", "image"),
    [
        ("3.6.16", "3.6.16"),
        ("3.7.0-rc.1", "3.7.0-rc.1"),
        ("3.5.0", "3.5.0"),
        ("3.4.27", "3.5.35"),
        ("", None),
        ("3.6", None),
        ("3.6.16+dirty", None),
    ],
)
def test_the_version_that_restores(version: str, image: str | None) -> None:
    assert restoring(version) == image


def test_every_error_that_means_damage_has_a_reason_of_its_own() -> None:
    assert {kind.__name__ for kind in BackupError.__subclasses__()} - set(VERIFY_REASONS) <= {
        "FetchError",
        "RestoreError",
        "ScratchFailed",
        "ProgramMissing",
        "ProgramFailed",
    }, "these report nothing about the backup"


def test_a_lack_of_space_is_reported_without_flags() -> None:
    error = "a test restore needs 4352 MiB, and /tmp has 100 MiB free: pass --scratch-dir DIR with more space"
    pod = JobPod(name="p", exit_code=1, report=JobReport(error=error, reason="BackupError"))
    reason, message = failure(pod, "one", VERIFIES)
    assert (reason, "--" in message) == ("VerificationFailed", False)
    assert "its node needs more free disk space" in message


def test_a_backup_of_a_newer_etcd_is_reported_without_flags() -> None:
    error = "etcd is 3.6.16, and the backup is of etcd 3.7.3: pass --etcd-bin DIR with etcd and etcdutl 3.7"
    pod = JobPod(name="p", exit_code=1, report=JobReport(error=error, reason="ProgramMissing"))
    _, message = failure(pod, "one", VERIFIES)
    assert message.endswith("of etcd 3.7.3: its pod needs etcd and etcdutl 3.7")
