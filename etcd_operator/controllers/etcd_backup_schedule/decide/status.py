"""The status of an EtcdBackupSchedule, from what was planned, and which EtcdBackups it reports as ended.

The status is the record. All EtcdBackups with a time up to `since` are known to it, and of those all but
`lastBackup` are reported; `lastBackup` is when its phase is final. So each is reported by one write: by the
one that makes the phase final, that replaces a `lastBackup` whose phase is not final, or that moves `since`
past the time of an EtcdBackup (if earlier writes failed, of several). That write may also start the next
EtcdBackup, and what has ended may be deleted after it.
"""

from datetime import datetime

import msgspec

from etcd_operator.api.backup_schedules import LastBackup, LastPrune, ScheduleStatus
from etcd_operator.api.backups import BACKING_UP, COMPLETE, COMPLETED, FAILED, BackupStatus, EtcdBackup
from etcd_operator.api.backups import VERIFIED as BACKUP_VERIFIED
from etcd_operator.api.meta import Condition, condition, condition_of, merge_conditions
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import AHEAD, SchedulePlan
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import PrunePlan
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import backup_name
from etcd_operator.controllers.etcd_backup_schedule.decide.state import (
    ScheduleState,
    due_of,
    has_ended,
    in_order,
)
from etcd_operator.formats import timestamp

READY, SUCCEEDED, VERIFIED, PRUNED = "Ready", "LastBackupSucceeded", "LastBackupVerified", "Pruned"
CONDITIONS = frozenset({READY, SUCCEEDED, VERIFIED, PRUNED})
"""Whether backups are started; whether the last one that has ended succeeded; whether the last one whose
verification has ended is verified, while spec.backupTemplate.verify is set; and whether old ones could be
removed."""

NEVER = Condition(type=SUCCEEDED, status="Unknown", reason="NoBackup", message="no backup has ended yet")
NEVER_VERIFIED = Condition(
    type=VERIFIED, status="Unknown", reason="NoBackup", message="no verification has ended yet"
)


def status(
    previous: ScheduleStatus, state: ScheduleState, plan: SchedulePlan, *, generation: int
) -> ScheduleStatus:
    """What is to be written once `plan.start` was created; equal to `previous` if nothing is new."""
    created = plan.start or plan.recorded
    last = _last(previous, state, created)
    ended = _last_ended(previous, state, plan)
    conditions = [_ready(plan, generation), _succeeded(previous, ended, generation)]
    if state.is_verified:
        conditions.append(_verified(previous, state, generation))
    conditions += _pruned(previous, plan.prune, generation)
    written = msgspec.structs.replace(
        previous,
        observed_generation=generation,
        schedule=state.described or previous.schedule,
        since=_text(plan.start or plan.since) or previous.since,
        last_schedule_time=_text(created) or previous.last_schedule_time,
        next_schedule_time=_text(plan.following),
        active=_active(state, plan),
        last_backup=last,
        last_prune=_last_prune(previous.last_prune, plan.prune, timestamp(state.now)),
        conditions=merge_conditions(previous.conditions, conditions, timestamp(state.now), own=CONDITIONS),
    )
    success = _newest(state, previous.last_successful_time)
    if success is not None:
        written = msgspec.structs.replace(
            written,
            last_successful_time=success.completion_time,
            last_successful_url=success.url,
        )
    verified = _newest(state, previous.last_verified_time, is_verified=True)
    if verified is not None:
        written = msgspec.structs.replace(
            written, last_verified_time=verified.completion_time, last_verified_url=verified.url
        )
    return written


def to_be_reported(
    previous: ScheduleStatus, state: ScheduleState, plan: SchedulePlan
) -> tuple[EtcdBackup, ...]:
    """The EtcdBackups that have ended, and that the next write of the status reports; the last one last."""
    last = previous.last_backup
    pending = last.name if last is not None and not _is_final(last) else ""
    found = (
        each
        for each in state.backups
        if has_ended(each) and (each.metadata.name == pending or _is_new(each, state, plan))
    )
    return tuple(sorted(found, key=in_order))


def _is_new(backup: EtcdBackup, state: ScheduleState, plan: SchedulePlan) -> bool:
    """Whether the write moves `since` past its time: no earlier one has reported it."""
    due, until = due_of(backup), plan.start or plan.since
    return due is not None and until is not None and (state.since or state.created) < due <= until


def _is_final(last: LastBackup) -> bool:
    """Whether it is known to have ended; a cache that is behind may still show it at work."""
    return last.phase in (COMPLETED, FAILED)


def _text(moment: datetime | None) -> str:
    return timestamp(moment) if moment is not None else ""


def _active(state: ScheduleState, plan: SchedulePlan) -> tuple[str, ...]:
    if plan.start is None:
        return state.active
    return tuple(sorted({*state.active, backup_name(state.name, plan.start)}))


def _last(previous: ScheduleStatus, state: ScheduleState, created: datetime | None) -> LastBackup | None:
    name = backup_name(state.name, created) if created is not None else ""
    last = LastBackup(name=name, phase=BACKING_UP) if name else previous.last_backup
    for backup in state.backups:
        is_last = last is not None and backup.metadata.name == last.name
        if last is not None and is_last and (has_ended(backup) or not _is_final(last)):
            found = backup.status
            return LastBackup(name=last.name, phase=found.phase or BACKING_UP, url=found.url)
    return last


def _last_ended(previous: ScheduleStatus, state: ScheduleState, plan: SchedulePlan) -> EtcdBackup | None:
    """The last EtcdBackup that has ended, which need not be the last one; None if its object is gone."""
    reported = to_be_reported(previous, state, plan)
    if reported:
        return reported[-1]
    last = previous.last_backup
    same = (each for each in state.backups if last is not None and each.metadata.name == last.name)
    return next(filter(has_ended, same), None)


def _ready(plan: SchedulePlan, generation: int) -> Condition:
    return condition(
        READY, holds=plan.is_ready, reason=plan.reason, message=plan.message, generation=generation
    )


def _succeeded(previous: ScheduleStatus, last: EtcdBackup | None, generation: int) -> Condition:
    """From the last EtcdBackup that has ended; one whose object is gone was reported before."""
    if last is None:
        return condition_of(previous.conditions, SUCCEEDED) or NEVER
    verdict = condition_of(last.status.conditions, COMPLETE)
    return condition(
        SUCCEEDED,
        holds=last.status.phase == COMPLETED,
        reason=verdict.reason if verdict is not None else last.status.phase,
        message=described(last),
        generation=generation,
    )


def described(ended: EtcdBackup) -> str:
    """What came of an EtcdBackup that has ended, for the condition and the Event."""
    verdict = condition_of(ended.status.conditions, COMPLETE)
    return f"EtcdBackup {ended.metadata.name}: {verdict.message if verdict is not None else ''}"


def _verified(previous: ScheduleStatus, state: ScheduleState, generation: int) -> Condition:
    """From the newest EtcdBackup whose verification has ended; those of deleted ones were reported before."""
    for backup in sorted(state.backups, key=in_order, reverse=True):
        verdict = condition_of(backup.status.conditions, BACKUP_VERIFIED)
        if verdict is not None and verdict.status != "Unknown":
            message = f"EtcdBackup {backup.metadata.name}: {verdict.message}"
            return msgspec.structs.replace(
                verdict, type=VERIFIED, message=message, observed_generation=generation
            )
    return condition_of(previous.conditions, VERIFIED) or NEVER_VERIFIED


def _pruned(previous: ScheduleStatus, plan: PrunePlan, generation: int) -> tuple[Condition, ...]:
    match plan.verdict:
        case None:
            return ()
        case "":
            return tuple(each for each in previous.conditions if each.type == PRUNED)
        case verdict:
            return (
                Condition(
                    type=PRUNED,
                    status=verdict,
                    reason=plan.reason,
                    message=plan.message,
                    observed_generation=generation,
                ),
            )


def _last_prune(previous: LastPrune | None, plan: PrunePlan, now: str) -> LastPrune | None:
    if not plan.ended:
        return previous
    stored = previous.stored if previous is not None else 0
    return LastPrune(
        request=plan.ended,
        time=now,
        removed=plan.removed or 0,
        stored=plan.stored if plan.stored is not None else stored,
    )


def _newest(state: ScheduleState, recorded: str, *, is_verified: bool = False) -> BackupStatus | None:
    """The last EtcdBackup that is completed (and verified), unless a later one was deleted since.

    recorded: when the one in the status was completed. Not one of a clock that was far ahead, see `plan`.
    """
    latest = timestamp(state.now + AHEAD)
    found = [backup.status for backup in sorted(state.backups, key=in_order)]
    found = [each for each in found if each.phase == COMPLETED and each.completion_time <= latest]
    found = [each for each in found if not is_verified or _is_verified(each)]
    if not found:
        return None
    last = found[-1]
    return last if last.completion_time > recorded or recorded > latest else None


def _is_verified(status: BackupStatus) -> bool:
    """Whether it was shown to be whole, at the level that was asked for, and is not known to be doubtful."""
    verdict = condition_of(status.conditions, BACKUP_VERIFIED)
    return verdict is not None and verdict.status == "True" and not status.corrupt_alarm
