"""A majority of ephemeral members has lost its data: no quorum will ever answer again.

The data of the best survivor is restored into a new cluster that begins with one seed:

    confirm the loss, live -> entry in status -> seed pod -> it fetches, restores and serves
    -> existing-only -> survivors deleted -> opened to clients -> its cluster ID is recorded -> learners

The entry in status (`api.persisted.Recovery`) comes before the first object, so that an operator that
dies at any point continues the same recovery. Nothing is deleted before the seed serves
all that the survivor had (I6), and nothing here ever bootstraps an empty cluster (I4).

No read through a quorum can precede this (I12). Instead it is proven that there can be none: a
member is elected only by a majority of the voters that it lists itself. So if every member whose
data may still exist answers, and none of them lists a majority of such members, nobody can be
elected, and without an election no list changes. Only a pod that is missing, or that will never
run again, counts as lost here: one on a silent node may return, or may be serving clients on the
other side of a network partition (docs/decisions/007).

With `spec.recovery: Automatic` the user accepts another rule for members that are silent: `rules.given_up`.

Persistent members can come back with their data, so no loss of them can be proven; a person
gives them up: see `rules.manual_recovery`. What both share is in `rules.seed`.
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import Recovery
from etcd_operator.core.actions import Action, CreateMemberService, Plan, Remember
from etcd_operator.core.backup_tool.report import VerifiedBackup
from etcd_operator.core.members import Member, ordinal_of
from etcd_operator.core.recoveries import missing
from etcd_operator.core.recovery_actions import ConfirmLoss, ConfirmNothingLeft, DropUnassigned
from etcd_operator.core.rules.automatic import outlook
from etcd_operator.core.rules.from_backup import all_there_is, newer_than
from etcd_operator.core.rules.given_up import loss_of, returned, without_silent
from etcd_operator.core.rules.loss import Left, is_gone, left_of
from etcd_operator.core.rules.offline import known, read, unreadable
from etcd_operator.core.rules.seed import (
    ELECTION,
    RECHECK,
    SEED_POLL,
    answering,
    create_seed,
    hand_over,
    held,
    learned,
    newest,
    next_from_backup,
    next_recovery,
    read_among,
    reason_of,
    serves,
    under_way,
)
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade.member import is_blocked
from etcd_operator.core.versions import can_restore

LEARNER_GRACE = 10.0
"""Seconds for silent members without a vote: one that was just given it would be elected by then."""


def recover(state: ClusterState) -> Plan | None:
    """Begin a recovery when there is no other way, or continue one."""
    found = _situation(state)
    return _choose(state, found) if isinstance(found, Left) else found


def chooses_source(state: ClusterState) -> bool:
    """Whether a recovery chooses its source now: what the backup tool has matters then, and only then."""
    return isinstance(_situation(state), Left)


def _situation(state: ClusterState) -> Plan | Left | None:
    """What to do; or what is left, where a source is to be chosen."""
    if not state.persisted.is_bootstrapped or not state.kind.can_prove_loss:
        return None
    recovery = state.persisted.recovery
    if recovery is not None and state.persisted.is_recovering:
        return go_on(state, recovery)
    return None if state.has_quorum else _begin(state)


def _begin(state: ClusterState) -> Plan | Left | None:
    """What is left, if no quorum can return; or why that is not certain. None: a quorum may come back."""
    left = left_of(state)
    if not left.remaining or state.persisted.is_restoring:
        return left
    heard = without_silent(left)
    if heard is not None:
        return read(state) or heard
    if not left.responders:
        return None if _is_for_the_upgrade(state, left) else read(state) or _unheard(left)
    electable = [responder for responder in left.responders if left.may_elect(responder)]
    if electable:
        return _await_election(left, electable)
    return read(state) or _wait_for_silent(left) or _wait_for_deletion(left) or left


def _is_for_the_upgrade(state: ClusterState, left: Left) -> bool:
    """Whether the upgrade brings one back: it is stopped on purpose, or crashes at an undesired version."""
    upgrade = state.persisted.upgrade
    if upgrade is not None and upgrade.member in left.remaining:
        return True
    return any(is_blocked(state, member) for member in left.remaining.values())


def _unheard(left: Left) -> Plan:
    names = ", ".join(
        name if member.problem is None else f"{name} ({member.problem.reason})"
        for name, member in left.remaining.items()
    )
    return held(
        "QuorumLost",
        f"{names} may still have the data, but do not answer: no quorum answers, nothing is changed"
        f"{_why(left)}; docs/operations.md describes how to read such data by hand",
    )


def _why(left: Left) -> str:
    why = unreadable(left.state)
    return f"; {why}" if why else ""


def _await_election(left: Left, electable: list[Member]) -> Plan | None:
    """Members that answer are a majority by the list of one of them; None: they may be electing a leader.

    They cannot if they do not reach each other, or if that one missed the last change of members: it needs
    the vote of another whose log is longer, and that other needs more votes than are left. Nothing that etcd
    reports distinguishes the two cases (it reports the commit index, not the end of the log), so a person
    decides.
    """
    silent = any(member.report is None for member in left.remaining.values())
    if silent or left.state.unavailable_for < ELECTION:
        return None
    names, ahead = ", ".join(left.remaining), [w.name for w in left.responders if w not in electable]
    step = "check that they reach each other on port 2380"
    if ahead:
        behind = ", ".join(member.name for member in electable)
        step += (
            f"; if they do, {behind} missed the last change of members and can never lead: "
            f"delete its pod to recover from {', '.join(ahead)}"
        )
    return held("QuorumLost", f"{names} answer, but do not elect a leader: nothing is changed; {step}")


def _wait_for_silent(left: Left) -> Plan | None:
    """A silent voter may have data that the others lack: only a person can give it up."""
    silent = [name for name, member in left.remaining.items() if member.report is None]
    voters = [name for name in silent if name in left.all_voters]
    if voters:
        names = ", ".join(voters)
        return held(
            "QuorumLost",
            f"no quorum can return, but {names} may have newer data and does not answer: waiting for it"
            f"{_why(left)}; delete its pod to give it up and recover from the others{outlook(left.state)}",
        )
    if silent and left.state.unavailable_for < LEARNER_GRACE:
        return Plan.wait(
            "QuorumLost", f"no quorum can return; waiting for {', '.join(silent)}", requeue_after=1.0
        )
    return None


def _wait_for_deletion(left: Left) -> Plan | None:
    """What is being deleted may still have the newest data, and be needed by a person who stops the node."""
    if left.able:
        return None
    lost, names = ", ".join(left.lost_voters), ", ".join(responder.name for responder in left.responders)
    return held(
        "QuorumLost",
        f"{lost} lost for good, and {names} being deleted: no member is left to recover from",
    )


def _choose(state: ClusterState, left: Left) -> Plan:
    """Recover from the newest of survivors and backups."""
    if not left.remaining:
        found = all_there_is(state)
        return found if isinstance(found, Plan) else _restore_all(state, found)
    survivor = max(left.able, key=newest)
    chosen = newer_than(state, survivor)
    if isinstance(chosen, Plan):
        return chosen
    recovery = next_recovery(state, survivor) if chosen is None else next_from_backup(state, chosen)
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
    seeds = ", ".join(member.name for member in found)
    if found and all(_is_unassigned(member) for member in found):
        return Plan.act(
            *(DropUnassigned(name=member.name) for member in found),
            reason="QuorumLost",
            message=f"the survivor is lost, and {seeds} has no node, so it has no data: it is given up",
            requeue_after=SEED_POLL,
        )
    if found:
        # The kubelet may not have reported that yet, for long if its node is cut off.
        return held(
            "QuorumLost",
            f"the survivor is lost, and {seeds} may have fetched its data: waiting for it; delete its pod to "
            f"give that up and restore the backup {backup.name} at revision {backup.revision}",
        )
    recovery = next_from_backup(state, backup)
    message = f"the data of all members is lost: {under_way(recovery)}; {missing(recovery)}"
    return start(state, recovery, ConfirmNothingLeft(message=message))


def _is_unassigned(member: Member) -> bool:
    return member.pod is not None and not member.pod.is_assigned and not member.pod.is_terminating


def start(state: ClusterState, recovery: Recovery, proof: ConfirmLoss | ConfirmNothingLeft) -> Plan:
    """Record the recovery after a proof, then create its seed."""
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
        *([] if recovery.sha256 and _is_there(state, recovery) else [create_seed(recovery)]),
        Remember(persisted=replace(state.persisted, next_ordinal=ordinal_of(recovery.seed) + 1)),
        CreateMemberService(name=recovery.seed),
    ]


def _is_there(state: ClusterState, recovery: Recovery) -> bool:
    seed = state.by_name.get(recovery.seed)
    return seed is not None and not is_gone(seed)


def go_on(state: ClusterState, recovery: Recovery) -> Plan | Left | None:
    """Continue a recovery; or what is left, where it has to begin again."""
    ending = returned(state, recovery)
    if ending is not None:
        return ending
    seed = state.by_name.get(recovery.seed)
    is_made = state.persisted.next_ordinal > ordinal_of(recovery.seed)
    is_unread = bool(recovery.sha256) and recovery.survivor not in known(state)
    if not is_made and is_unread and not _is_there(state, recovery):
        return _begin(state)  # the seed would have nobody to fetch from
    if not is_made:
        return Plan.act(
            *_create(state, recovery),
            reason=reason_of(recovery),
            message=under_way(recovery),
            requeue_after=SEED_POLL,
        )
    if seed is None or is_gone(seed):
        return _begin(state)
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
    message, poll = under_way(recovery), SEED_POLL
    if not has_fetched and recovery.backup is None:
        if survivor is None or is_gone(survivor):
            return _begin(state)  # it can never fetch: another survivor may be left
        if survivor.report is None:
            # `etcdctl snapshot save` waits for ever, possibly in vain: see `_unheard`.
            message, poll = f"{message}; {survivor.name} does not answer now", RECHECK
    if seed.problem is not None:
        return held(
            seed.problem.reason,
            f"recovering from {recovery.survivor or 'a backup'}: {seed.name}: {seed.problem.message}; "
            "delete its pod to begin again",
        )
    return Plan.wait(reason_of(recovery), message, requeue_after=poll)
