"""What is done to verify one EtcdBackup that is stored: every decision as a table."""

from typing import Any

import msgspec
import pytest

from etcd_operator.api.backups import BackupStatus, Verification
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.etcd_backup.decide.plan import (
    NOT_STARTED,
    NOT_STOPPED,
    STOP_PATIENCE,
    Act,
    BackupPlan,
)
from etcd_operator.controllers.etcd_backup.decide.plan import plan as plan_to_store
from etcd_operator.controllers.etcd_backup.decide.state import BackupState
from etcd_operator.controllers.etcd_backup.decide.status import status
from etcd_operator.controllers.etcd_backup.decide.verification import plan
from etcd_operator.controllers.shared.decide.job_report import JobReport, TrialReport
from etcd_operator.controllers.shared.decide.job_state import START_PATIENCE, JobEnd, JobState
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


@pytest.mark.parametrize(
    ("given", "verdict", "reason", "act"),
    [
        pytest.param(state(), None, "Starting", Act.CREATE_JOB, id="its Job is made"),
        pytest.param(
            state(waited=START_PATIENCE, message="exceeded quota"),
            False,
            NOT_STARTED,
            Act.NOTHING,
            id="its Job cannot be made",
        ),
        pytest.param(
            state(job(pod(has_started=True)), waited=START_PATIENCE),
            None,
            "Running",
            Act.NOTHING,
            id="what runs is not given up",
        ),
        pytest.param(
            state(verify="Hash", etcd_version=""), None, "Starting", Act.CREATE_JOB, id="of any version"
        ),
        pytest.param(
            state(etcd_version=""), False, "VersionUnknown", Act.NOTHING, id="restored by which etcd"
        ),
        pytest.param(
            state(etcd_version="3.6.1+vendor"),
            False,
            "VersionUnknown",
            Act.NOTHING,
            id="of which there is no image",
        ),
        pytest.param(
            state(problem="spec.source: no"), False, "InvalidSpec", Act.NOTHING, id="invalid meanwhile"
        ),
        pytest.param(state(job()), None, "PodPending", Act.NOTHING, id="no pod yet"),
        pytest.param(state(job(pod(has_started=True))), None, "Running", Act.NOTHING, id="running"),
        pytest.param(
            state(job(pod(has_started=True)), problem="spec.source: no"),
            None,
            "Running",
            Act.NOTHING,
            id="goes on",
        ),
        pytest.param(state(ended(RESTORED)), True, "Restored", Act.NOTHING, id="restored"),
        pytest.param(state(ended(READ), verify="Hash"), True, "HashesMatch", Act.NOTHING, id="read back"),
        pytest.param(
            state(ended(READ), verify="Hash", sha256=""),
            True,
            "HashesMatch",
            Act.NOTHING,
            id="of an unknown hash",
        ),
        pytest.param(state(ended(READ)), False, "VerificationFailed", Act.NOTHING, id="read back only"),
        pytest.param(
            state(ended(FOREIGN), verify="Hash"), False, "Replaced", Act.NOTHING, id="another backup"
        ),
        pytest.param(
            state(ended(None)), False, "VerificationFailed", Act.NOTHING, id="ended without a report"
        ),
        pytest.param(state(ended(BROKEN, 3)), False, "Damaged", Act.NOTHING, id="damaged"),
        pytest.param(
            state(ended(JobReport(error="x", reason="Interrupted"), 143)),
            False,
            "Interrupted",
            Act.NOTHING,
            id="stopped",
        ),
        pytest.param(
            state(ended(None, 137, reason="OOMKilled")), False, "OutOfMemory", Act.NOTHING, id="memory"
        ),
        pytest.param(state(ended(None, 1)), False, "VerificationFailed", Act.NOTHING, id="crashed"),
        pytest.param(
            state(job(pod(has_failed=True, reason="Evicted"))), False, "Evicted", Act.NOTHING, id="evicted"
        ),
        pytest.param(
            state(job(end=JobEnd.SUCCEEDED)),
            False,
            "PodDeleted",
            Act.NOTHING,
            id="its pod is gone with the report",
        ),
        pytest.param(state(job(end=JobEnd.FAILED)), False, "PodDeleted", Act.NOTHING, id="its pod is gone"),
        pytest.param(
            state(job(pod(), age=START_PATIENCE)), None, NOT_STARTED, Act.STOP_JOB, id="never started"
        ),
        pytest.param(
            state(None, is_job_recorded=True, stopped=(NOT_STARTED, "why")),
            False,
            NOT_STARTED,
            Act.NOTHING,
            id="deleted for that",
        ),
        pytest.param(
            state(None, is_job_recorded=True), False, "JobDeleted", Act.NOTHING, id="somebody deleted its Job"
        ),
        pytest.param(
            state(job(pod(has_started=True, is_terminating=True), stopping=STOP_PATIENCE)),
            False,
            NOT_STOPPED,
            Act.NOTHING,
            id="on a lost node",
        ),
    ],
)
def test_a_decision(given: BackupState, verdict: bool | None, reason: str, act: Act) -> None:
    made = planned(given)
    assert (made.phase, made.verdict, made.reason, made.act) == ("Completed", verdict, reason, act)
    assert made.message
    assert "another EtcdBackup" not in made.message, "the backup exists"
    assert plan_to_store(given) is None


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


def test_the_status_of_a_verified_backup() -> None:
    made = written(state(ended(RESTORED)))
    assert made.verification == Verification(
        level="Restore",
        job_name="one",
        start_time="2026-11-22T15:00:05Z",
        completion_time=NOW,
        etcd_version="3.6.16",
        took=1.5,
    )
    verdict = of(made)
    assert (verdict.status, verdict.reason, verdict.last_transition_time) == ("True", "Restored", NOW)
    assert verdict.message == (
        "read back, and all hashes match; restored, and served by etcd 3.6.16 at revision 7, in 1.5 s"
    )
    others = tuple(each for each in made.conditions if each.type != "Verified")
    assert others == STORED_STATUS.conditions
    assert (made.phase, made.completion_time) == ("Completed", "2026-11-22T15:00:05Z")


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
