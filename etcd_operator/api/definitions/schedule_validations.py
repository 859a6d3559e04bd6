"""The validation rules of EtcdBackupSchedule, as the API server applies them (see `definitions.cel`).

`decide.spec` has the same rules in Python, for objects that were stored under another
definition.
"""

from etcd_operator.api.backup_schedules import (
    DIFFERS_PATTERN,
    FIXED_PLACE_PATTERN,
    MACROS,
    SCHEDULE_PATTERN,
    TIME_ZONE_PATTERN,
)
from etcd_operator.api.definitions.backup_validations import of_template
from etcd_operator.api.definitions.cel import Validation, name_length, whole
from etcd_operator.api.definitions.limits import LONGEST_LABEL, NAME_LENGTH
from etcd_operator.formats import DURATION_HELP, DURATION_PATTERN

DIFFERS = (
    "must contain {{ .Name }}, {{ .UID }} or {{ .CreationTimestamp }} before any '?', so that no two backups "
    "have the same URL: a stored backup is never overwritten"
)
CRON = (
    "must be a cron schedule with five fields (minute, hour, day of the month, month, day of the week), like "
    f"'30 3 * * *' for 03:30 of each day, or one of {', '.join(MACROS)}"
)
TIME_ZONE = "must be the name of a time zone, like Europe/Berlin; without it the schedule is in UTC"
RETENTION = "set maxCount, maxAge or both"
MAX_AGE = f"must be a duration: {DURATION_HELP}"
FIXED_PLACE = (
    "requires an objectURLTemplate without {{ .Name }}, {{ .UID }} or {{ .CreationTimestamp }} in the "
    "bucket or after '?': otherwise it is not known where to look for old backups"
)

TEMPLATE = "spec.backupTemplate"
_URL_TEMPLATE = "self.backupTemplate.destination.objectURLTemplate"

SCHEDULE = (
    name_length(LONGEST_LABEL, NAME_LENGTH),
    Validation(name="schedule", at="spec.schedule", holds=whole(SCHEDULE_PATTERN), message=CRON),
    Validation(
        name="time-zone",
        at="spec.timeZone",
        # The hour in an unknown time zone is an error, which refuses the object with this message, too.
        holds=f"self != 'Local' && {whole(TIME_ZONE_PATTERN)} && "
        "timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",
        message=TIME_ZONE,
    ),
    *of_template(TEMPLATE),
    Validation(
        name="differs",
        at=f"{TEMPLATE}.destination.objectURLTemplate",
        holds=whole(DIFFERS_PATTERN),
        message=DIFFERS,
    ),
    Validation(
        name="retention",
        at="spec.retention",
        holds="has(self.maxCount) || has(self.maxAge)",
        message=RETENTION,
    ),
    Validation(name="max-age", at="spec.retention.maxAge", holds=whole(DURATION_PATTERN), message=MAX_AGE),
    Validation(
        name="fixed-place",
        at="spec",
        field=".retention",
        holds=f"!has(self.retention) || {whole(FIXED_PLACE_PATTERN, _URL_TEMPLATE)}",
        message=FIXED_PLACE,
    ),
)
