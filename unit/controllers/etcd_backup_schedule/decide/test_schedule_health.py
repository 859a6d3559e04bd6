"""Whether backups of a schedule succeed, and what the condition of its cluster reports."""

from collections.abc import Mapping
from typing import Any

import pytest

from etcd_operator.api.backup_schedules import ScheduleStatus
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import cron
from etcd_operator.controllers.etcd_backup_schedule.decide.health import Verdict, condition, judge, overdue_at
from etcd_operator.controllers.shared.decide.backup_health import change
from etcd_operator.formats import timestamp
from unit.controllers.etcd_backup_schedule.decide.schedules import at, state

TRUE = Verdict(status="True", reason="BackedUp", until=at("22 14:00"))
FALSE = Verdict(status="False", reason="BucketMissing", message="no backup has succeeded yet: no bucket")
PENDING = Verdict(status="Unknown", reason="FirstBackupPending", message="wait", until=at("22 14:00"))
SUSPENDED = Verdict(status="Unknown", reason="Suspended", message="spec.suspend is true")


def stored(success: str = "", conditions: Mapping[str, tuple[str, str, str]] = {}) -> ScheduleStatus:
    """A status with the time of its last success, and conditions: status, reason, message."""
    return ScheduleStatus(
        last_successful_time=timestamp(at(success)) if success else "",
        conditions=tuple(
            Condition(type=kind, status=value, reason=reason, message=message)  # type: ignore[arg-type]
            for kind, (value, reason, message) in conditions.items()
        ),
    )


FAILED = {"Ready": ("True", "Scheduled", ""), "LastBackupSucceeded": ("False", "BucketMissing", "no bucket")}


@pytest.mark.parametrize(
    ("schedule", "since", "expected"),
    [
        ("0 * * * *", "22 12:01", "22 14:10"),
        ("0 * * * *", "22 12:00", "22 14:10"),
        ("30 3 * * *", "20 03:31", "22 03:40"),
        ("*/5 * * * *", "22 12:01", "22 12:15"),
        ("* * * * *", "22 12:00:30", "22 12:03"),
        ("0 0 * * MON", "2 00:05", "16 00:10"),
    ],
)
def test_a_success_is_too_old_when_the_second_time_after_it_has_failed(
    schedule: str, since: str, expected: str
) -> None:
    assert overdue_at(cron(schedule, ""), at(since)) == at(expected)


@pytest.mark.parametrize(
    ("now", "status", "expected"),
    [
        ("22 14:09:59", stored("22 12:01"), ("True", "BackedUp", "")),
        ("22 14:09:59", stored("22 12:01", FAILED), ("True", "BackedUp", "")),
        (
            "22 14:10",
            stored("22 12:01", FAILED),
            ("False", "BucketMissing", "no backup has succeeded since 2026-11-22T12:01:00Z: no bucket"),
        ),
        (
            "22 14:10",
            stored("22 12:01"),
            ("False", "Overdue", "no backup has succeeded since 2026-11-22T12:01:00Z"),
        ),
        (
            "22 14:10",
            stored("22 12:01", {**FAILED, "Ready": ("False", "Waiting", "it hangs")}),
            ("False", "Waiting", "no backup has succeeded since 2026-11-22T12:01:00Z: it hangs"),
        ),
        (
            "22 14:10",
            stored("22 12:01", {"Ready": ("False", "Suspended", "no backup is started")}),
            ("False", "Overdue", "no backup has succeeded since 2026-11-22T12:01:00Z"),
        ),
        ("20 00:30", stored(), ("Unknown", "FirstBackupPending", "the first backup has not been taken yet")),
        (
            "20 02:00",
            stored("", FAILED),
            ("Unknown", "BucketMissing", "the first backup has not been taken yet: no bucket"),
        ),
        ("20 02:10", stored(), ("False", "Overdue", "no backup has succeeded yet")),
        ("22 12:00", stored("22 13:59"), ("True", "BackedUp", "")),
        ("22 12:00", stored("22 14:01"), ("False", "Overdue", "no backup has succeeded yet")),
    ],
)
def test_a_verdict(now: str, status: ScheduleStatus, expected: tuple[str, str, str]) -> None:
    found = judge(state(now, created=at("20 00:00")), status)
    assert (found.status, found.reason, found.message) == expected
    assert (found.until is None) is (found.status == "False")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"times": None, "problem": "spec.schedule: no"}, ("False", "InvalidSpec", "spec.schedule: no")),
        ({"is_suspended": True}, ("Unknown", "Suspended", "spec.suspend is true")),
    ],
)
def test_schedules_that_take_no_backups(facts: dict[str, Any], expected: tuple[str, str, str]) -> None:
    found = judge(state(**facts), stored("1 12:00"))
    assert (found.status, found.reason, found.message) == expected
    assert found.until is None


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({"b": TRUE, "a": TRUE}, ("True", "BackedUp", "backups are taken by EtcdBackupSchedule a, b")),
        (
            {"a": TRUE, "b": FALSE},
            ("False", "BucketMissing", f"EtcdBackupSchedule b: {FALSE.message}"),
        ),
        ({"a": PENDING, "b": TRUE}, ("True", "BackedUp", "backups are taken by EtcdBackupSchedule b")),
        (
            {"a": SUSPENDED, "b": PENDING},
            (
                "Unknown",
                "FirstBackupPending",
                "EtcdBackupSchedule a: spec.suspend is true; EtcdBackupSchedule b: wait",
            ),
        ),
        ({"a": SUSPENDED}, ("Unknown", "Suspended", "EtcdBackupSchedule a: spec.suspend is true")),
    ],
)
def test_the_condition_of_a_cluster(verdicts: dict[str, Verdict], expected: tuple[str, str, str]) -> None:
    found = condition(verdicts, generation=7)
    assert found is not None
    assert (found.status, found.reason, found.message) == expected
    assert (found.type, found.observed_generation) == ("BackupHealthy", 7)


def test_a_cluster_without_schedules_has_no_condition() -> None:
    assert condition({}, generation=7) is None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "False", "BackupUnhealthy"),
        ("Unknown", "False", "BackupUnhealthy"),
        ("False", "False", None),
        ("False", "True", "BackupHealthy"),
        ("Unknown", "True", None),
        ("True", "Unknown", None),
        ("False", "", None),
    ],
)
def test_events_report_when_backups_begin_to_fail_and_when_they_work_again(
    before: str, after: str, expected: str | None
) -> None:
    def of(status: str) -> tuple[Condition, ...]:
        found = Condition(type="BackupHealthy", status=status, reason="R", message="why")  # type: ignore[arg-type]
        return (found,) if status else ()

    assert change(of(before), of(after)) == (expected and (expected, "why"))
