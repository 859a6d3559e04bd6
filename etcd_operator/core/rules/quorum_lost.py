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

Persistent members can come back with their data, so no loss of them can be proven; a person
gives them up: see `rules.manual_recovery`. What both share is in `rules.seed`.
"""

from dataclasses import dataclass, replace

from etcd_operator.api.persisted import Recovery
from etcd_operator.core.actions import Action, ConfirmLoss, CreateMemberService, Plan, Remember
from etcd_operator.core.members import Member, ordinal_of, quorum
from etcd_operator.core.rules.seed import (
    ELECTION,
    RECHECK,
    SEED_POLL,
    create_seed,
    hand_over,
    held,
    newest,
    next_recovery,
    serves,
    under_way,
    voters_of,
)
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade.member import is_blocked
from etcd_operator.core.versions import can_restore

LEARNER_GRACE = 10.0
"""Seconds for silent members without a vote: one that was just given it would be elected by then."""


def recover(state: ClusterState) -> Plan | None:
    """Begin a recovery when there is no other way, or continue one."""
    if not state.persisted.is_bootstrapped or not state.kind.can_prove_loss:
        return None
    recovery = state.persisted.recovery
    if recovery is not None and state.persisted.is_recovering:
        return _go_on(state, recovery)
    return None if state.has_quorum else _begin(state)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """What is left of the lost cluster.

    remaining: members whose data may still exist. responders: those of them that report their member list.
    """

    remaining: dict[str, Member]
    responders: tuple[Member, ...]
    state: ClusterState

    def may_elect(self, responder: Member) -> bool:
        """Whether the voters that this member lists may still be a majority."""
        voters = voters_of(self.state, responder)
        able = [name for name in voters if not name or name in self.remaining]
        return len(able) >= quorum(len(voters))

    @property
    def all_voters(self) -> tuple[str, ...]:
        """Every voter that any responder lists, by number."""
        names = {name for responder in self.responders for name in voters_of(self.state, responder) if name}
        return tuple(sorted(names, key=ordinal_of))


def _left(state: ClusterState) -> _Left:
    recovery = state.persisted.recovery
    seed = recovery.seed if recovery is not None and state.persisted.is_recovering else ""
    remaining = {m.name: m for m in state.members if m.name != seed and not _is_gone(m)}
    responders = [m for m in remaining.values() if m.answer is not None and m.answer.members]
    return _Left(remaining=remaining, responders=tuple(responders), state=state)


def _is_gone(member: Member) -> bool:
    """Whether its data is certainly gone; a member that cannot be reached still has it."""
    return member.pod is None or member.pod.is_finished


def _begin(state: ClusterState) -> Plan | None:
    """Recover from the best survivor, or report why not; None: a quorum may come back by itself."""
    left = _left(state)
    if not left.remaining:
        return held(
            "NoBackup",
            "no pod of a member is found by its labels (etcd_cluster, etcd_node): the data of all members is "
            "lost, and no empty cluster is bootstrapped in its place; if pods run without these labels, "
            "restore them; if not, delete the cluster and create it again to begin with an empty one",
        )
    if not left.responders:
        return None if _is_for_the_upgrade(state, left) else _unheard(left)
    electable = [responder for responder in left.responders if left.may_elect(responder)]
    if electable:
        return _await_election(left, electable)
    return _wait_for_silent(left) or _recover_from(state, left)


def _is_for_the_upgrade(state: ClusterState, left: _Left) -> bool:
    """Whether the upgrade brings one back: it is stopped on purpose, or crashes at an undesired version."""
    upgrade = state.persisted.upgrade
    if upgrade is not None and upgrade.member in left.remaining:
        return True
    return any(is_blocked(state, member) for member in left.remaining.values())


def _unheard(left: _Left) -> Plan:
    names = ", ".join(
        name if member.problem is None else f"{name} ({member.problem.reason})"
        for name, member in left.remaining.items()
    )
    restarted = [m.name for m in left.remaining.values() if m.pod is not None and m.pod.restarts]
    hint = ""
    if restarted:
        hint = (
            f"; {', '.join(restarted)} restarted, and an etcd that restarts without a quorum does not "
            "answer: docs/operations.md describes how to recover its data"
        )
    return held(
        "QuorumLost",
        f"{names} may still have the data, but do not answer: no quorum answers, nothing is changed{hint}",
    )


def _await_election(left: _Left, electable: list[Member]) -> Plan | None:
    """Members that answer are a majority by the list of one of them; None: they may be electing a leader.

    They cannot if they do not reach each other, or if that one missed the last change of members: it needs
    the vote of another whose log is longer, and that other needs more votes than are left. Nothing that etcd
    reports distinguishes the two cases (it reports the commit index, not the end of the log), so a person
    decides.
    """
    silent = any(member.answer is None for member in left.remaining.values())
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


def _wait_for_silent(left: _Left) -> Plan | None:
    """A silent voter may have data that the others lack: only a person can give it up."""
    silent = [name for name, member in left.remaining.items() if member.answer is None]
    voters = [name for name in silent if name in left.all_voters]
    if voters:
        names = ", ".join(voters)
        return held(
            "QuorumLost",
            f"no quorum can return, but {names} may have newer data and does not answer: waiting for it; "
            "delete its pod to give it up and recover from the others",
        )
    if silent and left.state.unavailable_for < LEARNER_GRACE:
        return Plan.wait(
            "QuorumLost", f"no quorum can return; waiting for {', '.join(silent)}", requeue_after=1.0
        )
    return None


def _recover_from(state: ClusterState, left: _Left) -> Plan:
    lost = ", ".join(name for name in left.all_voters if name not in left.remaining)
    able = [m for m in left.responders if m.pod is not None and not m.pod.is_terminating]
    if not able:
        names = ", ".join(responder.name for responder in left.responders)
        return held(
            "QuorumLost",
            f"{lost} lost for good, and {names} being deleted: no member is left to recover from",
        )
    survivor = max(able, key=newest)
    recovery = next_recovery(state, survivor)
    if not can_restore(recovery.version):
        return held(
            "RecoveryUnsupported",
            f"{lost} lost for good: etcd {recovery.version} cannot restore a snapshot without hiding "
            "writes from watchers (3.5.10 and later can): save a snapshot from a survivor by hand",
        )
    message = (
        f"{lost} lost for good, no quorum can return: recovering from {survivor.name} at revision "
        f"{recovery.revision} as {recovery.seed}; writes that only lost members had are missing"
    )
    loss = ConfirmLoss(
        gone=tuple(name for name in left.all_voters if name not in left.remaining),
        survivors=tuple((m.name, m.pod.uid) for m in able if m.pod is not None),
        message=message,
    )
    persisted = replace(state.persisted, recovery=recovery, next_ordinal=ordinal_of(recovery.seed))
    return Plan.act(
        loss,
        Remember(persisted=persisted),
        *_create(replace(state, desired=replace(state.desired, persisted=persisted)), recovery),
        reason="Recovering",
        message=message,
        requeue_after=SEED_POLL,
    )


def _create(state: ClusterState, recovery: Recovery) -> list[Action]:
    """The seed; then its number is used up: that distinguishes a lost seed from one never created."""
    return [
        create_seed(recovery),
        Remember(persisted=replace(state.persisted, next_ordinal=ordinal_of(recovery.seed) + 1)),
        CreateMemberService(name=recovery.seed),
    ]


def _go_on(state: ClusterState, recovery: Recovery) -> Plan | None:
    seed = state.by_name.get(recovery.seed)
    is_made = state.persisted.next_ordinal > ordinal_of(recovery.seed)
    if not is_made:
        return Plan.act(
            *_create(state, recovery),
            reason="Recovering",
            message=under_way(recovery),
            requeue_after=SEED_POLL,
        )
    if seed is None or _is_gone(seed):
        return _begin(state)
    answer = seed.answer
    if state.has_quorum and answer is not None and serves(answer, recovery):
        left = [m for m in state.members if m.name != recovery.seed and not m.is_terminating]
        return hand_over(state, recovery, answer, left)
    return _await_seed(state, recovery, seed)


def _await_seed(state: ClusterState, recovery: Recovery, seed: Member) -> Plan | None:
    has_fetched = seed.pod is not None and seed.pod.has_fetched
    survivor = state.by_name.get(recovery.survivor)
    message, poll = under_way(recovery), SEED_POLL
    if not has_fetched:
        if survivor is None or _is_gone(survivor):
            return _begin(state)  # it can never fetch: another survivor may be left
        if survivor.answer is None:
            # `etcdctl snapshot save` waits for ever, possibly in vain: see `_unheard`.
            message, poll = f"{message}; {survivor.name} does not answer now", RECHECK
    if seed.problem is not None:
        return held(
            seed.problem.reason,
            f"recovering from {recovery.survivor}: {seed.name}: {seed.problem.message}; "
            "delete its pod to begin again",
        )
    return Plan.wait("Recovering", message, requeue_after=poll)
