"""What is done for one EtcdBackup: every decision as a table."""

from typing import Any

import pytest

from etcd_operator.controllers.etcd_backup.decide.plan import (
    NOT_STARTED,
    NOT_STOPPED,
    SOURCE_PATIENCE,
    STOP_PATIENCE,
    Act,
    BackupPlan,
    gives_up_source,
    plan,
    rests_on_absence,
)
from etcd_operator.controllers.etcd_backup.decide.state import BackupState, SourceCluster
from etcd_operator.controllers.shared.decide.job_report import JobReport, StoredManifest
from etcd_operator.controllers.shared.decide.job_state import START_PATIENCE, JobEnd, JobPod, JobState

URL = "s3://bucket/one.db"
MANIFEST = StoredManifest(
    revision=7, keys=3, size=20512, sha256="ab" * 32, etcd_version="3.6.16", cluster_id="c0ffee"
)
STORED = JobReport(manifest=MANIFEST, source="c-0.c.default.svc:2379", seconds=1.25)
READY = SourceCluster(endpoints=("c-0.c.default.svc:2379",))
UNKNOWN = SourceCluster(reason="UnknownCluster", message="there is no EtcdCluster c")


WAITS = {"UnknownCluster", NOT_STARTED, "Starting", "PodPending", "PodTerminating"}
"""Reasons that time ends."""


def pod(**facts: Any) -> JobPod:
    return JobPod(**{"name": "one-x", **facts})


def job(*pods: JobPod, **facts: Any) -> JobState:
    return JobState(**{"name": "one", "uid": "uid-job", "pods": pods, **facts})


def state(made: JobState | None = None, **facts: Any) -> BackupState:
    defaults = {"phase": "BackingUp", "url": URL, "source": READY, "waited": 1.0}
    return BackupState(**{**defaults, "job": made, "is_job_recorded": made is not None, **facts})


def planned(given: BackupState) -> BackupPlan:
    made = plan(given)
    assert made is not None
    return made


DECISIONS: dict[str, tuple[BackupState, str]] = {
    "the status comes first": (state(phase=""), "BackingUp Accepted"),
    "invalid": (state(phase="", problem="spec.source: no"), "Failed InvalidSpec"),
    "invalid for another version of the operator": (
        state(problem="spec.source: no", source=SourceCluster()),
        "Failed InvalidSpec",
    ),
    "but what runs goes on": (
        state(job(pod(has_started=True)), problem="spec.source: no", source=SourceCluster()),
        "BackingUp Running",
    ),
    "its Job is made": (state(), "BackingUp Starting"),
    "it waits for its cluster": (state(source=UNKNOWN), "BackingUp UnknownCluster"),
    "but not for ever": (state(source=UNKNOWN, waited=SOURCE_PATIENCE), "Failed UnknownCluster"),
    "a cluster that is deleted in the middle is the Job's to notice": (
        state(job(), source=UNKNOWN, waited=SOURCE_PATIENCE),
        "BackingUp PodPending",
    ),
    "no pod yet": (state(job()), "BackingUp PodPending"),
    "a pod that waits": (state(job(pod())), "BackingUp PodPending"),
    "it runs": (state(job(pod(has_started=True))), "BackingUp Running"),
    "what runs is ended by its own time limits, which progress extends": (
        state(job(pod(has_started=True), age=9 * START_PATIENCE)),
        "BackingUp Running",
    ),
    "a pod that is being deleted may still store the backup": (
        state(job(pod(has_started=True, is_terminating=True))),
        "BackingUp PodTerminating",
    ),
    "but not for ever: its node may be lost": (
        state(job(pod(has_started=True, is_terminating=True), stopping=STOP_PATIENCE)),
        f"Failed {NOT_STOPPED}",
    ),
    "stored, and a finalizer holds the Job": (
        state(job(pod(exit_code=0, report=STORED), is_terminating=True, stopping=STOP_PATIENCE)),
        "Completed Stored",
    ),
    "a pod that neither starts nor ends": (
        state(
            job(pod(is_terminating=True), is_terminating=True, stopping=STOP_PATIENCE),
            stopped=(NOT_STARTED, "why"),
        ),
        f"Failed {NOT_STARTED}",
    ),
    "stored": (state(job(pod(exit_code=0, report=STORED))), "Completed Stored"),
    "stored, no stdout": (state(job(pod(exit_code=1, report=STORED))), "Completed Stored"),
    "of two pods one has stored it": (
        state(job(pod(name="one-a", exit_code=1), pod(exit_code=0, report=STORED))),
        "Completed Stored",
    ),
    "of two pods one still runs": (
        state(job(pod(name="one-a", exit_code=1), pod(has_started=True))),
        "BackingUp Running",
    ),
    "stored, without a report": (state(job(pod(exit_code=0), end=JobEnd.SUCCEEDED)), "Completed Stored"),
    "stored, the pod is gone": (state(job(end=JobEnd.SUCCEEDED)), "Completed Stored"),
    "failed, the pod is gone": (state(job(end=JobEnd.FAILED)), "Failed PodDeleted"),
    "evicted before it started": (
        state(job(pod(has_failed=True, reason="Evicted", message="low on memory"))),
        "Failed Evicted",
    ),
    "never started": (state(job(pod(), age=START_PATIENCE)), f"BackingUp {NOT_STARTED}"),
    "its Job is being deleted for that": (
        state(job(pod(), age=START_PATIENCE, is_terminating=True), stopped=(NOT_STARTED, "why")),
        f"BackingUp {NOT_STARTED}",
    ),
    "it stored the backup nevertheless": (
        state(job(pod(exit_code=0, report=STORED), is_terminating=True), stopped=(NOT_STARTED, "why")),
        "Completed Stored",
    ),
    "its Job was deleted for that": (
        state(None, is_job_recorded=True, stopped=(NOT_STARTED, "why")),
        f"Failed {NOT_STARTED}",
    ),
    "somebody deleted its Job": (state(None, is_job_recorded=True), "Failed JobDeleted"),
}


ACTS = {"its Job is made": Act.CREATE_JOB, "never started": Act.STOP_JOB}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision(name: str) -> None:
    given, wanted = DECISIONS[name]
    made = planned(given)
    assert (f"{made.phase} {made.reason}", made.act) == (wanted, ACTS.get(name, Act.NOTHING))
    assert made.message
    if made.phase == "BackingUp" and made.reason in WAITS:
        assert made.requeue_after is not None, "nothing would ever happen again"


@pytest.mark.parametrize("final", [{"phase": "Completed"}, {"phase": "Failed"}, {"is_deleting": True}])
@pytest.mark.parametrize("made", [None, job(), job(pod(exit_code=0, report=STORED))])
def test_what_has_ended_is_never_run_again(made: JobState | None, final: dict[str, Any]) -> None:
    assert plan(state(made, **final)) is None


RUNS = pod(has_started=True)
GOING = pod(name="one-a", has_started=True, is_terminating=True)
LATE = {"age": START_PATIENCE}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (job(), False),
        (job(pod(exit_code=0)), False),
        (job(end=JobEnd.FAILED), True),
        (job(RUNS, end=JobEnd.SUCCEEDED), True),
        (job(pod(exit_code=1), end=JobEnd.FAILED), False),
        (job(pod(has_failed=True), end=JobEnd.FAILED), False),
        (job(**LATE), True),
        (job(pod(), **LATE), True),
        (job(RUNS, **LATE), False),
        (job(pod(is_terminating=True), **LATE, is_terminating=True), False),
        (job(GOING), False),
        (job(GOING, stopping=STOP_PATIENCE), True),
    ],
)
def test_what_rests_on_pods_that_were_not_seen(given: JobState, expected: bool) -> None:
    assert rests_on_absence(given) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (job(), False),
        (job(is_terminating=True), True),
        (job(GOING), True),
        (job(GOING, RUNS), False),
        (job(RUNS, is_terminating=True), False),
        (job(pod(exit_code=1), is_terminating=True), True),
        (job(pod(exit_code=1)), False),
    ],
)
def test_what_is_stopping(given: JobState, expected: bool) -> None:
    assert given.is_stopping is expected


def test_who_waits_reports_for_what() -> None:
    waits = "CreateContainerConfigError: secret s3 not found"
    assert waits in planned(state(job(pod(waits_for=waits)))).message
    assert waits in planned(state(job(pod(waits_for=waits), age=START_PATIENCE))).message
    assert "kubectl describe job one" in planned(state(job())).message
    assert "kubectl describe pod one-x" in planned(state(job(pod()))).message


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (state(source=UNKNOWN, waited=60.0), True),
        (state(source=UNKNOWN, waited=59.9), False),
        (state(waited=60.0), False),
        (state(source=UNKNOWN, waited=60.0, problem="spec: no"), False),
        (state(source=UNKNOWN, waited=60.0, is_job_recorded=True), False),
        (state(job(), source=UNKNOWN, waited=60.0, is_job_recorded=False), False),
    ],
)
def test_whether_a_backup_is_about_to_fail_because_of_its_source(given: BackupState, expected: bool) -> None:
    assert gives_up_source(given) is expected
