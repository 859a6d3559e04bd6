"""The status of an EtcdRestore, from what was planned."""

import msgspec

from etcd_operator.api.meta import Condition, condition, merge_conditions
from etcd_operator.api.restores import COMPLETED, FAILED, PENDING, RestoreStatus
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import bump_at
from etcd_operator.controllers.etcd_restore.decide import progress
from etcd_operator.controllers.etcd_restore.decide.actions import RestorePlan
from etcd_operator.controllers.etcd_restore.decide.state import RestoreState

COMPLETE, FAILURE = "Complete", "Failed"
CONDITIONS = frozenset({COMPLETE, FAILURE})
"""The conditions; a restore that has not ended has neither true."""


def status(
    previous: RestoreStatus,
    state: RestoreState,
    plan: RestorePlan,
    *,
    cluster_id: str,
    generation: int,
    now: str,
) -> RestoreStatus:
    """What is to be written; equal to `previous` if nothing is new. now: RFC 3339."""
    snapshot = plan.snapshot or previous.snapshot
    failure = previous.failure
    if plan.failure is not None:
        failure = msgspec.structs.replace(plan.failure, claims_kept=state.is_handed_over)
    previous = progress.published(previous, state)
    written = msgspec.structs.replace(
        previous,
        observed_generation=generation,
        phase=plan.phase,
        start_time=previous.start_time or now,
        url=previous.url or state.source.url,
        backup=previous.backup or state.source.backup,
        snapshot=snapshot,
        failure=failure,
        conditions=merge_conditions(previous.conditions, _conditions(plan, generation), now, own=CONDITIONS),
    )
    if snapshot is not None:
        version = previous.version or state.template_version or snapshot.etcd_version
        bump = previous.revision_bump or bump_at(state.created, snapshot.revision)
        written = msgspec.structs.replace(written, version=version, revision_bump=bump)
    if plan.phase == COMPLETED:
        written = msgspec.structs.replace(written, cluster_id=cluster_id, progress="100%")
    if plan.phase == FAILED:
        written = msgspec.structs.replace(written, members=(), progress="")
    if plan.phase != PENDING:
        written = msgspec.structs.replace(written, completion_time=now)
    return written


def _conditions(plan: RestorePlan, generation: int) -> tuple[Condition, ...]:
    verdicts = {COMPLETE: plan.phase == COMPLETED, FAILURE: plan.phase == FAILED}
    return tuple(
        condition(kind, holds=holds, reason=plan.reason, message=plan.message, generation=generation)
        for kind, holds in verdicts.items()
    )
