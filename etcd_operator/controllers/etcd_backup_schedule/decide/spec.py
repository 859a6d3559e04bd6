"""What a spec of an EtcdBackupSchedule means: whether it is valid, its times, names, and its retention.

A stored backup belongs to a schedule if its manifest names the series of the schedule, which contains the
UID, and if its name is one that the template stands for. So nothing of another schedule is removed, of a
former one of the same name, or of another Kubernetes, and no copy under another name.
"""

import glob
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote

from etcd_operator.api.backup_schedules import SCHEDULED_ANNOTATION, Retention, ScheduleSpec
from etcd_operator.api.backups import PLACEHOLDER_PATTERN, EtcdBackup
from etcd_operator.api.definitions import schedule_validations as rules
from etcd_operator.api.definitions.limits import LONGEST_LABEL, NAME_LENGTH
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import Cron, cron
from etcd_operator.controllers.shared.decide.backup_spec import problem
from etcd_operator.errors import InvalidSpec
from etcd_operator.formats import moment

_DIGIT = "[0-9]"
_VARYING: dict[str, Callable[[str], str]] = {
    "Name": lambda schedule: f"{glob.escape(schedule)}-{_DIGIT * 8}-{_DIGIT * 4}",
    "UID": lambda _: "?" * 36,
    "CreationTimestamp": lambda _: "?" * len("2026-11-22T14:00:00Z"),
}
"""What a placeholder stands for in the EtcdBackups of a schedule, as a pattern of `fnmatch`."""


def checked(name: str, spec: ScheduleSpec) -> Cron:
    """The times of a valid spec. Raises `InvalidSpec` with what is wrong, as the API server reports it."""
    if len(name) > LONGEST_LABEL:
        raise InvalidSpec(f"metadata.name: {NAME_LENGTH}")
    times = cron(spec.schedule, spec.time_zone)
    wrong = problem(spec.backup_template, rules.TEMPLATE)
    if wrong:
        raise InvalidSpec(wrong)
    if not rules.DIFFERS.fits(spec.backup_template.destination.object_url_template):
        raise InvalidSpec(f"{rules.TEMPLATE}.destination.objectURLTemplate: {rules.DIFFERS.message}")
    if wrong := _retention_problem(spec):
        raise InvalidSpec(wrong)
    return times


def described(spec: ScheduleSpec) -> str:
    """Schedule and time zone in one text: an edit of either changes it."""
    return f"{spec.schedule.strip()} ({spec.time_zone or 'UTC'})"


def backup_name(schedule: str, due: datetime) -> str:
    """The name of the EtcdBackup of a time: one for each minute, so that no time is backed up twice."""
    return f"{schedule}-{due.astimezone(UTC):%Y%m%d-%H%M}"


def is_of_schedule(backup: EtcdBackup, schedule: str) -> bool:
    """Whether it has the name and the time that the schedule of this name would have given it."""
    due = moment(backup.metadata.annotations.get(SCHEDULED_ANNOTATION, ""))
    return due is not None and backup.metadata.name == backup_name(schedule, due)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFolder:
    """Where the backups of a schedule are stored."""

    url: str  # of the folder, with its options
    match: str  # a pattern of `fnmatch` for the names below it

    def names(self, urls: Iterable[str]) -> tuple[str, ...]:
        """The names below the folder that these URLs of backups have; URLs of other folders are left out."""
        folder = unquote(self.url.partition("?")[0])
        plain = (unquote(url.partition("?")[0]) for url in urls)
        return tuple(dict.fromkeys(each.removeprefix(folder) for each in plain if each.startswith(folder)))


def _retention_problem(spec: ScheduleSpec) -> str:
    """What is wrong with the retention of a spec that is valid otherwise; empty if nothing is."""
    retention = spec.retention
    if retention is None:
        return ""
    if retention.max_count is None and not retention.max_age:
        return f"spec.retention: {rules.RETENTION}"
    if retention.max_age and not rules.MAX_AGE.fits(retention.max_age):
        return f'spec.retention.maxAge: "{retention.max_age}" {rules.MAX_AGE.message}'
    if not rules.FIXED_PLACE.fits(spec.backup_template.destination.object_url_template):
        return f"spec.retention: {rules.FIXED_PLACE.message}"
    return ""


def described_retention(retention: Retention) -> str:
    """The retention in one text: an edit changes it."""
    limits = {"maxCount": retention.max_count, "maxAge": retention.max_age}
    return ", ".join(f"{name} {value}" for name, value in limits.items() if value)


def series(metadata: ObjectMeta) -> str:
    """The series of a schedule, as in the manifests of its backups."""
    return f"{metadata.namespace}/{metadata.name}/{metadata.uid}"


def place(template: str, metadata: ObjectMeta) -> BackupFolder:
    """Where the backups of a schedule are stored. template: one that `problem` accepts. metadata: its own."""
    url = re.sub("[{][{] *[.]Namespace *[}][}]", lambda _: metadata.namespace, template)
    address, _, options = url.partition("?")
    scheme, _, path = address.partition("://")
    bucket, *folders = path.split("/")
    fixed = next(number for number, each in enumerate(folders) if re.search(PLACEHOLDER_PATTERN, each))
    folder = "".join(f"{each}/" for each in (bucket, *folders[:fixed]))
    query = f"?{options}" if options else ""
    names = "/".join(folders[fixed:])
    return BackupFolder(url=f"{scheme}://{folder}{query}", match=_pattern(names, metadata.name))


def _pattern(names: str, schedule: str) -> str:
    """The pattern of `fnmatch` for the names of a schedule's backups, which may contain placeholders."""
    pattern, end = "", 0
    for found in re.finditer(PLACEHOLDER_PATTERN, names):
        pattern += glob.escape(unquote(names[end : found.start()])) + _VARYING[found[1]](schedule)
        end = found.end()
    return pattern + glob.escape(unquote(names[end:]))
