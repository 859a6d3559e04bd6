"""What metrics show of regular backups."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.backup_schedules import LastBackup, ScheduleStatus
from etcd_operator.api.coreos_backup import ClusterBackupStatus
from etcd_operator.api.meta import Condition
from etcd_operator.core.backup_tool import metrics as tool
from etcd_operator.core.backup_tool.health import ToolFacts
from etcd_operator.core.backup_tool.report import ToolReport
from etcd_operator.core.backups.schedules.health import Verdict
from etcd_operator.core.backups.schedules.metrics import ScheduleMemory, remembered, schedule_metrics
from etcd_operator.object_metrics import BackupMetrics
from etcd_operator.timestamps import timestamp
from unit.core.schedules import at, state, taken

NONE = ScheduleStatus()
HEALTHY = Verdict(status="True", reason="BackedUp")


def with_last(name: str, phase: str = "Failed", success: str = "") -> ScheduleStatus:
    time = timestamp(at(success)) if success else ""
    return ScheduleStatus(last_backup=LastBackup(name=name, phase=phase), last_successful_time=time)


def test_each_failed_backup_is_counted_once() -> None:
    one, two = with_last("s-1"), with_last("s-2")
    kept = remembered(None, "uid", state(), NONE, NONE)
    assert kept.failures == 0
    for previous, wanted, count in (
        (NONE, with_last("s-1", "BackingUp"), 0),
        (with_last("s-1", "BackingUp"), one, 1),
        (with_last("s-1", "BackingUp"), one, 1),  # the reply to the write was lost
        (one, one, 1),
        (one, with_last("s-2", "BackingUp"), 1),
        (with_last("s-2", "BackingUp"), two, 2),
        (two, with_last("s-3", "Completed"), 2),
    ):
        kept = remembered(kept, "uid", state(), previous, wanted)
        assert kept.failures == count, wanted


def test_what_failed_before_the_operator_was_started_is_not_counted_again() -> None:
    one = with_last("s-1")
    assert remembered(None, "uid", state(), one, one).failures == 0
    assert remembered(None, "uid", state(), with_last("s-1", "BackingUp"), one).failures == 1


def test_a_schedule_of_the_same_name_counts_for_itself() -> None:
    kept = ScheduleMemory(uid="old", failures=3, size=7)
    assert remembered(kept, "new", state(), NONE, NONE) == ScheduleMemory(uid="new")


def test_size_and_duration_are_those_of_the_last_success_and_outlive_its_object() -> None:
    backup = taken("22 12:00", size=20512, took=9.0)
    done = with_last(backup.name, "Completed", success="22 12:00")
    older = taken("22 11:00", size=1, took=1.0)
    kept = remembered(None, "uid", state(backups=(older, backup)), NONE, done)
    assert (kept.size, kept.took) == (20512, 9.0)
    kept = remembered(kept, "uid", state(), done, done)
    assert (kept.size, kept.took) == (20512, 9.0)
    later = with_last("s-later", "Completed", success="22 13:00")
    kept = remembered(kept, "uid", state(), done, later)
    assert (kept.size, kept.took) == (None, None), "of a backup that was not seen nothing is known"
    unknown = taken("22 13:00", size=0)
    assert remembered(kept, "uid", state(backups=(unknown,)), done, later).size is None


def test_the_figures_of_a_schedule() -> None:
    kept = ScheduleMemory(uid="uid", failures=2, took=9.0, size=20512)
    status = ScheduleStatus(
        last_successful_time="2026-11-22T12:00:09Z", last_verified_time="2026-11-21T12:00:09Z"
    )
    assert schedule_metrics(kept, "c", state(), status, HEALTHY, is_verified=True) == BackupMetrics(
        cluster="c",
        last_success=at("22 12:00:09").timestamp(),
        last_verified=at("21 12:00:09").timestamp(),
        took=9.0,
        size=20512,
        failures=2,
        is_healthy=True,
    )
    pending = Verdict(status="Unknown", reason="FirstBackupPending")
    nothing = BackupMetrics(cluster="", failures=0)
    assert (
        schedule_metrics(ScheduleMemory(uid="uid"), "", state(), NONE, pending, is_verified=False) == nothing
    )
    never = replace(nothing, last_verified=0.0)
    assert schedule_metrics(ScheduleMemory(uid="uid"), "", state(), NONE, pending, is_verified=True) == never


STORED = ClusterBackupStatus(time="2026-11-22T12:00:00Z", name="n", revision=7, size=20512, took=0.4)


@pytest.mark.parametrize(
    ("sight", "stored", "status", "expected"),
    [
        (
            ToolFacts(report=ToolReport(failures=3), since_success=60.0),
            STORED,
            "True",
            BackupMetrics(
                cluster="c",
                last_success=at("22 12:29").timestamp(),
                took=0.4,
                size=20512,
                failures=3,
                is_healthy=True,
            ),
        ),
        (ToolFacts(), None, "Unknown", BackupMetrics(cluster="c")),
        (ToolFacts(), ClusterBackupStatus(), "False", BackupMetrics(cluster="c", is_healthy=False)),
        (
            ToolFacts(),
            msgspec.structs.replace(STORED, took=0.0),
            "False",
            BackupMetrics(cluster="c", size=20512, is_healthy=False),
        ),
    ],
)
def test_the_figures_of_a_cluster(
    sight: ToolFacts, stored: ClusterBackupStatus | None, status: str, expected: BackupMetrics
) -> None:
    condition = Condition(type="BackupHealthy", status=status, reason="R")  # type: ignore[arg-type]
    assert tool.tool_metrics("c", sight, stored, condition, at("22 12:30")) == expected
