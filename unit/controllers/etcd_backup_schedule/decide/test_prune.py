"""When old stored backups of a schedule are removed, and what the status reports of it."""

from dataclasses import replace

import pytest

from etcd_operator.api.backup_schedules import LastPrune, ScheduleStatus
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import plan
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import (
    UNCHANGED,
    PruneAct,
    PrunePlan,
    PruneState,
    plan_prune,
)
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState
from etcd_operator.controllers.etcd_backup_schedule.decide.status import PRUNED, status
from etcd_operator.controllers.shared.decide.job_report import JobReport
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobPod, JobState
from unit.controllers.etcd_backup_schedule.decide.schedules import planned, state, taken

ONE, TWO = "maxCount 3 after s3://b/one", "maxCount 3 after s3://b/two"
STATE = PruneState(retention="maxCount 3", newest="s3://b/one")


def job(end: JobEnd = JobEnd.RUNS, **facts: object) -> JobState:
    return JobState(**{"name": "j", "uid": "u", "request": ONE, "end": end, **facts})  # type: ignore[arg-type]


def failed(error: str, reason: str) -> JobState:
    return job(JobEnd.FAILED, report=JobReport(error=error, reason=reason))


DONE = job(JobEnd.SUCCEEDED, report=JobReport(removed=1, kept=3))
ACTS = {
    "nothing was asked": (PruneState(), PrunePlan(verdict=None)),
    "no backup yet": (
        PruneState(retention="maxCount 3"),
        PrunePlan(verdict="Unknown", reason="NoBackup", message="no backup has been completed yet"),
    ),
    "a new backup": (STATE, PrunePlan(act=PruneAct.CREATE)),
    "an edit": (replace(STATE, done="maxCount 4 after s3://b/one"), PrunePlan(act=PruneAct.CREATE)),
    "the newest backup is doubtful": (
        replace(STATE, doubtful="s-9"),
        PrunePlan(
            verdict="False",
            reason="DataCorrupt",
            message="no old backup is removed: EtcdBackup s-9 was taken while etcd reported corrupt data "
            "(alarm CORRUPT), so its data may be wrong",
        ),
    ),
    "a backup runs": (replace(STATE, is_backing_up=True), UNCHANGED),
    "done": (replace(STATE, done=ONE), UNCHANGED),
    "done, and its Job is kept": (replace(STATE, done=ONE, job=DONE), UNCHANGED),
    "a newer backup": (
        replace(STATE, newest="s3://b/two", done=ONE, job=DONE),
        PrunePlan(act=PruneAct.REMOVE),
    ),
    "a newer backup, and another runs": (
        replace(STATE, newest="s3://b/two", done=ONE, job=DONE, is_backing_up=True),
        UNCHANGED,
    ),
    "it runs": (
        replace(STATE, job=job()),
        PrunePlan(verdict="Unknown", reason="Pruning", message="Job j removes old backups"),
    ),
    "it runs, and there is a newer backup": (
        replace(STATE, newest="s3://b/two", job=job()),
        PrunePlan(verdict="Unknown", reason="Pruning", message="Job j removes old backups"),
    ),
    "its pod waits": (
        replace(STATE, job=job(pods=(JobPod(name="p", waits_for="no secret"),))),
        PrunePlan(
            verdict="Unknown",
            reason="PodPending",
            message="waiting for the pod of Job j to start: no secret",
        ),
    ),
    "it is being deleted": (
        replace(STATE, job=job(is_terminating=True)),
        PrunePlan(verdict="Unknown", reason="Stopping", message="Job j is being deleted"),
    ),
    "it runs for a former retention": (
        replace(STATE, retention="maxCount 30", job=job()),
        PrunePlan(act=PruneAct.REMOVE),
    ),
    "it runs without a retention": (PruneState(job=job()), PrunePlan(act=PruneAct.REMOVE)),
    "it has ended without a retention": (
        PruneState(job=DONE),
        PrunePlan(act=PruneAct.REMOVE, verdict=None),
    ),
    "it has removed one": (
        replace(STATE, job=DONE),
        PrunePlan(
            verdict="True",
            reason="BackupsPruned",
            message="removed 1 backup, 3 left",
            ended=ONE,
            removed=1,
            stored=3,
        ),
    ),
    "its pod is gone": (
        replace(STATE, newest="s3://b/two", job=job(JobEnd.SUCCEEDED)),
        PrunePlan(
            verdict="True",
            reason="BackupsPruned",
            message="old backups were removed; how many is not known, because the pod was deleted",
            ended=ONE,
        ),
    ),
}


@pytest.mark.parametrize(("given", "wanted"), ACTS.values(), ids=ACTS)
def test_what_is_done(given: PruneState, wanted: PrunePlan) -> None:
    assert plan_prune(given) == wanted


@pytest.mark.parametrize(
    ("ended", "pending", "reason", "message"),
    [
        (failed("there is no bucket", "BucketMissing"), "", "BucketMissing", "there is no bucket"),
        (failed("no answer", "Unreachable"), "", "StoreUnreachable", "no answer"),
        (failed("odd", "SomethingNew"), "", "PruneFailed", "odd"),
        (failed("x" * 5000, "Stalled"), "", "StoreStalled", "x" * 1000),
        (job(JobEnd.FAILED, message="too long"), "", "PruneFailed", "the Job failed: too long"),
        (job(JobEnd.FAILED), "", "PruneFailed", "the Job failed: no reason is given"),
        (
            job(JobEnd.FAILED, message="too long"),
            "waiting for a Secret",
            "NotStarted",
            "the Job has ended while waiting for a Secret",
        ),
    ],
)
def test_why_it_failed(ended: JobState, pending: str, reason: str, message: str) -> None:
    made = plan_prune(replace(STATE, job=ended, pending=pending))
    assert (made.verdict, made.reason, made.ended, made.removed) == ("False", reason, ONE, None)
    later = "old backups remain until their removal is tried again, after the next backup"
    assert made.message == f"{message}; {later}"


def after(given: ScheduleState, previous: ScheduleStatus) -> ScheduleStatus:
    return status(previous, given, planned(given), generation=7)


def conditions(found: ScheduleStatus) -> dict[str, Condition]:
    return {each.type: each for each in found.conditions}


def test_the_status_from_the_first_prune_to_a_failure_and_the_end_of_the_retention() -> None:
    first = after(state(prune=replace(STATE, job=DONE)), ScheduleStatus())
    assert first.last_prune == LastPrune(request=ONE, time="2026-11-22T12:30:00Z", removed=1, stored=3)
    assert conditions(first)[PRUNED].status == "True"
    rest = after(state(prune=replace(STATE, done=ONE, job=DONE)), first)
    assert rest == first, "nothing is written at rest"
    ended = failed("there is no bucket", "BucketMissing")
    second = after(state(prune=replace(STATE, job=ended, newest="s3://b/two")), first)
    assert second.last_prune is not None
    assert (second.last_prune.removed, second.last_prune.stored) == (0, 3)
    assert conditions(second)[PRUNED].reason == "BucketMissing"
    nothing = after(state(), second)
    assert PRUNED not in conditions(nothing)
    unknown = after(state(prune=replace(STATE, job=job(JobEnd.SUCCEEDED))), ScheduleStatus())
    assert unknown.last_prune is not None
    assert (unknown.last_prune.removed, unknown.last_prune.stored) == (0, 0)


def test_an_invalid_spec_leaves_the_verdict_as_it_is() -> None:
    first = after(state(prune=replace(STATE, job=DONE)), ScheduleStatus())
    invalid = after(state(times=None, problem="spec.x: no", prune=PruneState()), first)
    assert conditions(invalid)[PRUNED] == conditions(first)[PRUNED]
    assert invalid.last_prune == first.last_prune


def test_no_prune_begins_while_a_backup_runs_or_begins() -> None:
    due = state("22 13:00", prune=STATE)
    assert planned(due).start is not None
    assert planned(due).prune.act is PruneAct.NOTHING
    runs = state(since="22 12:00", backups=(taken("22 12:00", "BackingUp"),), prune=STATE)
    assert planned(runs).prune.act is PruneAct.NOTHING
    rests = state(since="22 12:00", backups=(taken("22 12:00"),), prune=STATE)
    assert planned(rests).prune.act is PruneAct.CREATE
    assert plan(state(is_deleting=True, prune=STATE)) is None
