"""Whether backups of an EtcdBackupSchedule succeed: what the condition of its cluster and metrics report.

A last success is too old when two times of the schedule have come since, and the second one's backup has not
succeeded within `LONGEST_RUN`, or until the next time: so one failure alone changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from etcd_operator.api.backup_schedules import ScheduleStatus
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import Cron
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import AHEAD, INVALID, SUSPENDED
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState
from etcd_operator.controllers.etcd_backup_schedule.decide.status import READY, SUCCEEDED
from etcd_operator.controllers.shared.decide.backup_health import HEALTHY
from etcd_operator.controllers.shared.decide.job_report import LONGEST_MESSAGE
from etcd_operator.formats import moment, timestamp

LONGEST_RUN = timedelta(minutes=10)

PENDING = "FirstBackupPending"
BACKED_UP = "BackedUp"
OVERDUE = "Overdue"

_ORDER = ("False", "True", "Unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the backups of one schedule succeed, with a word for programs and a sentence for people."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""
    until: datetime | None = None  # when time alone makes it False; None if it does not


def judge(state: ScheduleState, status: ScheduleStatus) -> Verdict:
    """The verdict on a schedule, by the time of its last success. status: as stored, or about to be."""
    if state.times is None:
        return Verdict(status="False", reason=INVALID, message=state.problem)
    if state.is_suspended:
        return Verdict(status="Unknown", reason=SUSPENDED, message="spec.suspend is true")
    success = last_success(status, state.now)
    until = overdue_at(state.times, success or state.created)
    reason, message = _why(status)
    because = f": {message}" if message else ""
    if state.now >= until:
        since = f"since {timestamp(success)}" if success is not None else "yet"
        message = f"no backup has succeeded {since}{because}"
        return Verdict(status="False", reason=reason or OVERDUE, message=message)
    if success is None:
        message = f"the first backup has not been taken yet{because}"
        return Verdict(status="Unknown", reason=reason or PENDING, message=message, until=until)
    return Verdict(status="True", reason=BACKED_UP, until=until)


def last_success(status: ScheduleStatus, now: datetime) -> datetime | None:
    """When the last backup was completed; None if there is none, or its time is that of a clock far ahead."""
    found = moment(status.last_successful_time)
    return found if found is not None and found <= now + AHEAD else None


def overdue_at(times: Cron, since: datetime) -> datetime:
    """When a success at `since` becomes too old."""
    second = times.next_after(times.next_after(since))
    return min(second + LONGEST_RUN, times.next_after(second))


def condition(verdicts: Mapping[str, Verdict], *, generation: int) -> Condition | None:
    """The condition of a cluster, without its time, by the schedules that name it; None without any.

    It is false if the last success of any schedule is too old, otherwise true if any has a recent success.
    """
    if not verdicts:
        return None
    worst = min((verdict.status for verdict in verdicts.values()), key=_ORDER.index)
    chosen = {name: verdict for name, verdict in verdicts.items() if verdict.status == worst}
    # A schedule that will take its first backup shows more than one that is suspended.
    _, first = min(chosen.items(), key=lambda item: (item[1].until is None, item[0]))
    return Condition(
        type=HEALTHY,
        status=worst,
        reason=first.reason,
        message=_message(chosen)[:LONGEST_MESSAGE],
        observed_generation=generation,
    )


def _message(verdicts: Mapping[str, Verdict]) -> str:
    """Without times while all is well: each would be a write."""
    if all(verdict.status == "True" for verdict in verdicts.values()):
        return f"backups are taken by EtcdBackupSchedule {', '.join(sorted(verdicts))}"
    return "; ".join(f"EtcdBackupSchedule {name}: {each.message}" for name, each in sorted(verdicts.items()))


def _why(status: ScheduleStatus) -> tuple[str, str]:
    """Reason and message of what keeps backups from succeeding; empty if nothing is known."""
    for kind in (READY, SUCCEEDED):
        for each in status.conditions:
            if each.type == kind and each.status == "False" and each.reason != SUSPENDED:
                return each.reason, each.message
    return "", ""
