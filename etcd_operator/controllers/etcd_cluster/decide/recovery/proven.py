"""How a recovery of ephemeral members begins once the loss is proven: with the newest survivor or backup.

The entry in status comes before the first object, so that an operator that dies at any point continues the
same recovery. Nothing here ever bootstraps an empty cluster (I4).

A new cluster that begins with a backup (`spec.restore`) is a recovery that replaces nothing.
"""

from collections.abc import Collection
from dataclasses import replace

import msgspec

from etcd_operator.api.recoveries import Authority, Recovery, Source
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    ConfirmLoss,
    ConfirmNothingLeft,
    DropEmpty,
    StartSurvivor,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import is_recent, without_request
from etcd_operator.controllers.etcd_cluster.decide.recovery.by_hand import (
    corrupt,
    deletion,
    without_responders,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import (
    begun_again,
    create,
    next_at_creation,
    next_from_survivor,
    next_from_tool,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import (
    Left,
    answering,
    best,
    is_corrupt,
    kept_survivor,
    never_had_data,
    read_among,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.source import newer_than, older_source
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import (
    SEED_POLL,
    held,
    missing,
    reason_of,
    source_of,
    under_way,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.clusters import ordinal_of
from etcd_operator.formats import duration_text
from etcd_operator.pods.reports import BackupReport
from etcd_operator.versions import can_restore

FIRST_PAUSE, LONGEST_PAUSE = 10, 600
"""Seconds: each pause between two attempts is twice as long as the one before."""


def begin(state: ClusterState, left: Left) -> Plan:
    """Recover from the newest of survivors and backups, or name the backup that a person may choose."""
    left = replace(left, state=state)  # with what was observed of backups since
    if not left.remaining:
        return _without_members(state)
    if left.is_empty:
        return _drop_empty(left.remaining.values())
    survivor = best(state, left.able)
    if survivor is None:
        return without_responders(left)
    chosen = newer_than(state, survivor)
    if isinstance(chosen, Plan):
        return chosen
    is_last_resort = is_corrupt(state, survivor)
    if chosen is None and is_last_resort:
        return corrupt(state, survivor)
    authority: Authority = "Automatic" if left.silent else "Proven"
    recovery = next_from_survivor(state, survivor, authority)
    if chosen is not None:
        recovery = next_from_tool(state, chosen, authority)
    seed = _newer_seed(state, recovery)
    if seed is not None:
        return _wait_for_seeds([seed], f"recover from {source_of(recovery)}")
    if not can_restore(recovery.version):
        return held(
            "RecoveryUnsupported",
            f"{_loss_of(left)}: etcd {recovery.version} cannot restore a snapshot without hiding "
            "writes from watchers (3.5.10 and later can): save a snapshot from a survivor by hand",
        )
    message = f"{_loss_of(left)}: {under_way(recovery)}; {missing(recovery)}"
    loss = ConfirmLoss(
        gone=tuple(name for name in left.lost_voters if name not in left.silent),
        silent=left.silent,
        survivors=answering(left.able),
        read=read_among(left.able),
        message=message,
        below=chosen.revision + is_last_resort if chosen is not None else 0,
        corrupt=() if is_last_resort else tuple(m.name for m in left.able if is_corrupt(state, m)),
    )
    return _start(state, recovery, loss)


def _without_members(state: ClusterState) -> Plan:
    """Go back to a backup, or to the survivor that the last recovery kept; the status then reports that."""
    found = older_source(state)
    if isinstance(found, Plan):
        return found
    if isinstance(found, BackupReport):
        return _restore_all(state, found)
    message = (
        f"{found.seed} was lost before another member had its data: recovering again from "
        f"{source_of(found)}; writes that {found.seed} acknowledged are missing"
    )
    return Plan.act(
        ConfirmNothingLeft(message=message, kept=found.survivor),
        StartSurvivor(name=found.survivor),
        Remember(persisted=begun_again(state, found)),
        reason="QuorumLost",
        message=message,
        requeue_after=SEED_POLL,
    )


def _loss_of(left: Left) -> str:
    """Who is lost or given up, for messages."""
    gone = ", ".join(name for name in left.lost_voters if name not in left.silent)
    if not left.silent:
        return f"{gone} lost for good, no quorum can return"
    given_up = f"{', '.join(left.silent)} {without_request(left.state)}"
    return f"{gone} lost for good, {given_up}" if gone else given_up


def _newer_seed(state: ClusterState, recovery: Recovery) -> Member | None:
    """The seed of the recovery under way, if it may have fetched more than this one would restore."""
    ongoing = state.persisted.recovery_under_way
    if ongoing is None or ongoing.revision <= recovery.revision:
        return None
    seed = state.by_name.get(ongoing.seed)
    return seed if seed is not None and state.kind.may_keep_data(seed) else None


def _restore_all(state: ClusterState, backup: BackupReport) -> Plan:
    """Nothing is left of any member."""
    kept = kept_survivor(state)
    found = [member for member in state.members if state.kind.may_keep_data(member) and member is not kept]
    if found:
        return _wait_for_seeds(found, f"restore the backup {backup.name} at revision {backup.revision}")
    recovery = next_from_tool(state, backup, "Proven")
    message = f"the data of all members is lost: {under_way(recovery)}; {missing(recovery)}"
    proof = ConfirmNothingLeft(message=message, kept=kept.name if kept is not None else "")
    return _start(state, recovery, proof)


def _wait_for_seeds(found: list[Member], instead: str) -> Plan:
    """Seeds that may have fetched what nobody else has: a person gives them up, or they have no node."""
    seeds = ", ".join(member.name for member in found)
    if all(never_had_data(member) for member in found):
        return _drop_empty(found)
    # The kubelet may not have reported that yet, for long if its node is cut off.
    return held(
        "QuorumLost",
        f"the survivor is lost, and {seeds} may have fetched its data: waiting for {seeds}; delete its pod "
        f"to give up that data and {instead}",
    )


def _drop_empty(found: Collection[Member]) -> Plan:
    """Delete pods without data; then wait until they are gone."""
    names, staying = ", ".join(m.name for m in found), [m for m in found if not _is_going(m)]
    why = "never joined" if any(m.pod is not None and m.pod.is_assigned for m in found) else "has no node"
    message = f"no quorum can return, and {names} {why}, so it has no data"
    if not staying:
        return held("QuorumLost", f"{message}: waiting until it is gone; {deletion(found)}")
    return Plan.act(
        *(DropEmpty(name=member.name) for member in staying),
        reason="QuorumLost",
        message=f"{message}: it is given up",
        requeue_after=SEED_POLL,
    )


def _is_going(member: Member) -> bool:
    return member.pod is not None and member.pod.is_terminating


def begin_at_creation(state: ClusterState, source: Source, version: str) -> Plan:
    """Record that a new cluster begins with a backup, then create its seed."""
    recovery = next_at_creation(state, source, version)
    return _start(state, recovery, ConfirmNothingLeft(message=under_way(recovery), is_loss=False))


def _start(state: ClusterState, recovery: Recovery, proof: ConfirmLoss | ConfirmNothingLeft) -> Plan:
    """Record the recovery after a proof, then create its seed."""
    failed = state.persisted.recovery_under_way
    is_better = failed is not None and bool(failed.failure)  # than the source of that attempt
    if failed is not None and not is_better and state.attempted_for < pause_after(failed.attempt):
        return _pause(state, failed, recovery)
    if is_recent(state.persisted.recovery):
        recovery = msgspec.structs.replace(recovery, is_unstable=True)
    persisted = replace(state.persisted, recovery=recovery, next_ordinal=ordinal_of(recovery.seed))
    return Plan.act(
        proof,
        Remember(persisted=persisted),
        *create(replace(state, desired=replace(state.desired, persisted=persisted)), recovery),
        reason=reason_of(recovery),
        message=proof.message,
        requeue_after=SEED_POLL,
    )


def pause_after(attempt: int) -> int:
    """Seconds between the begin of this attempt, if it fails, and that of the next one.

    The first failure proves nothing: the survivor may have been lost as well.
    """
    return min(FIRST_PAUSE << min(attempt - 2, 16), LONGEST_PAUSE) if attempt > 1 else 0


def _pause(state: ClusterState, failed: Recovery, following: Recovery) -> Plan:
    """Pods of seeds that fail at once, like those that a kubelet rejects, must not follow one another."""
    seconds = pause_after(failed.attempt)
    return Plan.wait(
        reason_of(following),
        f"{failed.attempt} attempts in a row have failed, the last one as {failed.seed}; the next one begins "
        f"{duration_text(seconds)} after that one began",
        requeue_after=seconds - state.attempted_for,
    )
