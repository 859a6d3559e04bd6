"""What is done for one EtcdBackupSchedule: every decision as a table."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_backup_schedule.decide.plan import plan
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState
from unit.controllers.etcd_backup_schedule.decide.schedules import at, planned, state, taken

RUNS = taken("22 12:00", "BackingUp")
ONE, TWO, FOUR = (f"2026-11-22T{hour}:00:00Z" for hour in (13, 14, 16))
WITHIN = "within spec.startingDeadlineSeconds"


@pytest.mark.parametrize(
    ("given", "reason", "start", "since", "following", "sleep"),
    [
        pytest.param(state(), "Scheduled", "", "22 12:00", "22 13:00", 60.0, id="nothing is due"),
        pytest.param(
            state("22 12:59:58"), "Scheduled", "", "22 12:00", "22 13:00", 2.0, id="it is due in a moment"
        ),
        pytest.param(
            state("22 13:00"), "BackingUp", "22 13:00", "22 12:00", "22 14:00", 60.0, id="it is due now"
        ),
        pytest.param(
            state("22 16:30"),
            "BackingUp",
            "22 16:00",
            "22 12:00",
            "22 17:00",
            60.0,
            id="the latest is made up for",
        ),
        pytest.param(
            state("22 13:59:59"), "BackingUp", "22 13:00", "22 12:00", "22 14:00", 1.0, id="the next is near"
        ),
        pytest.param(
            state(backups=(RUNS,)), "BackingUp", "", "22 12:00", "22 13:00", 60.0, id="one has not ended"
        ),
        pytest.param(
            state("22 13:10", backups=(RUNS,)),
            "Waiting",
            "",
            "22 12:00",
            "22 13:00",
            60.0,
            id="never two at once",
        ),
        pytest.param(
            state("22 13:59:50", backups=(RUNS,)), "Waiting", "", "22 12:00", "22 13:00", 10.0, id="nor later"
        ),
        pytest.param(
            state("22 13:00", backups=(taken("22 12:00", ""),)),
            "Waiting",
            "",
            "22 12:00",
            "22 13:00",
            60.0,
            id="one that was not accepted yet counts",
        ),
        pytest.param(
            state("22 13:10", backups=(taken("22 12:00"), taken("22 11:00", "Failed"))),
            "BackingUp",
            "22 13:00",
            "22 12:00",
            "22 14:00",
            60.0,
            id="those that have ended do not",
        ),
        pytest.param(
            state("22 13:00:30", deadline=30),
            "BackingUp",
            "22 13:00",
            "22 12:00",
            "22 14:00",
            60.0,
            id="in time",
        ),
        pytest.param(
            state("22 13:00:31", deadline=30), "Scheduled", "", "22 13:00", "22 14:00", 60.0, id="too late"
        ),
        pytest.param(
            state("22 15:00:10", deadline=30),
            "BackingUp",
            "22 15:00",
            "22 12:00",
            "22 16:00",
            60.0,
            id="the latest is in time",
        ),
        pytest.param(
            state("22 13:00:10", deadline=30, backups=(RUNS,)),
            "Waiting",
            "",
            "22 12:00",
            "22 13:00",
            20.0,
            id="it waits until its deadline",
        ),
        pytest.param(
            state("22 13:00:31", deadline=30, backups=(RUNS,)),
            "BackingUp",
            "",
            "22 13:00",
            "22 14:00",
            60.0,
            id="and is skipped then",
        ),
        pytest.param(
            state("22 16:30", is_suspended=True), "Suspended", "", "22 12:00", "", None, id="suspended"
        ),
        pytest.param(
            state("22 16:30", times=None, problem="spec.schedule: no"),
            "InvalidSpec",
            "",
            "",
            "",
            None,
            id="invalid",
        ),
        pytest.param(
            state("22 16:30", known="30 3 * * * (UTC)"),
            "Scheduled",
            "",
            "22 16:30",
            "22 17:00",
            60.0,
            id="an edit makes up for nothing",
        ),
        pytest.param(
            state("22 16:30", since="", known="", created=at("22 12:10")),
            "Scheduled",
            "",
            "22 16:30",
            "22 17:00",
            60.0,
            id="nor does one that makes it valid",
        ),
        pytest.param(
            state("22 16:30", since="", known=None, created=at("22 12:10")),
            "BackingUp",
            "22 16:00",
            "22 12:10",
            "22 17:00",
            60.0,
            id="times since its creation count",
        ),
        pytest.param(
            state("22 12:00:30", since="", known=None, created=at("22 12:00")),
            "Scheduled",
            "",
            "22 12:00",
            "22 13:00",
            60.0,
            id="the time of its creation does not",
        ),
        pytest.param(
            state("22 11:59:30", since="", known=None, created=at("22 12:00:30")),
            "Scheduled",
            "",
            "22 12:00:30",
            "22 13:00",
            60.0,
            id="the clock of the API server is ahead",
        ),
        pytest.param(
            state("22 11:00"),
            "Scheduled",
            "",
            "22 12:00",
            "22 13:00",
            60.0,
            id="the clock was set back an hour",
        ),
        pytest.param(state("22 10:00"), "Scheduled", "", "22 12:00", "22 13:00", 60.0, id="or two"),
        pytest.param(
            state("22 09:59:59"),
            "Scheduled",
            "",
            "22 09:59:59",
            "22 10:00",
            1.0,
            id="the clock was far ahead",
        ),
        pytest.param(
            state("22 13:00:30", backups=(taken("22 13:00", "BackingUp"),)),
            "BackingUp",
            "",
            "22 13:00",
            "22 14:00",
            60.0,
            id="it was created, but its status was not written",
        ),
        pytest.param(
            state("22 14:10", backups=(taken("22 13:00"),)),
            "BackingUp",
            "22 14:00",
            "22 13:00",
            "22 15:00",
            60.0,
            id="the same, and the next is due",
        ),
        pytest.param(
            state("22 13:10", backups=(taken("22 18:00"), replace(taken("22 13:00"), due=None))),
            "BackingUp",
            "22 13:00",
            "22 12:00",
            "22 14:00",
            60.0,
            id="times in the future prove nothing",
        ),
    ],
)
def test_a_plan(
    given: ScheduleState, reason: str, start: str, since: str, following: str, sleep: float | None
) -> None:
    made = planned(given)
    assert made.reason == reason
    assert made.start == (at(start) if start else None)
    assert made.since == (at(since) if since else None)
    assert made.following == (at(following) if following else None)
    assert made.requeue_after == sleep
    assert made.is_ready is (reason not in ("Suspended", "InvalidSpec"))


@pytest.mark.parametrize("deadline", [None, 30])
def test_a_backup_that_holds_up_a_whole_time_of_the_schedule_is_reported(deadline: int | None) -> None:
    """Its pod may hang; with a deadline the times are skipped instead, which is no better."""
    early = planned(state("22 13:59:59", deadline=deadline, backups=(RUNS,)))
    late = planned(state("22 14:00", deadline=deadline, backups=(RUNS,)))
    assert (early.is_ready, late.is_ready) == (True, False)
    assert late.reason == "Waiting"
    assert late.message.endswith(
        "until EtcdBackup s-20261122-1200 has ended: if it makes no progress, delete it"
    )
    skipped = planned(state("22 14:00:31", since="22 13:00", deadline=30, backups=(RUNS,)))
    assert (skipped.is_ready, skipped.reason) == (False, "BackingUp")
    goes = replace(RUNS, is_deleting=True)
    assert planned(state("22 14:00", deadline=deadline, backups=(goes,))).is_ready
    unknown = replace(RUNS, due=None)
    assert planned(state("22 14:00", deadline=deadline, backups=(unknown,))).is_ready


def test_nothing_is_done_for_a_schedule_that_is_being_deleted() -> None:
    assert plan(state("22 16:30", is_deleting=True, backups=(taken("1 01:00"),) * 5)) is None


@pytest.mark.parametrize(
    ("given", "message", "warning"),
    [
        (state(), f"the next backup is due at {ONE}", None),
        (
            state("22 13:00"),
            "EtcdBackup s-20261122-1300 has not ended; the next backup is due at 2026-11-22T14:00:00Z",
            None,
        ),
        (
            state("22 16:30"),
            "EtcdBackup s-20261122-1600 has not ended; the next backup is due at 2026-11-22T17:00:00Z",
            (
                "BackupsMissed",
                f"the backups due from {ONE} to {FOUR} were missed: only the latest of them is taken now",
            ),
        ),
        (
            state("22 13:10", backups=(RUNS,)),
            "the backup due at 2026-11-22T13:00:00Z waits until EtcdBackup s-20261122-1200 has ended",
            None,
        ),
        (
            state("22 13:10", deadline=30),
            f"the next backup is due at {TWO}",
            (
                "BackupSkipped",
                f"skipped the backup due at {ONE}: no backup was started {WITHIN}",
            ),
        ),
        (
            state("22 14:10", deadline=30, backups=(RUNS,)),
            "EtcdBackup s-20261122-1200 has not ended; the next backup is due at 2026-11-22T15:00:00Z",
            (
                "BackupSkipped",
                f"skipped the backups due from {ONE} to {TWO}: EtcdBackup {RUNS.name} had not ended {WITHIN}",
            ),
        ),
        (state(is_suspended=True), "no backup is started while spec.suspend is true", None),
        (state(times=None, problem="spec.schedule: no"), "spec.schedule: no", None),
    ],
)
def test_a_plan_describes_what_happens(
    given: ScheduleState, message: str, warning: tuple[str, str] | None
) -> None:
    made = planned(given)
    assert (made.message, made.warning) == (message, warning)
