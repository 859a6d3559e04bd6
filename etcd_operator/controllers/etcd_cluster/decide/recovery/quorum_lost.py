"""A majority of ephemeral members has lost its data: no quorum will ever answer again.

The data of the best survivor is restored into a new cluster that begins with one seed:

    confirm the loss, live -> entry in status -> seed pod -> it fetches, restores and serves
    -> existing-only -> survivors deleted -> opened to clients -> its cluster ID is recorded -> learners

The entry in status (`api.persisted.Recovery`) comes before the first object, so that an operator that
dies at any point continues the same recovery. Nothing is deleted before the seed serves
all that the survivor had (I6), and nothing here ever bootstraps an empty cluster (I4).

No read through a quorum can precede this (I12). Instead it is proven that there can be none: see
`recovery.quorum_return`.

Persistent members can come back with their data, so no loss of them can be proven; a person
gives them up: see `recovery.manual_recovery`. What both share is in `recovery.seed`.
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import Recovery
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, CreateMemberService, Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.member_names import ordinal_of
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import pause
from etcd_operator.controllers.etcd_cluster.decide.recovery import no_responders
from etcd_operator.controllers.etcd_cluster.decide.recovery.automatic import is_recent
from etcd_operator.controllers.etcd_cluster.decide.recovery.from_backup import (
    backup_newer_than,
    newest_backup,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.given_up import loss_of, returned
from etcd_operator.controllers.etcd_cluster.decide.recovery.loss import Left, is_gone
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import names_answering
from etcd_operator.controllers.etcd_cluster.decide.recovery.quorum_return import what_is_left
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_actions import (
    ConfirmLoss,
    ConfirmNothingLeft,
    DropUnassigned,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_entry import (
    learned,
    next_from_backup,
    next_recovery,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_texts import missing, source_of
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import (
    RECHECK,
    SEED_POLL,
    answering,
    create_seed,
    hand_over,
    held,
    newest,
    read_among,
    reason_of,
    serves,
    under_way,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.slow_seed import creating
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pods.tool_report import VerifiedBackup
from etcd_operator.versions import can_restore


def recover(state: ClusterState) -> Plan | None:
    """Begin a recovery when there is no other way, or continue one."""
    found = _situation(state)
    return _choose(state, found) if isinstance(found, Left) else found


def chooses_source(state: ClusterState) -> bool:
    """Whether a recovery chooses its source now: what the backup tool has decides then, and only then."""
    found = _situation(state)
    return isinstance(found, Left) and (bool(found.responders) or not found.remaining)


def names_backup(state: ClusterState) -> bool:
    """Whether the status names the backup that a person may restore. A quorum may still serve somewhere."""
    found = _situation(state)
    return isinstance(found, Left) and bool(found.remaining) and not found.responders


def _situation(state: ClusterState) -> Plan | Left | None:
    """What to do; or what is left, where a source is to be chosen."""
    if not state.persisted.is_bootstrapped or not state.kind.can_prove_loss:
        return None
    recovery = state.persisted.recovery_under_way
    if recovery is not None:
        return go_on(state, recovery)
    return None if state.has_quorum else what_is_left(state)


def _choose(state: ClusterState, left: Left) -> Plan:
    """Recover from the newest of survivors and backups, or name the backup that a person may choose."""
    if not left.remaining:
        found = newest_backup(state)
        return found if isinstance(found, Plan) else _restore_all(state, found)
    if not left.responders:
        return no_responders.hold(left)
    survivor = max(left.able, key=newest)
    chosen = backup_newer_than(state, survivor)
    if isinstance(chosen, Plan):
        return chosen
    recovery = next_recovery(state, survivor) if chosen is None else next_from_backup(state, chosen)
    seed = _newer_seed(state, recovery)
    if seed is not None:
        return _wait_for_seeds([seed], f"recover from {source_of(recovery)}")
    if not can_restore(recovery.version):
        return held(
            "RecoveryUnsupported",
            f"{loss_of(left)}: etcd {recovery.version} cannot restore a snapshot without hiding "
            "writes from watchers (3.5.10 and later can): save a snapshot from a survivor by hand",
        )
    recovery = msgspec.structs.replace(recovery, automatic=bool(left.silent))
    message = f"{loss_of(left)}: {under_way(recovery)}; {missing(recovery)}"
    loss = ConfirmLoss(
        gone=tuple(name for name in left.lost_voters if name not in left.silent),
        silent=left.silent,
        survivors=answering(left.able),
        read=read_among(left.able),
        message=message,
        backup=chosen.revision if chosen is not None else 0,
    )
    return start(state, recovery, loss)


def _restore_all(state: ClusterState, backup: VerifiedBackup) -> Plan:
    """Nothing is left of any member."""
    found = [member for member in state.members if not is_gone(member)]
    instead = f"restore the backup {backup.name} at revision {backup.revision}"
    if found:
        return _wait_for_seeds(found, instead)
    recovery = next_from_backup(state, backup)
    message = f"the data of all members is lost: {under_way(recovery)}; {missing(recovery)}"
    return start(state, recovery, ConfirmNothingLeft(message=message))


def _wait_for_seeds(found: list[Member], instead: str) -> Plan:
    """Seeds that may have fetched what nobody else has: a person gives them up, or they have no node."""
    seeds = ", ".join(member.name for member in found)
    if all(_is_unassigned(member) for member in found):
        return Plan.act(
            *(DropUnassigned(name=member.name) for member in found),
            reason="QuorumLost",
            message=f"the survivor is lost, and {seeds} has no node, so it has no data: it is given up",
            requeue_after=SEED_POLL,
        )
    # The kubelet may not have reported that yet, for long if its node is cut off.
    return held(
        "QuorumLost",
        f"the survivor is lost, and {seeds} may have fetched its data: waiting for {seeds}; delete its pod "
        f"to give up that data and {instead}",
    )


def _newer_seed(state: ClusterState, recovery: Recovery) -> Member | None:
    """The seed of the recovery under way, if it may have fetched more than this one would restore."""
    ongoing = state.persisted.recovery_under_way
    if ongoing is None or ongoing.revision <= recovery.revision:
        return None
    return _seed_of(state, ongoing)


def _is_unassigned(member: Member) -> bool:
    return member.pod is not None and not member.pod.is_assigned and not member.pod.is_terminating


def start(state: ClusterState, recovery: Recovery, proof: ConfirmLoss | ConfirmNothingLeft) -> Plan:
    """Record the recovery after a proof, then create its seed."""
    recovery = msgspec.structs.replace(recovery, follows_automatic=is_recent(state.persisted.recovery))
    persisted = replace(state.persisted, recovery=recovery, next_ordinal=ordinal_of(recovery.seed))
    return Plan.act(
        proof,
        Remember(persisted=persisted),
        *_create(replace(state, desired=replace(state.desired, persisted=persisted)), recovery),
        reason=reason_of(recovery),
        message=proof.message,
        requeue_after=SEED_POLL,
    )


def _create(state: ClusterState, recovery: Recovery) -> list[Action]:
    """The seed; then its number is used up: that distinguishes a lost seed from one never created.

    One that is there is not created again: its survivor may not be read any more.
    """
    return [
        *([] if recovery.sha256 and _seed_of(state, recovery) else [create_seed(recovery)]),
        Remember(persisted=replace(state.persisted, next_ordinal=ordinal_of(recovery.seed) + 1)),
        CreateMemberService(name=recovery.seed),
    ]


def _seed_of(state: ClusterState, recovery: Recovery) -> Member | None:
    """The seed, unless it is lost."""
    seed = state.by_name.get(recovery.seed)
    return None if seed is None or is_gone(seed) else seed


def go_on(state: ClusterState, recovery: Recovery) -> Plan | Left | None:
    """Continue a recovery; or what is left, where it has to begin again."""
    ending = returned(state, recovery)
    if ending is not None:
        return ending
    seed = _seed_of(state, recovery)
    is_made = state.persisted.next_ordinal > ordinal_of(recovery.seed)
    is_unread = bool(recovery.sha256) and recovery.survivor not in names_answering(state)
    if not is_made and is_unread and seed is None:
        return what_is_left(state)  # the seed would have nobody to fetch from
    if not is_made:
        return Plan.act(
            *_create(state, recovery),
            reason=reason_of(recovery),
            message=under_way(recovery),
            requeue_after=SEED_POLL,
        )
    if seed is None:
        return what_is_left(state)
    answer = seed.answer
    if state.has_quorum and answer is not None and serves(answer, recovery):
        left = [m for m in state.members if m.name != recovery.seed and _is_to_retire(recovery, m)]
        return hand_over(state, learned(recovery, seed), answer, left)
    return _await_seed(state, recovery, seed)


def _is_to_retire(recovery: Recovery, member: Member) -> bool:
    """Whether something is left to be done about an old member: one that may still run gets no clients."""
    is_routed = member.pod is not None and member.pod.is_routed
    return not member.is_terminating or (recovery.automatic and is_routed)


def _await_seed(state: ClusterState, recovery: Recovery, seed: Member) -> Plan | Left | None:
    has_fetched = seed.pod is not None and seed.pod.has_fetched
    survivor = state.by_name.get(recovery.survivor)
    message, poll = under_way(recovery), pause(seed, SEED_POLL)
    if not has_fetched and recovery.backup is None:
        if survivor is None or is_gone(survivor):
            return what_is_left(state)  # it can never fetch: another survivor may be left
        if survivor.report is None:
            # `etcdctl snapshot save` waits for ever, possibly in vain: see `recovery.quorum_return`.
            message, poll = f"{message}; {survivor.name} does not answer now", RECHECK
    if seed.problem is not None:
        return held(
            seed.problem.reason,
            f"recovering from {recovery.survivor or 'a backup'}: {seed.name}: {seed.problem.message}; "
            f"delete its pod to begin again{_without_backups(state, recovery)}",
        )
    return Plan.wait(reason_of(recovery), f"{message}{creating(seed)}", requeue_after=poll)


def _without_backups(state: ClusterState, recovery: Recovery) -> str:
    """For a new cluster: neither another pod nor an edit helps if it names a cluster without backups."""
    if recovery.backup is None or state.persisted.is_bootstrapped:
        return ""
    return (
        f"; if {recovery.backup.cluster} has no backups there, delete this EtcdCluster and create it again "
        "with another spec.restore, or without: it cannot be changed"
    )
