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
from etcd_operator.controllers.etcd_backup.decide.state import (
    BackupState,
    SourceCluster,
)
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


@pytest.mark.parametrize(
    ("given", "phase", "reason", "act"),
    [
        pytest.param(state(phase=""), "BackingUp", "Accepted", Act.NOTHING, id="the status comes first"),
        pytest.param(
            state(phase="", problem="spec.source: no"), "Failed", "InvalidSpec", Act.NOTHING, id="invalid"
        ),
        pytest.param(
            state(problem="spec.source: no", source=SourceCluster()),
            "Failed",
            "InvalidSpec",
            Act.NOTHING,
            id="invalid for another version of the operator",
        ),
        pytest.param(
            state(job(pod(has_started=True)), problem="spec.source: no", source=SourceCluster()),
            "BackingUp",
            "Running",
            Act.NOTHING,
            id="but what runs goes on",
        ),
        pytest.param(state(), "BackingUp", "Starting", Act.CREATE_JOB, id="its Job is made"),
        pytest.param(
            state(source=UNKNOWN), "BackingUp", "UnknownCluster", Act.NOTHING, id="it waits for its cluster"
        ),
        pytest.param(
            state(source=UNKNOWN, waited=SOURCE_PATIENCE),
            "Failed",
            "UnknownCluster",
            Act.NOTHING,
            id="but not for ever",
        ),
        pytest.param(
            state(job(), source=UNKNOWN, waited=SOURCE_PATIENCE),
            "BackingUp",
            "PodPending",
            Act.NOTHING,
            id="a cluster that is deleted in the middle is the Job's to notice",
        ),
        pytest.param(state(job()), "BackingUp", "PodPending", Act.NOTHING, id="no pod yet"),
        pytest.param(state(job(pod())), "BackingUp", "PodPending", Act.NOTHING, id="a pod that waits"),
        pytest.param(state(job(pod(has_started=True))), "BackingUp", "Running", Act.NOTHING, id="it runs"),
        pytest.param(
            state(job(pod(has_started=True), age=9 * START_PATIENCE)),
            "BackingUp",
            "Running",
            Act.NOTHING,
            id="what runs is ended by its own time limits, which progress extends",
        ),
        pytest.param(
            state(job(pod(has_started=True, is_terminating=True))),
            "BackingUp",
            "PodTerminating",
            Act.NOTHING,
            id="a pod that is being deleted may still store the backup",
        ),
        pytest.param(
            state(job(pod(has_started=True, is_terminating=True), stopping=STOP_PATIENCE)),
            "Failed",
            NOT_STOPPED,
            Act.NOTHING,
            id="but not for ever: its node may be lost",
        ),
        pytest.param(
            state(job(pod(exit_code=0, report=STORED), is_terminating=True, stopping=STOP_PATIENCE)),
            "Completed",
            "Stored",
            Act.NOTHING,
            id="stored, and a finalizer holds the Job",
        ),
        pytest.param(
            state(
                job(pod(is_terminating=True), is_terminating=True, stopping=STOP_PATIENCE),
                stopped=(NOT_STARTED, "why"),
            ),
            "Failed",
            NOT_STARTED,
            Act.NOTHING,
            id="a pod that neither starts nor ends",
        ),
        pytest.param(
            state(job(pod(exit_code=0, report=STORED))), "Completed", "Stored", Act.NOTHING, id="stored"
        ),
        pytest.param(
            state(job(pod(exit_code=1, report=STORED))),
            "Completed",
            "Stored",
            Act.NOTHING,
            id="stored, no stdout",
        ),
        pytest.param(
            state(job(pod(name="one-a", exit_code=1), pod(exit_code=0, report=STORED))),
            "Completed",
            "Stored",
            Act.NOTHING,
            id="of two pods one has stored it",
        ),
        pytest.param(
            state(job(pod(name="one-a", exit_code=1), pod(has_started=True))),
            "BackingUp",
            "Running",
            Act.NOTHING,
            id="of two pods one still runs",
        ),
        pytest.param(
            state(job(pod(exit_code=0), end=JobEnd.SUCCEEDED)),
            "Completed",
            "Stored",
            Act.NOTHING,
            id="stored, without a report",
        ),
        pytest.param(
            state(job(end=JobEnd.SUCCEEDED)), "Completed", "Stored", Act.NOTHING, id="stored, the pod is gone"
        ),
        pytest.param(
            state(job(end=JobEnd.FAILED)), "Failed", "PodDeleted", Act.NOTHING, id="failed, the pod is gone"
        ),
        pytest.param(
            state(job(pod(has_failed=True, reason="Evicted", message="low on memory"))),
            "Failed",
            "Evicted",
            Act.NOTHING,
            id="evicted before it started",
        ),
        pytest.param(
            state(job(pod(), age=START_PATIENCE)),
            "BackingUp",
            NOT_STARTED,
            Act.STOP_JOB,
            id="never started",
        ),
        pytest.param(
            state(job(pod(), age=START_PATIENCE, is_terminating=True), stopped=(NOT_STARTED, "why")),
            "BackingUp",
            NOT_STARTED,
            Act.NOTHING,
            id="its Job is being deleted for that",
        ),
        pytest.param(
            state(job(pod(exit_code=0, report=STORED), is_terminating=True), stopped=(NOT_STARTED, "why")),
            "Completed",
            "Stored",
            Act.NOTHING,
            id="it stored the backup nevertheless",
        ),
        pytest.param(
            state(None, is_job_recorded=True, stopped=(NOT_STARTED, "why")),
            "Failed",
            NOT_STARTED,
            Act.NOTHING,
            id="its Job was deleted for that",
        ),
        pytest.param(
            state(None, is_job_recorded=True),
            "Failed",
            "JobDeleted",
            Act.NOTHING,
            id="somebody deleted its Job",
        ),
    ],
)
def test_a_decision(given: BackupState, phase: str, reason: str, act: Act) -> None:
    made = planned(given)
    assert (made.phase, made.reason, made.act) == (phase, reason, act)
    assert made.message
    if phase == "BackingUp" and reason in WAITS:
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
