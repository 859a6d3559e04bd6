"""Which EtcdBackups of a schedule have ended, and are not yet reported as such.

The status is the record. All EtcdBackups with a time up to `since` are known to it, and of those all but
`lastBackup` are reported; `lastBackup` is when its phase is final. So each is reported by one write: by the
one that makes the phase final, that replaces a `lastBackup` whose phase is not final, or that moves `since`
past the time of an EtcdBackup (if earlier writes failed, of several). That write may also start the next
EtcdBackup, and what has ended may be deleted after it.
"""

from etcd_operator.api.backup_schedules import LastBackup, ScheduleStatus
from etcd_operator.api.backups import COMPLETED, FAILED
from etcd_operator.controllers.etcd_backup_schedule.decide.plan import SchedulePlan
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduledBackup, ScheduleState


def is_final(last: LastBackup) -> bool:
    """Whether it is known to have ended; a cache that is behind may still show it at work."""
    return last.phase in (COMPLETED, FAILED)


def to_be_reported(
    previous: ScheduleStatus, state: ScheduleState, plan: SchedulePlan
) -> tuple[ScheduledBackup, ...]:
    """The EtcdBackups that have ended, and that the next write of the status reports; the last one last."""
    last = previous.last_backup
    pending = last.name if last is not None and not is_final(last) else ""
    found = (
        each
        for each in state.backups
        if each.has_ended and (each.name == pending or _is_new(each, state, plan))
    )
    return tuple(sorted(found, key=lambda each: (each.created, each.name)))


def _is_new(backup: ScheduledBackup, state: ScheduleState, plan: SchedulePlan) -> bool:
    """Whether the write moves `since` past its time: no earlier one has reported it."""
    until = plan.start or plan.since
    if backup.due is None or until is None:
        return False
    return (state.since or state.created) < backup.due <= until
