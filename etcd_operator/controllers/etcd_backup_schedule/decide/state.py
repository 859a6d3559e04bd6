"""The observed state of an EtcdBackupSchedule: all that a decision about it may rest on."""

from dataclasses import dataclass
from datetime import datetime

from etcd_operator.api.backup_schedules import FAILED_KEPT, SCHEDULED_ANNOTATION, SUCCESSFUL_KEPT
from etcd_operator.api.backups import COMPLETED, FAILED, EtcdBackup
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import Cron
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import NO_RETENTION, PruneState
from etcd_operator.formats import moment


def due_of(backup: EtcdBackup) -> datetime | None:
    """The time of the schedule for which it was created; None if anybody has changed the annotation."""
    return moment(backup.metadata.annotations.get(SCHEDULED_ANNOTATION, ""))


def has_ended(backup: EtcdBackup) -> bool:
    """Whether its phase is final."""
    return backup.status.phase in (COMPLETED, FAILED)


def is_verifying(backup: EtcdBackup) -> bool:
    """Whether it is stored, and its verification has not ended."""
    verification = backup.status.verification
    return verification is not None and not verification.completion_time


def is_active(backup: EtcdBackup) -> bool:
    """Whether the next one waits for it. A deletion may hang, for example on somebody's finalizer."""
    return (is_verifying(backup) or not has_ended(backup)) and not backup.metadata.is_deleting


def in_order(backup: EtcdBackup) -> tuple[str, str]:
    """Sorts the oldest first, not by the time of the schedule: clocks may have been wrong."""
    return backup.metadata.creation_timestamp, backup.metadata.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """What was observed of one EtcdBackupSchedule."""

    name: str
    now: datetime
    created: datetime
    times: Cron | None  # when backups are due; None for an invalid spec
    problem: str = ""  # why the spec is invalid
    is_deleting: bool = False
    described: str = ""  # schedule and time zone of the spec
    known: str | None = None  # the same of the status; None before the first, empty after an invalid spec
    since: datetime | None = None  # up to when times are over, as in the status
    is_suspended: bool = False
    deadline: float | None = None  # how late a backup may start, in seconds
    is_verified: bool = False  # its backups are to be verified
    successful_kept: int = SUCCESSFUL_KEPT
    failed_kept: int = FAILED_KEPT
    backups: tuple[EtcdBackup, ...] = ()  # as it would create them now, or the last one that it created
    # Of an earlier template, or made by somebody else: they count for nothing, and are removed first.
    others: tuple[EtcdBackup, ...] = ()
    prune: PruneState = NO_RETENTION  # what is known of the removal of old backups

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the EtcdBackups that the next one waits for."""
        return tuple(sorted(backup.metadata.name for backup in self.backups if is_active(backup)))
