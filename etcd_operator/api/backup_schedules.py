"""`etcd.improbable.io/v1alpha1`: EtcdBackupSchedule, which creates EtcdBackups at given times.

`spec` of a stored EtcdBackupSchedule stays raw until a pass parses it, as that of an EtcdBackup.
"""

from typing import Annotated

import msgspec

from etcd_operator.api.backups import BackupSpec
from etcd_operator.api.improbable import GROUP
from etcd_operator.api.meta import Condition, ObjectMeta, RawObject, Value

KIND = "EtcdBackupSchedule"

SCHEDULE_LABEL = f"{GROUP}/backup-schedule-name"
"""On an EtcdBackup: the name of the EtcdBackupSchedule that created it. Its owner proves it."""

SCHEDULED_ANNOTATION = f"{GROUP}/scheduled-time"
"""On an EtcdBackup: the time of the schedule for which it was created (RFC 3339, UTC)."""

PRUNE_ANNOTATION = f"{GROUP}/prune-request"
"""On the Job that removes old backups: the retention, and the backup after which it is applied."""

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Short forms of schedules."""

_STEP = "(/0*[1-9][0-9]*)?"
_GAP = " +"


def _field(one: str, others: str = "") -> str:
    """The pattern of a field: a list of `*`, values and ranges, each with a step or not; and `others`."""
    item = rf"([*]|({one})(-({one}))?){_STEP}{others}"
    return f"({item})(,({item}))*"


_MONTHS = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_DAYS = "SUN|MON|TUE|WED|THU|FRI|SAT"
_FIELDS = (
    _field("[0-5]?[0-9]"),
    _field("[01]?[0-9]|2[0-3]"),
    _field("0?[1-9]|[12][0-9]|3[01]", "|LW?"),
    _field(f"0?[1-9]|1[0-2]|{_MONTHS}"),
    _field(f"[0-7]|{_DAYS}", f"|[0-7]L|([0-7]|{_DAYS})#[1-5]"),
)

# Patterns match a whole text; Python's `re` and RE2 read them alike.
SCHEDULE_PATTERN = f" *((?i:{_GAP.join(_FIELDS)})|{'|'.join(MACROS)}) *"
"""What `cronsim` accepts, except for ranges in the wrong order and days that no month has."""

TIME_ZONE_PATTERN = "[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*"
FIXED_PLACE_PATTERN = (
    "[a-z0-9]+://([^/{]|[{][{] *[.]Namespace *[}][}])*/[^?]*([?]([^{]|[{][{] *[.]Namespace *[}][}])*)?"
)
"""A template whose bucket and options are the same for each EtcdBackup of a schedule."""

DIFFERS_PATTERN = "[^?]*[{][{] *[.](Name|UID|CreationTimestamp) *[}][}].*"
"""A template that stands for another object for each EtcdBackup of a schedule."""

SUCCESSFUL_KEPT, FAILED_KEPT = 3, 1
"""The default limits of finished EtcdBackups, as those of a CronJob for its Jobs."""

_Limit = Annotated[int, msgspec.Meta(ge=0)]


class Retention(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many stored backups are kept, and how old they may be (`formats`); at least one of both."""

    max_count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_age: str = ""


class ScheduleSpec(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The spec of an EtcdBackupSchedule.

    time_zone: an IANA name; empty for UTC. starting_deadline_seconds: how late a backup may start; None for
    any delay.
    """

    schedule: str
    backup_template: BackupSpec
    time_zone: str = ""
    suspend: bool = False
    starting_deadline_seconds: Annotated[int, msgspec.Meta(ge=1)] | None = None
    successful_backups_history_limit: _Limit = SUCCESSFUL_KEPT
    failed_backups_history_limit: _Limit = FAILED_KEPT
    retention: Retention | None = None


class LastBackup(Value, frozen=True, kw_only=True):
    """The EtcdBackup that was created last. phase, url: of its status, as last seen.

    name, phase: persisted state. Once the phase is final, the end of this EtcdBackup has been reported.
    """

    name: str
    phase: str = ""
    url: str = ""


class LastPrune(Value, frozen=True, kw_only=True):
    """How old stored backups were last removed; the condition Pruned has the result.

    request: persisted state: the retention, and after which backup it was applied. time: when that ended.
    removed: how many backups. stored: how many were left, as of the last success.
    """

    request: str
    time: str
    removed: int = 0
    stored: int = 0


class ScheduleStatus(Value, frozen=True, kw_only=True):
    """The status of an EtcdBackupSchedule.

    schedule, since: persisted state. Times of `schedule` (with its time zone) up to `since` are over: their
    backups were created, skipped, or are not due because the schedule was created or changed later. The ends
    of those that were created have been reported, except for that of a `last_backup` that has not ended.
    last_verified_time: when the last verified backup was completed, as last_successful_time; not when it was
    verified.
    """

    observed_generation: int = 0
    schedule: str = ""
    since: str = ""
    last_schedule_time: str = ""
    next_schedule_time: str = ""
    active: tuple[str, ...] = ()
    last_backup: LastBackup | None = None
    last_successful_time: str = ""
    last_successful_url: str = msgspec.field(default="", name="lastSuccessfulURL")
    last_verified_time: str = ""
    last_verified_url: str = msgspec.field(default="", name="lastVerifiedURL")
    last_prune: LastPrune | None = None
    conditions: tuple[Condition, ...] = ()


class EtcdBackupSchedule(Value, frozen=True, kw_only=True):
    """A stored EtcdBackupSchedule; `spec` is raw, see the module."""

    metadata: ObjectMeta
    spec: RawObject = {}
    status: ScheduleStatus = ScheduleStatus()
