"""What to do for one EtcdBackupSchedule.

Times up to `since` are over. The latest one after it is due once the wall clock has reached it: each pass
reads that clock, and none relies on the time for which it slept.

`since` does not go back, so a clock that is set back by up to `AHEAD` causes no second backup for the same
time. If it is further ahead, the clock was wrong when it was written, and the schedule continues from now:
nothing waits for a date that was a mistake.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from etcd_operator.api.backups import COMPLETED, FAILED, EtcdBackup
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import Cron
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import UNCHANGED, PrunePlan, plan_prune
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import backup_name
from etcd_operator.controllers.etcd_backup_schedule.decide.state import (
    ScheduleState,
    due_of,
    in_order,
    is_active,
    is_verifying,
)
from etcd_operator.formats import timestamp

AHEAD = timedelta(hours=2)
"""By so much a clock may be set back without a second backup for the same time."""

LONGEST_SLEEP = 60.0
"""Seconds until the next pass at the latest: somebody may set the clock meanwhile."""

SHORTEST_SLEEP = 0.01

INVALID = "InvalidSpec"
SUSPENDED = "Suspended"
SCHEDULED = "Scheduled"
BACKING_UP = "BackingUp"
WAITING = "Waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePlan:
    """What the condition Ready reports, and what to do."""

    is_ready: bool
    reason: str
    message: str
    since: datetime | None = None  # times up to it are over; None: as before
    following: datetime | None = None  # the next time, if there is one
    recorded: datetime | None = None  # a time whose EtcdBackup exists, and is not yet in the status
    start: datetime | None = None  # a time whose EtcdBackup is to be created
    warning: tuple[str, str] | None = None  # reason and message of an Event
    surplus: tuple[EtcdBackup, ...] = ()  # to be deleted
    prune: PrunePlan = UNCHANGED  # what is done about what is stored
    requeue_after: float | None = None  # seconds until the next pass at the latest; None for an event


def plan(state: ScheduleState) -> SchedulePlan | None:
    """What to do for a schedule; None for one that is being deleted. Deterministic, without side effects."""
    if state.is_deleting:
        return None
    if state.times is None:
        return SchedulePlan(is_ready=False, reason=INVALID, message=state.problem)
    since = counted_from(state)
    found = recorded(state, since)
    since = found or since
    made = _at(state, state.times, since)
    return replace(
        made,
        since=made.since or since,
        recorded=found,
        surplus=surplus_objects(state),
        prune=plan_prune(
            replace(
                state.prune,
                is_backing_up=bool(state.active) or made.start is not None,
                doubtful=_doubtful(state),
            )
        ),
    )


def counted_from(state: ScheduleState) -> datetime:
    """Up to when times are over: those before the schedule was created or changed are not made up for."""
    since = state.since or state.created
    is_changed = state.known not in (None, state.described)
    return state.now if is_changed or since > state.now + AHEAD else since


def recorded(state: ScheduleState, since: datetime) -> datetime | None:
    """The last time after `since` whose EtcdBackup exists: the write of the status after it has failed."""
    created = map(due_of, state.backups)
    return max((due for due in created if due is not None and since < due <= state.now), default=None)


def surplus_objects(state: ScheduleState) -> tuple[EtcdBackup, ...]:
    """The EtcdBackups that have ended and are more than are kept, the oldest first.

    Those that were taken under an alarm CORRUPT displace no others, and are kept in the same number.
    """
    completed, failed = _ended(state, COMPLETED), _ended(state, FAILED)
    good = [each for each in completed if not each.status.corrupt_alarm]
    doubtful = [each for each in completed if each.status.corrupt_alarm]
    kept = state.successful_kept
    return (*_oldest(good, kept), *_oldest(doubtful, kept), *_oldest(failed, state.failed_kept))


def _ended(state: ScheduleState, phase: str) -> list[EtcdBackup]:
    """Those of a final phase, the oldest first; before all, those that do not count."""
    return [
        each
        for backups in (state.others, state.backups)
        for each in sorted(backups, key=in_order)
        # The Job of a verification would be deleted with its EtcdBackup.
        if each.status.phase == phase and not each.metadata.is_deleting and not is_verifying(each)
    ]


def _oldest(backups: list[EtcdBackup], but: int) -> list[EtcdBackup]:
    return backups[: max(0, len(backups) - but)]


def _doubtful(state: ScheduleState) -> str:
    """The newest EtcdBackup that is completed, if it was taken under an alarm CORRUPT; empty otherwise."""
    completed = [each for each in state.backups if each.status.phase == COMPLETED]
    newest = max(completed, key=in_order, default=None)
    return newest.metadata.name if newest is not None and newest.status.corrupt_alarm else ""


def _at(state: ScheduleState, times: Cron, since: datetime) -> SchedulePlan:
    if state.is_suspended:
        return SchedulePlan(
            is_ready=False, reason=SUSPENDED, message="no backup is started while spec.suspend is true"
        )
    first = times.next_after(since)
    latest = times.latest(since, state.now)
    if latest is None:
        return _idle(state, times, first)
    late = (state.now - latest).total_seconds()
    if state.deadline is not None and late > state.deadline:
        return _skip(state, times, first, latest)
    if state.active:
        return _wait(state, times, first, late)
    return _start(state, first, latest, times.next_after(latest))


def _idle(state: ScheduleState, times: Cron, following: datetime) -> SchedulePlan:
    pause = sleep((following - state.now).total_seconds())
    if state.active:
        return replace(_in_progress(state.active, following, pause), is_ready=not _is_held_up(state, times))
    return SchedulePlan(
        is_ready=True,
        reason=SCHEDULED,
        message=f"the next backup is due at {timestamp(following)}",
        following=following,
        requeue_after=pause,
    )


def _in_progress(active: tuple[str, ...], following: datetime, pause: float) -> SchedulePlan:
    return SchedulePlan(
        is_ready=True,
        reason=BACKING_UP,
        message=f"EtcdBackup {', '.join(active)} has not ended; the next backup is due at "
        f"{timestamp(following)}",
        following=following,
        requeue_after=pause,
    )


def _skip(state: ScheduleState, times: Cron, first: datetime, latest: datetime) -> SchedulePlan:
    active = ", ".join(state.active)
    because = f"EtcdBackup {active} had not ended" if active else "no backup was started"
    message = f"skipped {_dates(first, latest)}: {because} within spec.startingDeadlineSeconds"
    return replace(
        _idle(state, times, times.next_after(latest)), since=latest, warning=("BackupSkipped", message)
    )


def _wait(state: ScheduleState, times: Cron, first: datetime, late: float) -> SchedulePlan:
    active = ", ".join(state.active)
    left = [] if state.deadline is None else [state.deadline - late]
    left.append((times.next_after(state.now) - state.now).total_seconds())
    is_held_up = _is_held_up(state, times)
    remedy = ": if it makes no progress, delete it" if is_held_up else ""
    return SchedulePlan(
        is_ready=not is_held_up,
        reason=WAITING,
        message=f"the backup due at {timestamp(first)} waits until EtcdBackup {active} has ended{remedy}",
        following=first,
        requeue_after=sleep(min(left)),
    )


def _is_held_up(state: ScheduleState, times: Cron) -> bool:
    """Whether an EtcdBackup has not ended although two times have come since its own: it may hang."""
    known = map(due_of, filter(is_active, state.backups))
    # Anybody may have changed the annotation; at the ends of the calendar no next time can be computed.
    begun = [due for due in known if due is not None and state.created <= due <= state.now]
    return bool(begun) and times.next_after(times.next_after(min(begun))) <= state.now


def _start(state: ScheduleState, first: datetime, latest: datetime, following: datetime) -> SchedulePlan:
    pause = sleep((following - state.now).total_seconds())
    made = _in_progress((backup_name(state.name, latest),), following, pause)
    missed = f"{_dates(first, latest)} were missed: only the latest of them is taken now"
    return replace(made, start=latest, warning=("BackupsMissed", missed) if first < latest else None)


def _dates(first: datetime, latest: datetime) -> str:
    if first == latest:
        return f"the backup due at {timestamp(first)}"
    return f"the backups due from {timestamp(first)} to {timestamp(latest)}"


def sleep(seconds: float) -> float:
    """The pause before something that is due in so many seconds, see `LONGEST_SLEEP`."""
    return min(max(seconds, SHORTEST_SLEEP), LONGEST_SLEEP)
