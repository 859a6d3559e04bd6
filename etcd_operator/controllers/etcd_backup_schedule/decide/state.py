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
    """An EtcdBackup that the schedule owns.

    created: its creationTimestamp. due: the time of the schedule, None if it is not known.
    reason, message: of its condition Complete. verdict: its condition Verified, None if it has none.
    is_verifying: it is stored, and its verification has not ended.
    size: of the snapshot in bytes, 0 if it is not known. took: seconds from its acceptance to its end.
    """

    name: str
    uid: str
    created: str = ""
    due: datetime | None = None
    phase: str = ""
    is_deleting: bool = False
    url: str = ""
    completed_at: str = ""
    reason: str = ""
    message: str = ""
    verdict: Condition | None = None
    is_verifying: bool = False
    size: int = 0
    took: float | None = None

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
    """What was observed of one EtcdBackupSchedule.

    times: when backups are due; None for an invalid spec, then `problem` describes why.
    described: schedule and time zone of the spec. known: those of the status, None before the first status,
    empty after one for an invalid spec.
    prune: what is known of the removal of old backups.
    since: up to when times are over, as in the status. deadline: how late a backup may start, in seconds.
    is_verified: its backups are to be verified.
    """

    name: str
    now: datetime
    created: datetime
    times: Cron | None
    problem: str = ""
    is_deleting: bool = False
    described: str = ""
    known: str | None = None
    since: datetime | None = None
    is_suspended: bool = False
    deadline: float | None = None
    is_verified: bool = False
    successful_kept: int = SUCCESSFUL_KEPT
    failed_kept: int = FAILED_KEPT
    backups: tuple[ScheduledBackup, ...] = ()
    prune: PruneState = NO_RETENTION

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the EtcdBackups that the next one waits for."""
        return tuple(sorted(backup.name for backup in self.backups if backup.is_active))
