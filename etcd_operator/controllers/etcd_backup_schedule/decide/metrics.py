"""What metrics show of an EtcdBackupSchedule, from its status and its EtcdBackups.

Failures are counted, and size and duration of the last success kept, in memory: a schedule may keep no
EtcdBackup that has ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from etcd_operator.api.backup_schedules import ScheduleStatus
from etcd_operator.api.backups import COMPLETED, FAILED, BackupStatus, EtcdBackup
from etcd_operator.controllers.etcd_backup_schedule.decide.health import Verdict, last_success
from etcd_operator.controllers.etcd_backup_schedule.decide.state import ScheduleState
from etcd_operator.formats import moment
from etcd_operator.object_metrics import HEALTH, BackupMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleMemory:
    """What is remembered of the schedule with this UID."""

    uid: str
    failures: int = 0  # EtcdBackups that have failed since the first pass over the schedule
    # The UIDs of failed EtcdBackups that exist: the write that reports them may fail, and is then repeated.
    counted: frozenset[str] = frozenset()
    success: str = ""  # when the last successful backup was completed
    took: float | None = None  # seconds that the last successful backup took
    size: int | None = None  # bytes of the last successful backup


def remembered(
    kept: ScheduleMemory | None,
    uid: str,
    state: ScheduleState,
    ended: Iterable[EtcdBackup],
    wanted: ScheduleStatus,
) -> ScheduleMemory:
    """What is to be remembered after a pass that writes `wanted`, perhaps not for the first time.

    ended: those that it reports (`to_be_reported`); each is counted once.
    """
    if kept is None or kept.uid != uid:
        kept = ScheduleMemory(uid=uid)
    kept = _counted(kept, state, ended)
    newest = _newest(state, wanted.last_successful_time)
    if newest is not None:
        size = newest.size or None
        return replace(kept, success=newest.completion_time, took=_took(newest), size=size)
    if kept.success != wanted.last_successful_time:
        return replace(kept, success=wanted.last_successful_time, took=None, size=None)
    return kept


def schedule_metrics(
    kept: ScheduleMemory,
    cluster: str,
    state: ScheduleState,
    wanted: ScheduleStatus,
    verdict: Verdict,
    *,
    is_verified: bool,
) -> BackupMetrics:
    """The metrics of a schedule whose backups are of `cluster`. is_verified: whether these are to be."""
    success, verified = last_success(wanted, state.now), moment(wanted.last_verified_time)
    never = 0.0 if is_verified else None
    return BackupMetrics(
        cluster=cluster,
        last_success=success.timestamp() if success is not None else None,
        last_verified=verified.timestamp() if verified is not None else never,
        took=kept.took,
        size=kept.size,
        failures=kept.failures,
        is_healthy=HEALTH.get(verdict.status),
    )


def _counted(kept: ScheduleMemory, state: ScheduleState, ended: Iterable[EtcdBackup]) -> ScheduleMemory:
    failed = {each.metadata.uid for each in ended if each.status.phase == FAILED}
    existing = {each.metadata.uid for each in state.backups}
    failures = kept.failures + len(failed - kept.counted)
    return replace(kept, failures=failures, counted=kept.counted & existing | failed)


def _newest(state: ScheduleState, completed_at: str) -> BackupStatus | None:
    """The status of the EtcdBackup that is the last success."""
    completed = (each.status for each in state.backups if each.status.phase == COMPLETED)
    return next((each for each in completed if each.completion_time == completed_at), None)


def _took(status: BackupStatus) -> float | None:
    """Seconds from its acceptance to its end."""
    begun, ended = moment(status.start_time), moment(status.completion_time)
    return (ended - begun).total_seconds() if begun is not None and ended is not None else None
