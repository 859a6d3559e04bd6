"""The observed state of an EtcdBackupSchedule: all that a decision about it may rest on."""

from dataclasses import dataclass
from datetime import datetime

from etcd_operator.api.backup_schedules import FAILED_KEPT, SUCCESSFUL_KEPT
from etcd_operator.api.backups import COMPLETED, FAILED
from etcd_operator.api.meta import Condition
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import Cron
from etcd_operator.controllers.etcd_backup_schedule.decide.prune import NO_RETENTION, PruneState


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledBackup:
    """An EtcdBackup that the schedule owns."""

    name: str
    uid: str
    created: str = ""  # its creationTimestamp
    due: datetime | None = None  # the time of the schedule; None if it is not known
    phase: str = ""
    is_deleting: bool = False
    url: str = ""
    completed_at: str = ""
    reason: str = ""  # of its condition Complete
    message: str = ""  # of its condition Complete
    verdict: Condition | None = None  # its condition Verified, if it has one
    is_verifying: bool = False  # it is stored, and its verification has not ended
    size: int = 0  # of the snapshot in bytes; 0 if it is not known
    took: float | None = None  # seconds from its acceptance to its end

    @property
    def has_ended(self) -> bool:
        """Whether its phase is final."""
        return self.phase in (COMPLETED, FAILED)

    @property
    def is_active(self) -> bool:
        """Whether the next one waits for it. A deletion may hang, for example on somebody's finalizer."""
        return (self.is_verifying or not self.has_ended) and not self.is_deleting

    @property
    def is_verified(self) -> bool:
        """Whether it was shown to be whole, at the level that was asked for."""
        return self.verdict is not None and self.verdict.status == "True"


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
    backups: tuple[ScheduledBackup, ...] = ()
    prune: PruneState = NO_RETENTION  # what is known of the removal of old backups

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the EtcdBackups that the next one waits for."""
        return tuple(sorted(backup.name for backup in self.backups if backup.is_active))
