"""EtcdBackupSchedules that are refused."""

from dataclasses import replace

from unit.api.contract.backup_cases import BACKUP, BACKUP_CASES
from unit.api.contract.case import ABSENT, Case, Changes, Manifest

SCHEDULE: Manifest = {
    "apiVersion": "etcd.improbable.io/v1alpha1",
    "kind": "EtcdBackupSchedule",
    "metadata": {"name": "my-schedule"},
    "spec": {"schedule": "30 3 * * *", "backupTemplate": BACKUP["spec"]},
}
TEMPLATE = "spec/backupTemplate"
_CRON = (
    "must be a cron schedule with five fields (minute, hour, day of the month, month, day of the week), like "
    "'30 3 * * *' for 03:30 of each day, or one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, "
    "@annually"
)
_ZONE = "must be the name of a time zone, like Europe/Berlin; without it the schedule is in UTC"
_DIFFERS = (
    "must contain {{ .Name }}, {{ .UID }} or {{ .CreationTimestamp }} before any '?', so that no two backups "
    "have the same URL: a stored backup is never overwritten"
)
_AGE = "must be a duration: numbers with the units w, d, h, m and s, like 30d or 1d12h"
_FIXED = (
    "requires an objectURLTemplate without {{ .Name }}, {{ .UID }} or {{ .CreationTimestamp }} in the bucket "
    "or after '?': otherwise it is not known where to look for old backups"
)
SCHEDULES = (
    "every day",
    "",
    "30 3 * *",
    "0 30 3 * * *",
    "60 3 * * *",
    "30 24 * * *",
    "30 3 32 * *",
    "30 3 * 13 *",
    "30 3 * * 8",
    "*/0 * * * *",
    "@every 1h",
    "CRON_TZ=Europe/Berlin 30 3 * * *",
)
VALID_SCHEDULES = (
    "* * * * *",
    "*/15 * * * *",
    " 5,20-40/10,*/30  0 1 1 0 ",
    "0 22 * * MON-fri",
    "0 0 L,15 JAN,7 *",
    "0 0 LW * *",
    "0 3 * * SUN#1,5L",
    "59 23 31 12 7",
    "@weekly",
)
TIME_ZONES = ("Berlin time", "Local", "", "../etc/localtime")


def _refused(typed: str, changes: Changes, sees: str) -> Case:
    return Case(typed=typed, base=SCHEDULE, changes=changes, sees=sees)


def _limits(field: str, least: int, value: int) -> Case:
    name = f"spec.{field}"
    return Case(
        typed=f"{field}: {value}",
        base=SCHEDULE,
        changes={f"spec/{field}": value},
        sees=f"{name}: Invalid value: {value}: {name} in body should be greater than or equal to {least}",
    )


def _of_template(case: Case) -> Case:
    """A case of an EtcdBackup's spec, in a template."""
    changes = {path.replace("spec", TEMPLATE, 1): value for path, value in case.changes.items()}
    sees = case.sees.replace("spec.", "spec.backupTemplate.", 1)
    return replace(case, base=SCHEDULE, changes=changes, sees=sees)


OWN_CASES = (
    *(
        _refused(
            f'schedule: "{schedule}"',
            {"spec/schedule": schedule},
            f'spec.schedule: Invalid value: "{schedule}": {_CRON}',
        )
        for schedule in SCHEDULES
    ),
    *(
        _refused(
            f'timeZone: "{zone}"', {"spec/timeZone": zone}, f'spec.timeZone: Invalid value: "{zone}": {_ZONE}'
        )
        for zone in TIME_ZONES
    ),
    _refused(
        "timeZone: Europe/Berln",
        {"spec/timeZone": "Europe/Berln"},
        f"unknown time zone Europe/Berln evaluating rule: {_ZONE}",
    ),
    *(
        _refused(
            f"objectURLTemplate: {url}",
            {f"{TEMPLATE}/destination/objectURLTemplate": url},
            f'spec.backupTemplate.destination.objectURLTemplate: Invalid value: "{url}": {_DIFFERS}',
        )
        for url in (
            "s3://my-bucket/{{ .Namespace }}/my-cluster.db",
            "s3://my-bucket/one.db?endpoint=http://{{ .Name }}",
        )
    ),
    _limits("startingDeadlineSeconds", 1, 0),
    _limits("successfulBackupsHistoryLimit", 0, -1),
    _limits("failedBackupsHistoryLimit", 0, -1),
    _refused(
        "a name of 64 characters",
        {"metadata/name": "n" * 64},
        "metadata.name: Invalid value: must have at most 63 characters, because it is the value of a label: "
        "choose a shorter name",
    ),
    *(
        Case(
            typed=f"no {field}",
            base=SCHEDULE,
            changes={f"spec/{field}": ABSENT},
            sees=f"spec.{field}: Required value",
        )
        for field in ("schedule", "backupTemplate")
    ),
    _refused(
        "retention: {}", {"spec/retention": {}}, "spec.retention: Invalid value: set maxCount, maxAge or both"
    ),
    Case(
        typed="retention.maxCount: 0",
        base=SCHEDULE,
        changes={"spec/retention": {"maxCount": 0}},
        sees="spec.retention.maxCount: Invalid value: 0: spec.retention.maxCount in body should be greater "
        "than or equal to 1",
    ),
    *(
        _refused(
            f'retention.maxAge: "{age}"',
            {"spec/retention": {"maxAge": age}},
            f'spec.retention.maxAge: Invalid value: "{age}": {_AGE}',
        )
        for age in ("30", "0d", "1 day", "-1d")
    ),
    *(
        _refused(
            f"retention with objectURLTemplate: {url}",
            {
                "spec/retention": {"maxCount": 3},
                f"{TEMPLATE}/destination/objectURLTemplate": url,
            },
            f"spec.retention: Invalid value: {_FIXED}",
        )
        for url in (
            "s3://backups-{{ .Name }}/db",
            "s3://my-bucket/{{ .Name }}.db?endpoint=http://{{ .UID }}",
        )
    ),
)
TEMPLATE_CASES = tuple(_of_template(case) for case in BACKUP_CASES if not case.edits)
SCHEDULE_CASES = OWN_CASES + TEMPLATE_CASES
