"""States of EtcdBackupSchedules for tests; times are given as `DAY HH:MM[:SS]` of November 2026, in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Any

from etcd_operator.api.backup_schedules import SCHEDULED_ANNOTATION
from etcd_operator.api.backups import BackupStatus, EtcdBackup, Verification
from etcd_operator.api.meta import Condition, ObjectMeta
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import cron
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import SchedulePlan, plan
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState
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


def taken(due: str, phase: str = "Completed", took: float = 0.0, **facts: Any) -> EtcdBackup:
    """The EtcdBackup of a time, created then, and ended in the same minute.

    facts: its status, or `created`, `is_deleting`, `is_verifying`, `verdict`; `known_for`, the time that it
    is annotated with, as text.
    """
    moment, name = at(due), f"s-{at(due):%Y%m%d-%H%M}"
    is_final = phase in ("Completed", "Failed")
    reason = {"Completed": "Stored", "Failed": "BucketMissing"}.get(phase, "Running")
    complete = Condition(type="Complete", status="Unknown", reason=reason, message=f"what came of {name}")
    verdict, is_verifying = facts.pop("verdict", None), facts.pop("is_verifying", False)
    metadata = ObjectMeta(
        name=name,
        uid=f"uid-{name}",
        creation_timestamp=facts.pop("created", timestamp(moment)),
        deletion_timestamp=timestamp(moment) if facts.pop("is_deleting", False) else None,
        annotations={SCHEDULED_ANNOTATION: facts.pop("known_for", timestamp(moment))},
    )
    status = BackupStatus(
        phase=phase,
        url=f"s3://b/{name}" if phase == "Completed" else "",
        start_time=timestamp(moment - timedelta(seconds=took)),
        completion_time=timestamp(moment) if is_final else "",
        conditions=(complete, verdict) if verdict is not None else (complete,),
        verification=Verification(level="Hash") if is_verifying else None,
        **facts,
    )
    return EtcdBackup(metadata=metadata, status=status)


def planned(given: ScheduleState) -> SchedulePlan:
    """The plan of a schedule that is not being deleted."""
    made = plan(given)
    assert made is not None
    return made
