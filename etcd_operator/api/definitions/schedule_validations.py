"""The validation rules of EtcdBackupSchedule, as the API server applies them (see `definitions.cel`).

`decide.spec` has the same rules in Python, for objects that were stored under another
definition.
"""

from etcd_operator.api.definitions.backup_validations import of_template
from etcd_operator.api.definitions.cel import Form, Validation, name_length, whole
from etcd_operator.api.definitions.limits import LONGEST_LABEL, NAME_LENGTH
from etcd_operator.formats import DURATION_HELP, DURATION_PATTERN

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

# What `cronsim` accepts, except for ranges in the wrong order and days that no month has.
CRON = Form(
    pattern=f" *((?i:{_GAP.join(_FIELDS)})|{'|'.join(MACROS)}) *",
    message="must be a cron schedule with five fields (minute, hour, day of the month, month, day of the "
    f"week), like '30 3 * * *' for 03:30 of each day, or one of {', '.join(MACROS)}",
)
TIME_ZONE = Form(
    pattern="[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*",
    message="must be the name of a time zone, like Europe/Berlin; without it the schedule is in UTC",
)
# A template whose URL is different for each EtcdBackup of a schedule.
DIFFERS = Form(
    pattern="[^?]*[{][{] *[.](Name|UID|CreationTimestamp) *[}][}].*",
    message="must contain {{ .Name }}, {{ .UID }} or {{ .CreationTimestamp }} before any '?', so that no two "
    "backups have the same URL: a stored backup is never overwritten",
)
MAX_AGE = Form(pattern=DURATION_PATTERN, message=f"must be a duration: {DURATION_HELP}")
_NAMESPACE = "[{][{] *[.]Namespace *[}][}]"
# A template whose bucket and options are the same for each EtcdBackup of a schedule.
FIXED_PLACE = Form(
    pattern=f"[a-z0-9]+://([^/{{]|{_NAMESPACE})*/[^?]*([?]([^{{]|{_NAMESPACE})*)?",
    message="requires an objectURLTemplate without {{ .Name }}, {{ .UID }} or {{ .CreationTimestamp }} in "
    "the bucket or after '?': otherwise it is not known where to look for old backups",
)
RETENTION = "set maxCount, maxAge or both"

TEMPLATE = "spec.backupTemplate"
_URL_TEMPLATE = "self.backupTemplate.destination.objectURLTemplate"

SCHEDULE = (
    name_length(LONGEST_LABEL, NAME_LENGTH),
    CRON.rule("spec.schedule"),
    Validation(
        at="spec.timeZone",
        # The hour in an unknown time zone is an error, which refuses the object with this message, too.
        holds=f"self != 'Local' && {whole(TIME_ZONE.pattern)} && "
        "timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",
        message=TIME_ZONE.message,
    ),
    *of_template(TEMPLATE),
    DIFFERS.rule(f"{TEMPLATE}.destination.objectURLTemplate"),
    Validation(at="spec.retention", holds="has(self.maxCount) || has(self.maxAge)", message=RETENTION),
    MAX_AGE.rule("spec.retention.maxAge"),
    Validation(
        at="spec",
        field=".retention",
        holds=f"!has(self.retention) || {whole(FIXED_PLACE.pattern, _URL_TEMPLATE)}",
        message=FIXED_PLACE.message,
    ),
)
