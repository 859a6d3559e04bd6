"""Which EtcdBackups of a schedule the next write of its status reports."""

from dataclasses import replace

import pytest

from etcd_operator.api.backup_schedules import LastBackup, ScheduleStatus
from etcd_operator.api.backups import EtcdBackup
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState
from etcd_operator.controllers.etcd_backup_schedule.decide.status import status, to_be_reported
from unit.controllers.etcd_backup_schedule.decide.schedules import planned, state, taken

PENDING = ScheduleStatus(last_backup=LastBackup(name="s-20261122-1200", phase="BackingUp"))
FINAL = ScheduleStatus(last_backup=LastBackup(name="s-20261122-1200", phase="Failed"))


def reported(given: ScheduleState, previous: ScheduleStatus = PENDING) -> list[str]:
    """The times of the EtcdBackups that a pass over this state reports."""
    ended = to_be_reported(previous, given, planned(given))
    return [each.metadata.name.removeprefix("s-20261122-") for each in ended]


def succeeded(found: ScheduleStatus) -> tuple[str, str]:
    (one,) = (each for each in found.conditions if each.type == "LastBackupSucceeded")
    return one.status, one.message.partition(":")[0].removeprefix("EtcdBackup s-20261122-")


REPORTED = {
    "it runs": ("22 12:30", (taken("22 12:00", "BackingUp"),), PENDING, []),
    "it has failed": ("22 12:30", (taken("22 12:00", "Failed"),), PENDING, ["1200"]),
    "it has failed and is being deleted": (
        "22 12:30",
        (taken("22 12:00", "Failed", is_deleting=True),),
        PENDING,
        ["1200"],
    ),
    "it is reported": ("22 12:30", (taken("22 12:00", "Failed"),), FINAL, []),
    "an earlier one is reported": (
        "22 12:30",
        (taken("22 11:00"), taken("22 12:00", "Failed")),
        PENDING,
        ["1200"],
    ),
    "it was deleted": ("22 12:30", (taken("22 11:00"),), PENDING, []),
    "the next one starts": ("22 13:00:05", (taken("22 12:00", "Failed"),), PENDING, ["1200"]),
    "it is reported, and the next one starts": ("22 13:00:05", (taken("22 12:00", "Failed"),), FINAL, []),
    "a later one, too, whose start is not in the status": (
        "22 13:30",
        (taken("22 13:00"), taken("22 12:00", "Failed")),
        PENDING,
        ["1200", "1300"],
    ),
    "a later one whose start is not in the status": (
        "22 13:30",
        (taken("22 13:00"), taken("22 12:00", "Failed")),
        FINAL,
        ["1300"],
    ),
    "a later one runs whose start is not in the status": (
        "22 13:30",
        (taken("22 13:00", "BackingUp"), taken("22 12:00")),
        PENDING,
        ["1200"],
    ),
    "two later ones": ("22 14:30", (taken("22 13:00"), taken("22 14:00", "Failed")), FINAL, ["1300", "1400"]),
    "two later ones, and the next one starts": (
        "22 15:00:05",
        (taken("22 13:00"), taken("22 14:00", "Failed")),
        FINAL,
        ["1300", "1400"],
    ),
    "a time that has not come": ("22 12:30", (taken("22 13:00"),), FINAL, []),
    "a time that cannot be read": ("22 13:30", (taken("22 13:00", known_for=""),), FINAL, []),
    "its time cannot be read": ("22 13:30", (taken("22 12:00", known_for=""),), PENDING, ["1200"]),
}


@pytest.mark.parametrize(("now", "backups", "previous", "expected"), REPORTED.values(), ids=REPORTED)
def test_what_is_reported(
    now: str, backups: tuple[EtcdBackup, ...], previous: ScheduleStatus, expected: list[str]
) -> None:
    given = state(now, backups=backups)
    assert reported(given, previous) == expected
    written = status(previous, given, planned(given), generation=7)
    again = replace(given, since=planned(given).start or planned(given).since, known=written.schedule)
    assert reported(again, written) == [], "it is reported once"
    if expected:
        assert succeeded(written)[1] == expected[-1]


def test_the_result_of_the_one_before_is_reported_while_the_next_one_runs() -> None:
    given = state("22 13:00:05", backups=(taken("22 12:00", "Failed"),))
    written = status(PENDING, given, planned(given), generation=7)
    assert written.last_backup == LastBackup(name="s-20261122-1300", phase="BackingUp")
    assert succeeded(written) == ("False", "1200")
    both = (taken("22 12:00", "Failed"), taken("22 13:00", "BackingUp"))
    runs = state("22 13:00:30", since="22 13:00", backups=both)
    assert status(written, runs, planned(runs), generation=7) == written
    assert reported(runs, written) == []


def test_an_edit_and_an_invalid_spec_lose_no_result() -> None:
    backups = (taken("22 12:00"), taken("22 13:00", "Failed"))
    edited = state("22 13:30", backups=backups, known="30 * * * * (UTC)")
    assert reported(edited) == ["1200", "1300"]
    invalid = replace(edited, times=None, problem="spec.schedule: no")
    assert reported(invalid) == ["1200"], "the others once the time up to which they are known is written"


def test_the_first_of_a_schedule_whose_status_was_never_written() -> None:
    given = state("22 13:30", since="", known=None, backups=(taken("22 13:00", "Failed"),))
    assert reported(given, ScheduleStatus()) == ["1300"]
