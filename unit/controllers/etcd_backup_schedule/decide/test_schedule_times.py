"""When a schedule is due, also where clocks change, and what was missed."""

import configparser
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cronsim import CronSim

from etcd_operator.controllers.etcd_backup_schedule.decide import cron as module
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import Cron, cron
from etcd_operator.errors import InvalidSpec
from unit.api.contract.schedule_cases import SCHEDULES, TIME_ZONES, VALID_SCHEDULES

BERLIN, HAVANA, LORD_HOWE = "Europe/Berlin", "America/Havana", "Australia/Lord_Howe"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("30 3 * * *", "", "2026-11-22T03:29:59", ["2026-11-22T03:30", "2026-11-23T03:30"]),
        ("30 3 * * *", "", "2026-11-22T03:30:00", ["2026-11-23T03:30"]),
        ("30 3 * * *", "", "2026-11-22T03:30:01", ["2026-11-23T03:30"]),
        ("*/20 * * * *", "", "2026-12-31T23:39", ["2026-12-31T23:40", "2027-01-01T00:00"]),
        ("@hourly", "", "2026-11-22T03:30", ["2026-11-22T04:00", "2026-11-22T05:00"]),
        (" @daily ", "", "2026-11-22T03:30", ["2026-11-23T00:00"]),
        ("@midnight", BERLIN, "2026-11-22T03:30", ["2026-11-22T23:00"]),
        ("@weekly", "", "2026-11-22T00:00", ["2026-11-29T00:00"]),
        ("@monthly", "", "2026-11-22T00:00", ["2026-12-01T00:00"]),
        ("@yearly", "", "2026-11-22T00:00", ["2027-01-01T00:00"]),
        ("@annually", "", "2026-11-22T00:00", ["2027-01-01T00:00"]),
        ("0 0 L * *", "", "2026-02-01T00:00", ["2026-02-28T00:00", "2026-03-31T00:00"]),
        ("0 0 LW * *", "", "2026-10-01T00:00", ["2026-10-30T00:00", "2026-11-30T00:00"]),
        ("0 0 29 2 *", "", "2026-01-01T00:00", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        # Both days are restricted: one of them is enough. One begins with a star: both are required.
        ("0 0 13 * 5", "", "2026-11-01T00:00", ["2026-11-06T00:00", "2026-11-13T00:00", "2026-11-20T00:00"]),
        ("0 0 */2 * 1", "", "2026-11-01T00:00", ["2026-11-09T00:00", "2026-11-23T00:00"]),
        ("0 3 * * SUN#1", "", "2026-11-02T00:00", ["2026-12-06T03:00"]),
        ("0 0 * * *", "Asia/Kolkata", "2026-11-22T00:00", ["2026-11-22T18:30"]),
        ("30 3 * * *", BERLIN, "2026-07-01T00:00", ["2026-07-01T01:30"]),
        ("30 3 * * *", BERLIN, "2026-11-22T00:00", ["2026-11-22T02:30"]),
        # 2026-03-29, 02:00 to 03:00 does not exist in Berlin.
        ("30 2 * * *", BERLIN, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("0,30 2 * * *", BERLIN, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:00"]),
        ("30 2,3 * * *", BERLIN, "2026-03-29T00:00", ["2026-03-29T01:00", "2026-03-29T01:30"]),
        ("0 3 * * *", BERLIN, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T01:00"]),
        ("30 * * * *", BERLIN, "2026-03-29T00:00", ["2026-03-29T00:30", "2026-03-29T01:30"]),
        ("*/30 2 * * *", BERLIN, "2026-03-29T00:00", ["2026-03-30T00:00", "2026-03-30T00:30"]),
        # 2026-10-25, 02:00 to 03:00 comes twice in Berlin.
        ("30 2 * * *", BERLIN, "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("30 2 * * *", BERLIN, "2026-10-25T00:30", ["2026-10-26T01:30"]),
        ("30 2 * * *", BERLIN, "2026-10-25T01:15", ["2026-10-26T01:30"]),
        ("0,30 2,3 * * *", BERLIN, "2026-10-25T01:15", ["2026-10-25T02:00", "2026-10-25T02:30"]),
        ("30 * * * *", BERLIN, "2026-10-25T00:00", ["2026-10-25T00:30", "2026-10-25T01:30"]),
        (
            "*/30 2 * * *",
            BERLIN,
            "2026-10-24T23:59",
            ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"],
        ),
        # Half an hour is repeated on 2026-04-05; midnight does not exist on 2026-03-08.
        ("45 1 * * *", LORD_HOWE, "2026-04-04T00:00", ["2026-04-04T14:45", "2026-04-05T15:15"]),
        ("0 0 * * *", HAVANA, "2026-03-07T12:00", ["2026-03-08T05:00", "2026-03-09T04:00"]),
    ],
)
def test_the_next_times(schedule: str, zone: str, after: str, expected: list[str]) -> None:
    times, moment, found = cron(schedule, zone), utc(after), []
    for _ in expected:
        moment = times.next_after(moment)
        found.append(moment)
    assert found == [utc(each) for each in expected]
    assert all(each.tzinfo is UTC for each in found)


def every_time(times: Cron, after: datetime, until: datetime) -> Iterator[datetime]:
    while (after := times.next_after(after)) <= until:
        yield after


@pytest.mark.parametrize(
    ("schedule", "zone"),
    [
        ("*/7 * * * *", ""),
        ("0 3 * * *", BERLIN),
        ("30 2 * * *", BERLIN),
        ("*/30 2 * * *", BERLIN),
        ("15 1,2 * * *", LORD_HOWE),
        ("0 0 * * *", HAVANA),
    ],
)
@pytest.mark.parametrize("day", ["2026-03-07", "2026-03-28", "2026-04-04", "2026-10-24", "2026-11-22"])
def test_the_latest_time_is_the_last_of_all(schedule: str, zone: str, day: str) -> None:
    times, after = cron(schedule, zone), utc(f"{day}T00:00")
    for hours in (0.1, 1, 13, 24, 26, 49):
        until = after + timedelta(hours=hours)
        expected = list(every_time(times, after, until))
        assert times.latest(after, until) == (expected[-1] if expected else None)
        assert expected == sorted(set(expected))


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ("2026-11-22T03:59:59", None),
        ("2026-11-22T04:00:00", "2026-11-22T04:00"),
        ("2026-11-22T04:00:01", "2026-11-22T04:00"),
        ("2026-11-22T05:00:00", "2026-11-22T05:00"),
        ("2026-11-22T00:00:00", None),
    ],
)
def test_a_time_has_come_when_the_clock_shows_it(until: str, expected: str | None) -> None:
    found = cron("@hourly", "").latest(utc("2026-11-22T03:00"), utc(until))
    assert found == (utc(expected) if expected else None)


def test_a_million_missed_times_do_not_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    class Counting(CronSim):
        def __next__(self) -> datetime:
            nonlocal made
            made += 1
            return super().__next__()

    monkeypatch.setattr(module, "CronSim", Counting)
    times = cron("* * * * *", "")
    assert times.latest(utc("2016-01-01T00:00"), utc("2026-01-01T12:34:56")) == utc("2026-01-01T12:34")
    assert made < 60


@pytest.mark.parametrize("schedule", VALID_SCHEDULES)
def test_a_schedule_is_accepted(schedule: str) -> None:
    assert cron(schedule, "").next_after(utc("2026-11-22T00:00")) > utc("2026-11-22T00:00")


@pytest.mark.parametrize(
    "schedule", [*SCHEDULES, "1-99 * * * *", "* * * * MON#6", "* * * * L", "\n* * * * *"]
)
def test_a_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(InvalidSpec, match="must be a cron schedule with five fields"):
        cron(schedule, "")


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("20-10 * * * *", "is not a valid schedule: Bad minute: check the order of ranges"),
        ("0 0 31 2 *", "is not a valid schedule: Bad day-of-month: "),
        ("0 0 * DEC-JAN *", "is not a valid schedule: Bad month: "),
        ("0 0 */31 * MON#3", "matches no date of the next 50 years"),
    ],
)
def test_a_schedule_that_never_comes_is_refused(schedule: str, why: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        cron(schedule, "")
    assert str(caught.value).startswith(f'spec.schedule: "{schedule}" {why}')
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "zone",
    [*(zone for zone in TIME_ZONES if zone), "Europe/Berln", "Europe", "leapseconds", "/etc/localtime"],
)
def test_a_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidSpec, match=r"spec\.timeZone: .* must be the name of a time zone, like"):
        cron("@daily", zone)


def test_time_zones_are_known_without_those_of_the_system() -> None:
    """The image may be built on one without them."""
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    try:
        times = cron("0 3 * * *", BERLIN)
    finally:
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()
    assert times.next_after(utc("2026-11-22T00:00")) == utc("2026-11-22T02:00")
    setup = configparser.ConfigParser()
    setup.read(Path(__file__).resolve().parents[4] / "setup.cfg")
    assert "tzdata" in setup["options"]["install_requires"]
