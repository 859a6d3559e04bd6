"""What metrics show of regular backups."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.backup_schedules import ScheduleStatus
from etcd_operator.api.coreos_backup import ClusterBackupStatus
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.backup_tool.decide.health import ToolFacts, tool_metrics
from etcd_operator.controllers.etcd_backup_schedule.decide.health import Verdict
from etcd_operator.controllers.etcd_backup_schedule.decide.metrics import (
    ScheduleMemory,
    remembered,
    schedule_metrics,
)
from etcd_operator.formats import timestamp
from etcd_operator.object_metrics import BackupMetrics
from etcd_operator.pods.reports import ToolReport
from unit.controllers.etcd_backup_schedule.decide.schedules import at, state, taken

NONE = ScheduleStatus()
HEALTHY = Verdict(status="True", reason="BackedUp")


def with_success(completed: str) -> ScheduleStatus:
    return ScheduleStatus(last_successful_time=timestamp(at(completed)))


def test_each_failed_backup_is_counted_once() -> None:
    one, two, good = taken("22 10:00", "Failed"), taken("22 11:00", "Failed"), taken("22 12:00")
    kept = None
    for existing, ended, count in (
        ((), (), 0),
        ((one,), (one,), 1),
        ((one,), (one,), 1),  # the reply to the write was lost
        ((one,), (), 1),
        ((one,), (one,), 1),  # the cache of schedules is behind
        ((one, two), (two,), 2),
        ((two, good), (two, good), 2),
        ((two, good), (), 2),
    ):
        kept = remembered(kept, "uid", state(backups=existing), ended, NONE)
        assert kept.failures == count, (existing, ended)
    assert kept is not None
    assert kept.counted == {two.metadata.uid}, "those that were deleted are forgotten"


def test_several_that_failed_between_two_passes_are_all_counted() -> None:
    both = (taken("22 10:00", "Failed"), taken("22 11:00", "Failed"))
    assert remembered(None, "uid", state(backups=both), both, NONE).failures == 2


def test_a_schedule_of_the_same_name_counts_for_itself() -> None:
    kept = ScheduleMemory(uid="old", failures=3, counted=frozenset({"x"}), size=7)
    assert remembered(kept, "new", state(), (), NONE) == ScheduleMemory(uid="new")


def test_size_and_duration_are_those_of_the_last_success_and_outlive_its_object() -> None:
    backup = taken("22 12:00", size=20512, took=9.0)
    done = with_success("22 12:00")
    older = taken("22 11:00", size=1, took=1.0)
    kept = remembered(None, "uid", state(backups=(older, backup)), (), done)
    assert (kept.size, kept.took) == (20512, 9.0)
    kept = remembered(kept, "uid", state(), (), done)
    assert (kept.size, kept.took) == (20512, 9.0)
    later = with_success("22 13:00")
    kept = remembered(kept, "uid", state(), (), later)
    assert (kept.size, kept.took) == (None, None), "of a backup that was not seen nothing is known"
    unknown = taken("22 13:00", size=0)
    assert remembered(kept, "uid", state(backups=(unknown,)), (), later).size is None


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
    assert tool_metrics("c", sight, stored, condition, at("22 12:30")) == expected
