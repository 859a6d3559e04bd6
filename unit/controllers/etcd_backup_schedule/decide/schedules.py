"""States of EtcdBackupSchedules for tests; times are given as `DAY HH:MM[:SS]` of November 2026, in UTC."""

from datetime import UTC, datetime
from typing import Any

from etcd_operator.controllers.etcd_backup_schedule.decide.cron import cron
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import SchedulePlan, plan
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduledBackup, ScheduleState
from etcd_operator.formats import timestamp

HOURLY = "0 * * * *"
DESCRIBED = f"{HOURLY} (UTC)"


def at(text: str) -> datetime:
    """A moment: `22 12:00`."""
    day, _, time = text.partition(" ")
    hours, minutes, seconds = (*map(int, time.split(":")), 0)[:3]
    return datetime(2026, 11, int(day), hours, minutes, seconds, tzinfo=UTC)


def state(now: str = "22 12:30", since: str = "22 12:00", **facts: Any) -> ScheduleState:
    """An hourly schedule whose last backup was that of 12:00, unless `facts` set another one."""
    known = {
        "name": "s",
        "created": at("1 00:00"),
        "times": cron(HOURLY, ""),
        "described": DESCRIBED,
        "known": DESCRIBED,
        "since": at(since) if since else None,
    }
    return ScheduleState(now=at(now), **{**known, **facts})


def taken(due: str, phase: str = "Completed", **facts: Any) -> ScheduledBackup:
    """The EtcdBackup of a time, created then, and ended in the same minute."""
    moment = at(due)
    name = f"s-{moment:%Y%m%d-%H%M}"
    known = {
        "uid": f"uid-{name}",
        "created": timestamp(moment),
        "due": moment,
        "url": f"s3://b/{name}" if phase == "Completed" else "",
        "completed_at": timestamp(moment) if phase in ("Completed", "Failed") else "",
        "reason": {"Completed": "Stored", "Failed": "BucketMissing"}.get(phase, "Running"),
        "message": f"what came of {name}",
    }
    return ScheduledBackup(**{"name": name, "phase": phase, **known, **facts})


def planned(given: ScheduleState) -> SchedulePlan:
    """The plan of a schedule that is not being deleted."""
    made = plan(given)
    assert made is not None
    return made
