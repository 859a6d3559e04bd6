"""The status of an EtcdBackupSchedule, pass after pass."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.backup_schedules import LastBackup, ScheduleStatus
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import plan
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState
from etcd_operator.controllers.etcd_backup_schedule.decide.status import status
from unit.controllers.etcd_backup_schedule.decide.schedules import DESCRIBED, planned, state, taken

NONE = ScheduleStatus()
PROVEN = Condition(type="Verified", status="True", reason="Restored", message="restored")


def after(given: ScheduleState, previous: ScheduleStatus = NONE) -> ScheduleStatus:
    """The status that a pass over this state writes."""
    made = plan(given)
    assert made is not None
    return status(previous, given, made, generation=7)


def condition(found: ScheduleStatus, kind: str) -> Condition:
    (one,) = (each for each in found.conditions if each.type == kind)
    return one


def test_a_schedule_that_was_just_created() -> None:
    found = after(state("22 12:30", since="", known=None, created=state().now))
    assert found.observed_generation == 7
    assert (found.schedule, found.since) == (DESCRIBED, "2026-11-22T12:30:00Z")
    assert (found.last_schedule_time, found.next_schedule_time) == ("", "2026-11-22T13:00:00Z")
    assert (found.active, found.last_backup) == ((), None)
    ready, succeeded = condition(found, "Ready"), condition(found, "LastBackupSucceeded")
    assert (ready.status, ready.reason) == ("True", "Scheduled")
    assert (succeeded.status, succeeded.reason) == ("Unknown", "NoBackup")
    assert ready.last_transition_time == "2026-11-22T12:30:00Z"


def test_a_backup_from_its_start_to_its_end() -> None:
    started = after(state("22 13:00:02"))
    assert (started.since, started.last_schedule_time) == ("2026-11-22T13:00:00Z",) * 2
    assert started.next_schedule_time == "2026-11-22T14:00:00Z"
    assert started.active == ("s-20261122-1300",)
    assert started.last_backup == LastBackup(name="s-20261122-1300", phase="BackingUp")

    runs = state("22 13:00:03", since="22 13:00", backups=(taken("22 13:00", ""),))
    assert after(runs, started) == started, "its first passes write nothing"
    runs = state("22 13:00:09", since="22 13:00", backups=(taken("22 13:00", "BackingUp"),))
    assert after(runs, started) == started

    ended = after(state("22 13:00:40", since="22 13:00", backups=(taken("22 13:00"),)), started)
    assert ended.active == ()
    assert ended.last_backup == LastBackup(
        name="s-20261122-1300", phase="Completed", url="s3://b/s-20261122-1300"
    )
    assert ended.last_successful_time == "2026-11-22T13:00:00Z"
    assert ended.last_successful_url == "s3://b/s-20261122-1300"
    verdict = condition(ended, "LastBackupSucceeded")
    assert (verdict.status, verdict.reason) == ("True", "Stored")
    assert verdict.message == "EtcdBackup s-20261122-1300: what came of s-20261122-1300"
    assert condition(ended, "Ready").reason == "Scheduled"


def test_a_failure_is_reported_until_a_later_backup_has_ended() -> None:
    failed = after(state("22 12:30", backups=(taken("22 12:00", "Failed"),)), _started("22 11:59:59"))
    verdict = condition(failed, "LastBackupSucceeded")
    assert (verdict.status, verdict.reason) == ("False", "BucketMissing")
    assert failed.last_successful_time == ""
    runs = after(state("22 13:00"), failed)
    assert condition(runs, "LastBackupSucceeded") == verdict
    both = (taken("22 12:00", "Failed"), taken("22 13:00"))
    ended = after(state("22 13:10", since="22 13:00", backups=both), runs)
    assert condition(ended, "LastBackupSucceeded").status == "True"


def _started(since: str) -> ScheduleStatus:
    return after(state("22 12:00", since=since))


def test_what_ended_stays_known_when_its_object_is_deleted() -> None:
    ended = after(state("22 12:30", backups=(taken("22 12:00"),)), _started("22 11:59:59"))
    assert ended.last_successful_time
    assert after(state("22 12:31"), ended) == ended
    earlier = (taken("22 11:00"), taken("22 10:00", "Failed"))
    assert after(state("22 12:31", backups=earlier), ended) == ended


def test_a_cache_of_backups_that_is_behind_takes_no_end_back() -> None:
    """Its object may be deleted before the next pass, so what is written then would remain."""
    ended = after(state("22 12:30", backups=(taken("22 12:00"),)), _started("22 11:59:59"))
    behind = after(state("22 12:30:01", backups=(taken("22 12:00", "BackingUp"),)), ended)
    assert behind.last_backup == ended.last_backup
    assert after(state("22 12:31"), behind) == ended


def test_a_backup_whose_status_was_not_written_is_the_last_one() -> None:
    found = after(state("22 13:00:30", backups=(taken("22 13:00", "BackingUp"),)), _started("22 11:59:59"))
    assert found.since == found.last_schedule_time == "2026-11-22T13:00:00Z"
    assert found.last_backup == LastBackup(name="s-20261122-1300", phase="BackingUp")
    assert found.active == ("s-20261122-1300",)


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ("", "2026-11-22T12:00:00Z"),
        ("2026-11-22T11:00:00Z", "2026-11-22T12:00:00Z"),
        ("2026-11-22T12:20:00Z", "2026-11-22T12:20:00Z"),
        ("2027-01-01T00:00:00Z", "2026-11-22T12:00:00Z"),
    ],
    ids=["none", "an earlier one", "a later one that was deleted", "one of a clock that was ahead"],
)
def test_the_last_success(recorded: str, expected: str) -> None:
    previous = ScheduleStatus(last_successful_time=recorded)
    found = after(state("22 12:30", backups=(taken("22 11:00"), taken("22 12:00"))), previous)
    assert found.last_successful_time == expected
    assert after(state("22 12:30", backups=(taken("22 11:00"), taken("22 12:00"))), found) == found


def test_a_success_in_the_far_future_is_not_the_last_one() -> None:
    mistaken = taken("23 12:00", created="2026-11-22T11:30:00Z")
    assert after(state("22 12:30", backups=(mistaken,))).last_successful_time == ""
    found = after(state("22 12:30", backups=(mistaken, taken("22 12:00"))))
    assert found.last_successful_time == "2026-11-22T12:00:00Z"


def test_a_success_before_the_clock_was_set_back_stays_the_last_one() -> None:
    before = after(state("22 12:30", backups=(taken("22 11:00"), taken("22 12:00"))))
    found = after(state("22 11:30", backups=(taken("22 11:00"), taken("22 12:00"))), before)
    assert found.last_successful_time == before.last_successful_time == "2026-11-22T12:00:00Z"


def test_a_suspended_schedule_keeps_what_it_knew() -> None:
    before = after(state(), ScheduleStatus(last_schedule_time="2026-11-22T12:00:00Z"))
    found = after(state(is_suspended=True), before)
    assert found.next_schedule_time == ""
    assert (found.since, found.last_schedule_time) == (before.since, before.last_schedule_time)
    assert condition(found, "Ready").status == "False"


def test_an_invalid_spec_keeps_what_was_known_of_the_last_valid_one() -> None:
    before = after(state())
    invalid = replace(state("22 12:40"), times=None, described="", problem="spec.schedule: no")
    found = after(invalid, before)
    ready = condition(found, "Ready")
    assert (ready.status, ready.reason, ready.message) == ("False", "InvalidSpec", "spec.schedule: no")
    assert (found.schedule, found.since, found.next_schedule_time) == (before.schedule, before.since, "")


@pytest.mark.parametrize(
    "given",
    [
        state(),
        state("22 13:10", backups=(taken("22 12:00", "BackingUp"),)),
        state("22 16:10", is_suspended=True),
        state(backups=(taken("22 12:00"), taken("22 11:00", "Failed"))),
        replace(state(), times=None, described="", problem="spec.schedule: no"),
    ],
    ids=["scheduled", "waiting", "suspended", "with backups", "invalid"],
)
def test_a_later_pass_has_nothing_to_write(given: ScheduleState) -> None:
    first = after(given)
    later = replace(given, now=given.now.replace(minute=59))
    assert after(later, first) == first
    assert msgspec.convert(msgspec.to_builtins(first), ScheduleStatus) == first


def test_conditions_of_others_are_kept() -> None:
    theirs = Condition(type="Theirs", status="True", reason="Because")
    assert theirs in after(state(), ScheduleStatus(conditions=(theirs,))).conditions


def test_the_last_verified_backup_is_not_the_last_success() -> None:
    both = (taken("22 11:00", verdict=PROVEN), taken("22 12:00"))
    found = after(state("22 12:30", backups=both))
    assert (found.last_successful_time, found.last_verified_time) == (
        "2026-11-22T12:00:00Z",
        "2026-11-22T11:00:00Z",
    )
    assert found.last_verified_url == "s3://b/s-20261122-1100"
    assert after(state("22 12:31", backups=both[1:]), found) == found, "its object may be deleted"
    doubtful = (both[0], taken("22 12:00", verdict=PROVEN, corrupt_alarm=True))
    assert after(state("22 12:32", backups=doubtful), found).last_verified_url == "s3://b/s-20261122-1100"
    both = (both[0], taken("22 12:00", verdict=PROVEN))
    assert after(state("22 12:32", backups=both), found).last_verified_url == "s3://b/s-20261122-1200"


BROKEN = Condition(type="Verified", status="False", reason="Damaged", message="7 bytes are missing")
WAITS = Condition(type="Verified", status="Unknown", reason="Pending", message="waits")


def test_the_verdict_on_the_newest_backup_that_has_one() -> None:
    found = after(state("22 12:30", is_verified=True))
    assert condition(found, "LastBackupVerified").reason == "NoBackup"
    backups = (taken("22 10:00", verdict=PROVEN), taken("22 11:00", verdict=BROKEN))
    running = (*backups, taken("22 12:00", verdict=WAITS, is_verifying=True))
    found = after(state("22 12:30", backups=running, is_verified=True), found)
    verdict = condition(found, "LastBackupVerified")
    assert (verdict.status, verdict.reason) == ("False", "Damaged")
    assert verdict.message == "EtcdBackup s-20261122-1100: 7 bytes are missing"
    later = after(state("22 12:31", is_verified=True), found)
    assert condition(later, "LastBackupVerified") == verdict, "its object may be deleted"
    stopped = after(state("22 12:31", is_verified=False), found)
    assert [each.type for each in stopped.conditions] == ["Ready", "LastBackupSucceeded"]
    assert stopped.last_verified_url == "s3://b/s-20261122-1000", "it is still the last one that was verified"


def test_the_next_backup_waits_until_the_one_before_is_verified() -> None:
    verifying = taken("22 12:00", verdict=WAITS, is_verifying=True)
    waits = planned(state("22 13:00:01", backups=(verifying,)))
    assert (waits.reason, waits.start) == ("Waiting", None)
    assert planned(state("22 13:00:01", backups=(taken("22 12:00", verdict=WAITS),))).start
    assert planned(
        state("22 13:00:01", backups=(taken("22 12:00", verdict=WAITS, is_verifying=True, is_deleting=True),))
    ).start


def test_what_is_being_verified_is_not_deleted() -> None:
    verifying = taken("22 12:00", verdict=WAITS, is_verifying=True)
    assert planned(state("22 12:30", backups=(verifying,), successful_kept=0)).surplus == ()
    ended = taken("22 12:00", verdict=WAITS)
    assert planned(state("22 12:30", backups=(ended,), successful_kept=0)).surplus == (ended,)
