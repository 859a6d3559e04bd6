"""What a spec of an EtcdBackupSchedule means: whether it is valid, its times, and names of EtcdBackups."""

from datetime import UTC, datetime

from etcd_operator.api.backup_schedules import ScheduleSpec
from etcd_operator.api.definitions import schedule_validations as rules
from etcd_operator.api.definitions.limits import LONGEST_LABEL, NAME_LENGTH
from etcd_operator.controllers.etcd_backup_schedule.decide import retention
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import Cron, cron
from etcd_operator.controllers.shared.decide.backup_spec import problem
from etcd_operator.errors import InvalidSpec


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
    if wrong := retention.problem(spec):
        raise InvalidSpec(wrong)
    return times


def described(spec: ScheduleSpec) -> str:
    """Schedule and time zone in one text: an edit of either changes it."""
    return f"{spec.schedule.strip()} ({spec.time_zone or 'UTC'})"


def backup_name(schedule: str, due: datetime) -> str:
    """The name of the EtcdBackup of a time: one for each minute, so that no time is backed up twice."""
    return f"{schedule}-{due.astimezone(UTC):%Y%m%d-%H%M}"
