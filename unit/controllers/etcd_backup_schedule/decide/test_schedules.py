"""What is done for one EtcdBackupSchedule: every decision as a table, and which EtcdBackups are kept."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

import msgspec
import pytest

from etcd_operator.api.backups import EtcdBackup
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import plan
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import PruneAct, PruneState
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import is_of_schedule
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState, due_of
from etcd_operator.decoding import from_json
from etcd_operator.formats import timestamp
from unit.controllers.etcd_backup_schedule.decide.schedules import at, planned, state, taken

RUNS = taken("22 12:00", "BackingUp")
PREVIOUS = "EtcdBackup s-20261122-1200"
ONE, TWO, FOUR = (f"2026-11-22T{hour}:00:00Z" for hour in (13, 14, 16))
WITHIN = "within spec.startingDeadlineSeconds"


class Due(NamedTuple):
    """What a plan has to be; times as for `at`."""

    reason: str
    start: str = ""
    since: str = "22 12:00"
    following: str = "22 13:00"
    sleep: float | None = 60.0


PLANS: dict[str, tuple[ScheduleState, Due]] = {
    "nothing is due": (state(), Due("Scheduled")),
    "it is due in a moment": (state("22 12:59:58"), Due("Scheduled", sleep=2.0)),
    "it is due now": (state("22 13:00"), Due("BackingUp", start="22 13:00", following="22 14:00")),
    "the latest is made up for": (
        state("22 16:30"),
        Due("BackingUp", start="22 16:00", following="22 17:00"),
    ),
    "the next is near": (
        state("22 13:59:59"),
        Due("BackingUp", start="22 13:00", following="22 14:00", sleep=1.0),
    ),
    "one has not ended": (state(backups=(RUNS,)), Due("BackingUp")),
    "never two at once": (state("22 13:10", backups=(RUNS,)), Due("Waiting")),
    "nor later": (state("22 13:59:50", backups=(RUNS,)), Due("Waiting", sleep=10.0)),
    "one that was not accepted yet counts": (
        state("22 13:00", backups=(taken("22 12:00", ""),)),
        Due("Waiting"),
    ),
    "those that have ended do not": (
        state("22 13:10", backups=(taken("22 12:00"), taken("22 11:00", "Failed"))),
        Due("BackingUp", start="22 13:00", following="22 14:00"),
    ),
    "in time": (state("22 13:00:30", deadline=30), Due("BackingUp", start="22 13:00", following="22 14:00")),
    "too late": (state("22 13:00:31", deadline=30), Due("Scheduled", since="22 13:00", following="22 14:00")),
    "the latest is in time": (
        state("22 15:00:10", deadline=30),
        Due("BackingUp", start="22 15:00", following="22 16:00"),
    ),
    "it waits until its deadline": (
        state("22 13:00:10", deadline=30, backups=(RUNS,)),
        Due("Waiting", sleep=20.0),
    ),
    "and is skipped then": (
        state("22 13:00:31", deadline=30, backups=(RUNS,)),
        Due("BackingUp", since="22 13:00", following="22 14:00"),
    ),
    "suspended": (state("22 16:30", is_suspended=True), Due("Suspended", following="", sleep=None)),
    "invalid": (
        state("22 16:30", times=None, problem="spec.schedule: no"),
        Due("InvalidSpec", since="", following="", sleep=None),
    ),
    "an edit makes up for nothing": (
        state("22 16:30", known="30 3 * * * (UTC)"),
        Due("Scheduled", since="22 16:30", following="22 17:00"),
    ),
    "nor does one that makes it valid": (
        state("22 16:30", since="", known="", created=at("22 12:10")),
        Due("Scheduled", since="22 16:30", following="22 17:00"),
    ),
    "times since its creation count": (
        state("22 16:30", since="", known=None, created=at("22 12:10")),
        Due("BackingUp", start="22 16:00", since="22 12:10", following="22 17:00"),
    ),
    "the time of its creation does not": (
        state("22 12:00:30", since="", known=None, created=at("22 12:00")),
        Due("Scheduled"),
    ),
    "the clock of the API server is ahead": (
        state("22 11:59:30", since="", known=None, created=at("22 12:00:30")),
        Due("Scheduled", since="22 12:00:30"),
    ),
    "the clock was set back an hour": (state("22 11:00"), Due("Scheduled")),
    "or two": (state("22 10:00"), Due("Scheduled")),
    "the clock was far ahead": (
        state("22 09:59:59"),
        Due("Scheduled", since="22 09:59:59", following="22 10:00", sleep=1.0),
    ),
    "it was created, but its status was not written": (
        state("22 13:00:30", backups=(taken("22 13:00", "BackingUp"),)),
        Due("BackingUp", since="22 13:00", following="22 14:00"),
    ),
    "the same, and the next is due": (
        state("22 14:10", backups=(taken("22 13:00"),)),
        Due("BackingUp", start="22 14:00", since="22 13:00", following="22 15:00"),
    ),
    "times in the future prove nothing": (
        state("22 13:10", backups=(taken("22 18:00"), taken("22 13:00", known_for=""))),
        Due("BackingUp", start="22 13:00", following="22 14:00"),
    ),
}


@pytest.mark.parametrize(("given", "due"), PLANS.values(), ids=PLANS)
def test_a_plan(given: ScheduleState, due: Due) -> None:
    made = planned(given)
    assert made.reason == due.reason
    found = made.start, made.since, made.following
    assert found == tuple(at(time) if time else None for time in (due.start, due.since, due.following))
    assert made.requeue_after == due.sleep
    assert made.is_ready is (due.reason not in ("Suspended", "InvalidSpec"))


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
    goes = taken("22 12:00", "BackingUp", is_deleting=True)
    assert planned(state("22 14:00", deadline=deadline, backups=(goes,))).is_ready
    unknown = taken("22 12:00", "BackingUp", known_for="")
    assert planned(state("22 14:00", deadline=deadline, backups=(unknown,))).is_ready


@pytest.mark.parametrize("forged", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"])
def test_a_time_that_no_schedule_gave_ends_no_pass(forged: str) -> None:
    """Anybody who may edit EtcdBackups may set it; the pass of every schedule has to go on."""
    backup = taken("22 12:00", "BackingUp", known_for=forged)
    assert planned(state("22 14:00", backups=(backup,))).is_ready
    assert planned(state("22 14:00", backups=(backup, RUNS))).reason == "Waiting"


@pytest.mark.parametrize(
    ("known_for", "is_its"),
    [("2026-11-22T12:00:00Z", True), ("2026-11-22T12:01:00Z", False), ("0001-01-01T00:00:00+14:00", False)],
)
def test_a_backup_of_a_schedule_is_named_after_its_time(known_for: str, is_its: bool) -> None:
    assert is_of_schedule(taken("22 12:00", known_for=known_for), "s") is is_its


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
                f"skipped the backups due from {ONE} to {TWO}: {PREVIOUS} had not ended {WITHIN}",
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


@pytest.mark.parametrize(
    ("successful", "failed", "expected"),
    [
        (3, 1, ["11 01:00", "8 01:00"]),
        (0, 0, ["11 01:00", "13 01:00", "14 01:00", "15 01:00", "8 01:00", "12 01:00"]),
        (1, 9, ["11 01:00", "13 01:00", "14 01:00"]),
        (9, 9, []),
    ],
)
def test_only_the_last_that_ended_are_kept(successful: int, failed: int, expected: list[str]) -> None:
    backups = (
        taken("15 01:00"),
        taken("14 01:00"),
        taken("13 01:00"),
        taken("12 01:00", "Failed"),
        taken("11 01:00"),
        taken("10 01:00", is_deleting=True),
        taken("9 01:00", ""),
        taken("8 01:00", "Failed"),
        taken("7 01:00", "BackingUp"),
    )
    made = planned(state(backups=backups, successful_kept=successful, failed_kept=failed))
    assert [due_of(backup) for backup in made.surplus] == [at(each) for each in expected]


def test_backups_under_an_alarm_corrupt_displace_no_others() -> None:
    good = tuple(taken(f"20 0{hour}:00") for hour in range(4))
    doubtful = tuple(taken(f"21 0{hour}:00", corrupt_alarm=True) for hour in range(4))
    retention = PruneState(retention="maxCount 3", newest="s3://b/one")
    made = planned(state(backups=good + doubtful, successful_kept=3, prune=retention))
    assert made.surplus == (good[0], doubtful[0])
    assert (made.prune.act, made.prune.reason) == (PruneAct.NOTHING, "DataCorrupt")
    made = planned(state(backups=(*good, *doubtful, taken("21 09:00")), successful_kept=9, prune=retention))
    assert made.prune.act is PruneAct.CREATE


def test_the_oldest_is_the_one_that_was_created_first() -> None:
    """Not the one with the earliest time of the schedule: the operator's clock may have been wrong."""
    mistaken = taken("29 01:00", created=timestamp(at("20 01:00")))
    made = planned(state(backups=(taken("21 01:00"), taken("22 01:00"), mistaken), successful_kept=2))
    assert made.surplus == (mistaken,)


DUE = datetime(2026, 11, 22, 3, 30, tzinfo=UTC)


def stored(**fields: Any) -> EtcdBackup:
    metadata = {"name": "s-1", "uid": "u", **fields.pop("metadata", {})}
    return from_json(msgspec.json.encode({"metadata": metadata, **fields}), EtcdBackup)


@pytest.mark.parametrize(
    ("annotation", "due"),
    [
        ("2026-11-22T03:30:00Z", DUE),
        ("2026-11-22T04:30:00+01:00", DUE.astimezone(timezone(timedelta(hours=1)))),
        ("2026-11-22T03:30:00", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_the_time_of_an_annotation_that_anybody_may_have_changed(
    annotation: str, due: datetime | None
) -> None:
    annotations = {"etcd.improbable.io/scheduled-time": annotation} if annotation else {}
    assert due_of(stored(metadata={"annotations": annotations})) == due
