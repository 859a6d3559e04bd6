"""The rules of recoveries, as `decide.plan` lists them; what begins a restore in place is in `in_place`."""

from dataclasses import replace

import msgspec

from etcd_operator.api.recoveries import BucketBackup, ClaimBackup, Recovery, Source, ToolBackup
from etcd_operator.api.shared_keys import RECOVER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery import proven, requested
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import DropFilling, DropSeed, ReopenClients
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import STABLE_AFTER, is_stabilizing
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import (
    has_switched_over,
    leftovers,
    undeleted_seed,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import is_for, record
from etcd_operator.controllers.etcd_cluster.decide.recovery.machine import Lost, go_on
from etcd_operator.controllers.etcd_cluster.decide.recovery.proof import situation
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import Left
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import SEED_POLL, held
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import PATIENCE as PATIENCE_OF_UPGRADES
from etcd_operator.controllers.etcd_cluster.decide.upgrade.state_machine import roll
from etcd_operator.formats import duration_text
from etcd_operator.versions import can_restore

LONGEST_CLOSED = 120
"""Seconds for which a restore in place keeps clients out before the point of no return, at most."""

# A recovery begins, or goes on


def restore(state: ClusterState) -> Plan | None:
    """Begin a new cluster with the backup that its spec names, or continue."""
    if state.persisted.is_bootstrapped or state.persisted.bootstrap is not None:
        return None
    recovery = state.persisted.recovery
    if recovery is None or recovery.backup is None:
        return _restore(state)
    found = go_on(state, recovery)
    if isinstance(found, Plan):
        return found
    return proven.begin_at_creation(state, recovery.source, recovery.version)


def _restore(state: ClusterState) -> Plan | None:
    source = state.desired.restore
    if source is None or any(member.pod is not None for member in state.members):
        return None  # the bootstrap reports pods without a status
    if not can_restore(state.desired.version):
        return held(
            "RecoveryUnsupported",
            f"etcd {state.desired.version} cannot restore a backup without hiding writes from watchers: set "
            "spec.version to 3.5.10 or later",
        )
    backup: Source = ClaimBackup(cluster=source.cluster)
    if source.s3 is not None:
        backup = BucketBackup(cluster=source.cluster)
    elif state.tool_backups.has_source_tool:
        backup = ToolBackup(cluster=source.cluster, has_tls=state.tool_backups.is_source_secured)
    return proven.begin_at_creation(state, backup, state.desired.version)


def recover(state: ClusterState) -> Plan | None:
    """Begin a recovery where its loss is proven or it is requested, or continue one."""
    if not state.persisted.is_bootstrapped:
        return None
    if state.kind.can_prove_loss:
        found = situation(state)
        return proven.begin(state, found) if isinstance(found, Left) else found
    recovery = state.persisted.recovery_under_way
    if recovery is None:
        return requested.offered(state) if requested.is_requested(state) else None
    step = go_on(state, recovery)
    return _after(state, recovery, step) if isinstance(step, Lost) else step


def _after(state: ClusterState, recovery: Recovery, lost: Lost) -> Plan:
    """This attempt will never serve: the next one can be requested, or the cluster goes on as it was."""
    if not recovery.is_in_place:
        return requested.offered_again(state, recovery.seed, lost.why)
    # Before anything is removed: without it, nothing would show that this attempt has failed.
    failed = record(state, msgspec.structs.replace(recovery, failure=lost.why))
    return Plan.act(failed, reason="RestoreFailed", message=lost.why, requeue_after=0.0)


# It is offered, or refused


def offer(state: ClusterState) -> Plan | None:
    """Report a loss, and the name by which its recovery can be requested.

    This comes after all rules that may bring a quorum back: a member that an upgrade stops is not lost.
    """
    return requested.offer(state)


def offer_beside_upgrade(state: ClusterState) -> Plan | None:
    """Report the recovery, too, while an upgrade is blocked without a quorum: a person knows what helps.

    What silent members have is read first (`offline.read_silent`): it decides which recovery is possible.
    """
    if state.unavailable_for <= PATIENCE_OF_UPGRADES:
        return None
    blocked, possible = roll(state), requested.offer(state)
    if blocked is None or blocked.stage is not Stage.HELD or possible is None:
        return None
    if possible.actions:
        return possible
    return replace(blocked, message=f"{blocked.message}; {possible.message}")


def refused(state: ClusterState) -> Plan | None:
    """Report that a requested recovery is not needed: a quorum answers."""
    name, former = state.desired.recover, state.persisted.recovery
    if not name or (former is not None and is_for(name, former)):
        return None
    return Plan.hold(
        "RecoveryRefused",
        f"the annotation {RECOVER_ANNOTATION} requests {name}, but a quorum answers: "
        "there is nothing to recover, remove the annotation",
    )


# It has ended


def record_stable(state: ClusterState) -> Plan | None:
    """Record that a cluster serves after a recovery that began without a person."""
    recovery = state.persisted.recovery
    if recovery is None or not is_stabilizing(state) or state.served_for < STABLE_AFTER:
        return None
    stable = msgspec.structs.replace(recovery, is_unstable=False)
    message = "the cluster has served since its automatic recovery"
    return Plan.act(record(state, stable), reason="RecoveryStable", message=message)


def reopen(state: ClusterState) -> Plan | None:
    """Let the Service select members where no restore is about to end: nothing may keep clients out for long.

    No restore may be under way (a request to close the Service may take effect after its reply was given up,
    when the restore has ended). Or it stays before the point of no return: because the cluster is paused, its
    spec is invalid, or something refuses the writes.
    """
    recovery = state.persisted.recovery
    is_known = state.is_fresh and state.unseen is None and not state.conflict
    if recovery is None or not state.backups.is_closed or not is_known:
        return None
    opened = ReopenClients(name=recovery.seed)
    if not state.persisted.is_recovering:
        return Plan.act(opened, reason="Repairing", message="letting clients reach the cluster again")
    if not recovery.is_in_place or recovery.failure or has_switched_over(state, recovery):
        return None
    if state.desired.is_paused or state.desired.problem:
        message = "letting clients reach the cluster again: its restore in place does not go on"
        return Plan.act(opened, reason="Repairing", message=message)
    if state.backups.closed_for < LONGEST_CLOSED:
        return None
    why = (
        f"{recovery.seed} did not take over within {duration_text(LONGEST_CLOSED)} after clients had been "
        "cut off (an admission webhook or policy may refuse changes of its pod, EtcdPeer or claim)"
    )
    failed = record(state, msgspec.structs.replace(recovery, failure=why))
    return Plan.act(failed, opened, reason="RestoreFailed", message=why, requeue_after=0.0)


def created_late(state: ClusterState) -> Plan | None:
    """Delete the claim or the Job of a recovery that has ended, whose creation took effect after that.

    The API server may carry out a request whose reply it gave up. Where a member has the name of the seed by
    now, only the Job is deleted: it would write to the volume of that member.
    """
    recovery, job = state.persisted.recovery, state.backups.job
    if recovery is None or state.persisted.is_recovering or recovery.replaces_cluster:
        return None
    if not recovery.is_in_place and not state.has_quorum:
        return None  # it has to confirm the quorum that ended it
    seed = state.by_name.get(recovery.seed)
    is_unused = seed is not None and _is_unused(seed, recovery)
    if not is_unused and (job is None or job.is_terminating):
        return None
    action = DropSeed if is_unused or seed is None else DropFilling
    return Plan.act(
        action(name=recovery.seed),
        reason="RecoveryEnding",
        message=f"deleting what was created late for {recovery.seed}, which is not needed any more",
        requeue_after=SEED_POLL,
    )


def _is_unused(seed: Member, recovery: Recovery) -> bool:
    """Whether there is a claim for a seed and nothing that used it."""
    claim = seed.claim
    if claim is None or claim.is_terminating or seed.peer is not None or seed.pod is not None:
        return False
    return claim.token == recovery.token and not claim.cluster_id


def report(state: ClusterState) -> Plan | None:
    """Report what is left of a recovery that has ended, after all that concerns the cluster itself."""
    seed = undeleted_seed(state)
    if not seed:
        return None
    return held("RecoveryEnding", f"{seed} is not needed any more, and is being deleted{leftovers(state)}")
