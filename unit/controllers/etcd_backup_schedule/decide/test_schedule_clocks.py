"""EtcdBackupSchedules under clocks that are set back, or were far ahead."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from etcd_operator.controllers.etcd_backup_schedule.decide.cron import cron
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import AHEAD, LONGEST_SLEEP
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState
from unit.controllers.etcd_backup_schedule.decide.schedules import HOURLY, at, planned, state


def run(clock: list[datetime], since: datetime) -> list[datetime]:
    """The times for which backups are started, when the clock shows these moments one after the other."""
    started: list[datetime] = []
    for now in clock:
        made = planned(_at(now, since))
        if made.start is not None:
            started.append(made.start)
        since = made.start or made.since or since
    return started


def _at(now: datetime, since: datetime) -> ScheduleState:
    return replace(state(times=cron("*/10 * * * *", "")), now=now, since=since)


def minutes(first: str, count: int) -> list[datetime]:
    return [at(first) + timedelta(minutes=each) for each in range(count)]


def test_a_clock_that_is_set_back_an_hour_starts_nothing_twice() -> None:
    started = run([*minutes("22 12:01", 60), *minutes("22 12:01", 120)], at("22 12:00"))
    assert started == [at("22 12:10") + timedelta(minutes=10 * each) for each in range(12)]


@pytest.mark.parametrize("days", [1, 400])
def test_a_clock_that_was_far_ahead_blocks_nothing(days: int) -> None:
    ahead = at("22 12:05") + timedelta(days=days)
    started = run([*minutes("22 12:01", 4), ahead, *minutes("22 12:05", 16)], at("22 12:00"))
    assert started == [ahead - timedelta(minutes=5), at("22 12:10"), at("22 12:20")]


def test_the_longest_wait_after_a_clock_was_set_back() -> None:
    """It is not longer than what is believed."""
    made = planned(state("22 10:00"))
    assert made.following is not None
    assert made.following - at("22 10:00") <= AHEAD + timedelta(hours=1)
    assert made.requeue_after == LONGEST_SLEEP


def test_a_pass_too_early_sleeps_again() -> None:
    now = at("22 12:59:59").replace(microsecond=999_999)
    made = planned(replace(state(times=cron(HOURLY, "")), now=now))
    assert (made.start, made.requeue_after) == (None, 0.01)
