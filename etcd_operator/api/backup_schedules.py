"""`etcd.improbable.io/v1alpha1`: EtcdBackupSchedule, which creates EtcdBackups at given times.

`spec` of a stored EtcdBackupSchedule stays raw until a pass parses it, as that of an EtcdBackup.
"""

from typing import Annotated

import msgspec

from etcd_operator.api.backups import BackupSpec
from etcd_operator.api.improbable import GROUP
from etcd_operator.api.meta import Condition, Stored, Value

KIND = "EtcdBackupSchedule"

SCHEDULE_LABEL = f"{GROUP}/backup-schedule-name"
"""On an EtcdBackup: the name of the EtcdBackupSchedule that created it. Its owner proves it."""

SCHEDULED_ANNOTATION = f"{GROUP}/scheduled-time"
"""On an EtcdBackup: the time of the schedule for which it was created (RFC 3339, UTC)."""

PRUNE_ANNOTATION = f"{GROUP}/prune-request"
"""On the Job that removes old backups: the retention, and the backup after which it is applied."""

SUCCESSFUL_KEPT, FAILED_KEPT = 3, 1
"""The default limits of finished EtcdBackups, as those of a CronJob for its Jobs."""

_Limit = Annotated[int, msgspec.Meta(ge=0)]


class Retention(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which stored backups are kept; at least one of the two fields is set."""

    max_count: Annotated[int, msgspec.Meta(ge=1)] | None = None  #: How many backups are kept.
    max_age: str = ""  #: How much older than the newest backup a backup may be, like 30d or 1d12h.


class ScheduleSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The desired state."""

    #: When backups are taken, in the syntax of cron: minute, hour, day of the month, month, day of the week;
    #: or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.
    schedule: str
    backup_template: BackupSpec  #: The spec of each EtcdBackup.
    time_zone: str = ""  #: The time zone of the schedule, like Europe/Berlin. Default: UTC.
    suspend: bool = False  #: While true, no new backups are started; a running backup continues.
    #: How late a backup may start; after that it is skipped. Default: any delay.
    starting_deadline_seconds: Annotated[int, msgspec.Meta(ge=1)] | None = None
    #: How many completed EtcdBackups of this schedule are kept. The stored backups of EtcdBackups that are
    #: deleted are kept, see retention. Default: 3.
    successful_backups_history_limit: _Limit = SUCCESSFUL_KEPT
    #: How many failed EtcdBackups of this schedule are kept. Default: 1.
    failed_backups_history_limit: _Limit = FAILED_KEPT
    #: Which stored backups of this schedule are kept; older ones are deleted after each backup. The newest
    #: backup and the newest verified backup are always kept. Without this field, nothing is deleted.
    retention: Retention | None = None


class LastBackup(Value, frozen=True, kw_only=True):
    """The EtcdBackup that a schedule created last."""

    name: str  #: The name of the EtcdBackup. Persisted state of the operator.
    #: BackingUp, Completed or Failed; once it is final, the end of the backup has been reported.
    phase: str = ""
    url: str = ""  #: Where the backup is stored, if it is completed.


class LastPrune(Value, frozen=True, kw_only=True):
    """The last deletion of old backups."""

    #: The retention, and the backup after which it was applied. Persisted state of the operator.
    request: str
    time: str  #: When the deletion ended.
    removed: int = 0  #: How many backups were deleted.
    stored: int = 0  #: How many backups of this schedule were left after the last successful deletion.


class ScheduleStatus(Value, frozen=True, kw_only=True):
    """The observed state, written by the operator."""

    observed_generation: int = 0  #: The generation of the spec that this status is based on.
    #: The schedule and the time zone that `since` belongs to. Persisted state of the operator.
    schedule: str = ""
    # Handled: the EtcdBackup was created, or the time was skipped, or the schedule was created or changed
    # later.
    since: str = ""  #: All scheduled times up to this one have been handled. Persisted state of the operator.
    last_schedule_time: str = ""  #: The time of the schedule for which a backup was last started.
    next_schedule_time: str = ""  #: When the next backup is due.
    active: tuple[str, ...] = ()  #: The EtcdBackups of this schedule that have not ended.
    last_backup: LastBackup | None = None  #: The EtcdBackup that was created last.
    last_successful_time: str = ""  #: When the last successful backup was completed.
    #: Where the last successful backup is stored.
    last_successful_url: str = msgspec.field(default="", name="lastSuccessfulURL")
    last_verified_time: str = ""  #: When the last verified backup was completed.
    #: Where the last verified backup is stored.
    last_verified_url: str = msgspec.field(default="", name="lastVerifiedURL")
    #: The last deletion of old backups. The condition Pruned has the result.
    last_prune: LastPrune | None = None
    conditions: tuple[Condition, ...] = ()  #: The current state of this object.


class EtcdBackupSchedule(Stored, frozen=True, kw_only=True):
    """Creates an EtcdBackup at each time of a schedule."""

    status: ScheduleStatus = ScheduleStatus()
