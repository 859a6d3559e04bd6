"""Joins the caches into one `ScheduleState`."""

from dataclasses import dataclass, replace

import msgspec

from etcd_operator.api.backup_schedules import EtcdBackupSchedule, ScheduleSpec
from etcd_operator.api.backups import EtcdBackup
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_backup_schedule.caches import ScheduleCaches
from etcd_operator.controllers.etcd_backup_schedule.decide.cron import Cron
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import checked, described, is_of_schedule
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState
from etcd_operator.controllers.etcd_backup_schedule.pruner import observe_prune
from etcd_operator.controllers.shared.job_reader import JobReader
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.decoding import convert
from etcd_operator.errors import InvalidSpec
from etcd_operator.formats import instant, moment


@dataclass(frozen=True, kw_only=True)
class ScheduleObserver:
    """Observes EtcdBackupSchedules, from the caches and the wall clock.

    Only what a Job has reported is read from the API server, where the caches do not have it.
    """

    caches: ScheduleCaches
    jobs: JobReader
    clock: Clock

    def observe(self, schedule: EtcdBackupSchedule, objects: Objects) -> ScheduleState:
        """What is observed of one schedule. objects: reads live. Raises the errors of `Client`."""
        state, spec = self._observe(schedule)
        if spec is None:
            return state
        return replace(state, prune=observe_prune(self.jobs, schedule, spec, state.backups, objects))

    def observe_backups(self, schedule: EtcdBackupSchedule) -> ScheduleState:
        """The same without the Job that removes old backups: from the caches alone."""
        state, _ = self._observe(schedule)
        return state

    def _observe(self, schedule: EtcdBackupSchedule) -> tuple[ScheduleState, ScheduleSpec | None]:
        metadata, previous = schedule.metadata, schedule.status
        spec, times, wrong = _parsed(schedule)
        found = [each for each in self.caches.backups_of(metadata.uid) if is_of_schedule(each, metadata.name)]
        own = [each for each in found if is_own(each, schedule)]
        state = ScheduleState(
            name=metadata.name,
            now=self.clock.now(),
            created=instant(metadata.creation_timestamp),
            times=times,
            problem=wrong,
            is_deleting=metadata.is_deleting,
            known=previous.schedule if previous.observed_generation else None,
            since=moment(previous.since),
            backups=tuple(own),
            others=tuple(each for each in found if each not in own),
        )
        return (_with_spec(state, spec) if spec is not None else state), spec


def is_own(backup: EtcdBackup, schedule: EtcdBackupSchedule) -> bool:
    """Whether the schedule would create it like this, or is on record to have created it last.

    Whoever may create EtcdBackups can name any owner: one with another spec is not counted.
    """
    last = schedule.status.last_backup
    is_last = last is not None and last.name == backup.metadata.name
    return is_last or backup.spec == schedule.spec.get("backupTemplate")


def _parsed(schedule: EtcdBackupSchedule) -> tuple[ScheduleSpec | None, Cron | None, str]:
    """The spec and its times, or what is wrong with it."""
    try:
        spec = convert(schedule.spec, ScheduleSpec)
        return spec, checked(schedule.metadata.name, spec), ""
    except msgspec.ValidationError as error:
        return None, None, f"spec: {error}"
    except InvalidSpec as error:
        return None, None, str(error)


def _with_spec(state: ScheduleState, spec: ScheduleSpec) -> ScheduleState:
    return replace(
        state,
        described=described(spec),
        is_suspended=spec.suspend,
        is_verified=spec.backup_template.verify is not None,
        deadline=spec.starting_deadline_seconds,
        successful_kept=spec.successful_backups_history_limit,
        failed_kept=spec.failed_backups_history_limit,
    )
