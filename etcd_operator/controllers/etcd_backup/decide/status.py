"""The status of an EtcdBackup, from what was planned."""

import msgspec

from etcd_operator.api.backups import (
    BACKING_UP,
    COMPLETE,
    COMPLETED,
    FAILED,
    VERIFIED,
    BackupStatus,
    Verification,
)
from etcd_operator.api.meta import Condition, condition, merge_conditions
from etcd_operator.controllers.etcd_backup.decide.plan import BackupPlan
from etcd_operator.controllers.etcd_backup.decide.state import BackupState
from etcd_operator.controllers.etcd_backup.decide.verification import PENDING

FAILURE = "Failed"
CONDITIONS = frozenset({COMPLETE, FAILURE, VERIFIED})
"""The conditions; a backup that has not ended has none true. The last is only on what is to be verified."""


def status(
    previous: BackupStatus, state: BackupState, plan: BackupPlan, *, generation: int, now: str
) -> BackupStatus:
    """What is to be written; equal to `previous` if nothing is new. now: RFC 3339."""
    if state.is_to_be_verified:
        return _verified(previous, state, plan, generation=generation, now=now)
    written = msgspec.structs.replace(
        previous,
        observed_generation=generation,
        phase=plan.phase,
        start_time=previous.start_time or now,
        conditions=merge_conditions(
            previous.conditions, _conditions(state, plan, generation), now, own=CONDITIONS
        ),
    )
    if state.job is not None and not previous.job_name:
        written = msgspec.structs.replace(written, job_name=state.job.name, cluster_uid=state.source.uid)
    if plan.phase == COMPLETED:
        due = Verification(level=state.verify, start_time=now) if state.verify else None
        written = msgspec.structs.replace(written, url=state.url, verification=due)
    if plan.phase != BACKING_UP:
        written = msgspec.structs.replace(written, completion_time=now)
    if plan.manifest is not None:
        written = msgspec.structs.replace(written, **msgspec.structs.asdict(plan.manifest))
    return written


def _verified(
    previous: BackupStatus, state: BackupState, plan: BackupPlan, *, generation: int, now: str
) -> BackupStatus:
    """The status of a stored backup, of which only the verification changes."""
    verification = previous.verification or Verification(level=state.verify)
    if state.job is not None:
        verification = msgspec.structs.replace(verification, job_name=state.job.name)
    if plan.verdict is not None:
        verification = msgspec.structs.replace(verification, completion_time=now, took=plan.took)
    if plan.trial is not None:
        verification = msgspec.structs.replace(verification, etcd_version=plan.trial.etcd_version)
    others = [each for each in previous.conditions if each.type in CONDITIONS - {VERIFIED}]
    verdict = condition(
        VERIFIED, holds=plan.verdict, reason=plan.reason, message=plan.message, generation=generation
    )
    return msgspec.structs.replace(
        previous,
        observed_generation=generation,
        verification=verification,
        conditions=merge_conditions(previous.conditions, (*others, verdict), now, own=CONDITIONS),
    )


def _conditions(state: BackupState, plan: BackupPlan, generation: int) -> tuple[Condition, ...]:
    verdicts = {COMPLETE: plan.phase == COMPLETED, FAILURE: plan.phase == FAILED}
    found = [
        condition(kind, holds=holds, reason=plan.reason, message=plan.message, generation=generation)
        for kind, holds in verdicts.items()
    ]
    if plan.phase == COMPLETED and state.verify:
        message = f"the backup is stored, and not yet verified (spec.verify: {state.verify})"
        found.append(condition(VERIFIED, holds=None, reason=PENDING, message=message, generation=generation))
    return tuple(found)
