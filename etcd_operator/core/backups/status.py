"""The status of an EtcdBackup, from what was planned."""

import msgspec

from etcd_operator.api.backups import BackupStatus
from etcd_operator.api.meta import Condition, merge_conditions
from etcd_operator.core.backups.plan import BackupPlan
from etcd_operator.core.backups.state import BACKING_UP, COMPLETED, FAILED, BackupState

COMPLETE, FAILURE, VERIFIED = "Complete", "Failed", "Verified"
CONDITIONS = frozenset({COMPLETE, FAILURE, VERIFIED})
"""The conditions; a backup that has not ended has none true. The last is only on what is to be verified."""


def status(
    previous: BackupStatus, state: BackupState, plan: BackupPlan, *, generation: int, now: str
) -> BackupStatus:
    """What is to be written; equal to `previous` if nothing is new. now: RFC 3339."""
    written = msgspec.structs.replace(
        previous,
        observed_generation=generation,
        phase=plan.phase,
        start_time=previous.start_time or now,
        conditions=merge_conditions(previous.conditions, _conditions(plan, generation), now, own=CONDITIONS),
    )
    if state.job is not None:
        written = msgspec.structs.replace(written, job_name=state.job.name)
    if plan.phase == COMPLETED:
        written = msgspec.structs.replace(written, url=state.url)
    if plan.phase != BACKING_UP:
        written = msgspec.structs.replace(written, completion_time=now)
    if plan.manifest is not None:
        written = msgspec.structs.replace(
            written,
            revision=plan.manifest.revision,
            keys=plan.manifest.keys,
            size=plan.manifest.size,
            sha256=plan.manifest.sha256,
            etcd_version=plan.manifest.etcd_version,
            cluster_id=plan.manifest.cluster_id,
        )
    return written


def _conditions(plan: BackupPlan, generation: int) -> tuple[Condition, ...]:
    verdicts = {COMPLETE: plan.phase == COMPLETED, FAILURE: plan.phase == FAILED}
    return tuple(
        Condition(
            type=kind,
            status="True" if holds else "False",
            reason=plan.reason,
            message=plan.message,
            observed_generation=generation,
        )
        for kind, holds in verdicts.items()
    )
