"""A majority of persistent members is silent: a recovery from a survivor begins only on request.

Their data is on volumes, so it may come back whatever happened to pods and nodes, and no loss can be
proven. So the operator waits, reports which members are missing, and names the recovery that is
possible; a person who knows that the data is lost sets the annotation `recover` to that name. It
differs for each cluster ID, survivor and attempt: one that is left on the object, or in a manifest,
never begins another recovery.

    requested by name -> confirm the silence, live -> entry in status -> seed (EtcdPeer) under an
    unused number -> it fetches, restores and serves -> existing-only: the point of no return ->
    all others are deleted, their claims annotated and kept -> clients are moved -> the cluster ID is
    recorded -> learners under numbers that no kept claim has (`rules.scale`)

Until the seed is existing-only nothing of the old cluster is changed, and if a quorum of it answers
again, the seed is deleted instead: nothing is lost then. What ephemeral members share is in
`rules.seed`; the reasons are in docs/decisions/008.
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.improbable import DELETE_CLAIMS, RECOVER_ANNOTATION
from etcd_operator.api.persisted import Recovery
from etcd_operator.core.actions import ConfirmSilence, DropSeed, Plan, Remember
from etcd_operator.core.members import Member, quorum
from etcd_operator.core.rules.seed import (
    ELECTION,
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
from etcd_operator.core.versions import can_restore

SILENCE = 10.0
"""Seconds without a quorum before anybody is given up: an election, or a restart, takes less."""


def recover(state: ClusterState) -> Plan | None:
    """Begin the recovery that is requested, or report why not; or continue one."""
    if not state.persisted.is_bootstrapped or state.kind.can_prove_loss:
        return None
    recovery = state.persisted.recovery
    if recovery is not None and state.persisted.is_recovering:
        return _go_on(state, recovery)
    return _offer(state) if _is_requested(state) else None


def offer(state: ClusterState) -> Plan | None:
    """Report a loss, and the name by which its recovery can be requested.

    This comes after all rules that may bring a quorum back: a member that an upgrade stops is not lost.
    """
    return None if state.kind.can_prove_loss or state.has_quorum else _offer(state)


def refused(state: ClusterState) -> Plan | None:
    """Report that a requested recovery is not needed: a quorum answers."""
    requested, former = state.desired.recover, state.persisted.recovery
    if not requested or (former is not None and _is_for(requested, former)):
        return None
    return Plan.hold(
        "RecoveryRefused",
        f"the annotation {RECOVER_ANNOTATION} requests {requested}, but a quorum answers: "
        "there is nothing to recover, remove the annotation",
    )


def _is_requested(state: ClusterState) -> bool:
    """Whether the recovery that is possible now is requested; others are reported after every other rule.

    A request stays in the annotation when it was carried out, or became outdated before it was. It must not
    stop repairs then.
    """
    able = [member for member in _responders(state) if _remains(member)]
    if state.has_quorum or not able or not state.desired.recover:
        return False
    return _is_for(state.desired.recover, next_recovery(state, max(able, key=newest)))


def name_of(recovery: Recovery) -> str:
    """The name by which a person requests this recovery, and no other."""
    return f"{recovery.replaces}/{recovery.survivor}/{recovery.generation}"


def _is_for(requested: str, recovery: Recovery) -> bool:
    return requested.removesuffix(DELETE_CLAIMS) == name_of(recovery)


def _offer(state: ClusterState) -> Plan | None:
    """Begin the requested recovery, or name the possible one; None: there is no loss to report."""
    requested, left = state.desired.recover, _responders(state)
    if _may_elect(state, left):
        return None
    able = [m for m in left if _remains(m)]
    if not able and not requested:
        return None  # no survivor: another rule reports who is silent
    if not able:
        return held(
            "RecoveryRefused",
            f"the annotation {RECOVER_ANNOTATION} requests {requested}, but no member that could be "
            "recovered from answers: nothing is changed; docs/operations.md describes how to recover the "
            "data of a member that restarted without a quorum",
        )
    return _answer_to(state, requested, next_recovery(state, max(able, key=newest)), left)


def _answer_to(state: ClusterState, requested: str, recovery: Recovery, left: list[Member]) -> Plan:
    silent = _silent(state, left)
    source = f"{recovery.survivor} at revision {recovery.revision}"
    if not can_restore(recovery.version):
        return held(
            "RecoveryUnsupported",
            f"{silent}: no quorum answers, waiting for them; etcd {recovery.version} cannot restore a "
            "snapshot without hiding writes from watchers (3.5.10 and later can)",
        )
    name = name_of(recovery)
    how = (
        f"to give them up for good and recover from {source}, annotate the EtcdCluster with "
        f"{RECOVER_ANNOTATION}={name} (writes that only they have are lost then; their claims are kept, "
        f"or deleted where {DELETE_CLAIMS} is appended to that name)"
    )
    if not requested:
        return held(
            "QuorumLost",
            f"{silent}: no quorum answers, waiting for their data to come back; if it never will: {how}",
        )
    if not _is_for(requested, recovery):
        return held(
            "RecoveryRefused",
            f"the annotation {RECOVER_ANNOTATION} requests {requested}, which is not the recovery that is "
            f"possible now; {silent}: remove the annotation to wait for their data, or {how}",
        )
    led = any(member.answer is not None and member.answer.leader for member in left)
    if led or state.unavailable_for < SILENCE:
        return Plan.wait(
            "QuorumLost", f"{silent}: confirming the loss before recovering as {name}", requeue_after=1.0
        )
    return _begin(state, recovery, left, silent)


def _begin(state: ClusterState, recovery: Recovery, left: list[Member], silent: str) -> Plan:
    message = (
        f"{silent} given up as requested: recovering from {recovery.survivor} at revision "
        f"{recovery.revision} as {recovery.seed}; writes that only they had are missing"
    )
    silence = ConfirmSilence(
        survivors=tuple((m.name, m.pod.uid) for m in left if m.pod is not None), message=message
    )
    return Plan.act(
        silence,
        Remember(persisted=replace(state.persisted, recovery=recovery)),
        create_seed(recovery),
        reason="Recovering",
        message=message,
        requeue_after=SEED_POLL,
    )


def _go_on(state: ClusterState, recovery: Recovery) -> Plan:
    seed, left = state.by_name.get(recovery.seed), _responders(state)
    is_existing_only = seed is not None and _is_existing_only(recovery, seed)
    if not is_existing_only and any(_is_majority(state, responder, led=True) for responder in left):
        return _return(state, recovery)
    if seed is None:
        return _make(state, recovery, left)
    if not is_existing_only and _is_broken(seed):
        return _offer(state) or _nobody(recovery)
    if state.has_quorum and seed.answer is not None and serves(seed.answer, recovery):
        rest = [m for m in state.members if m is not seed and not _is_leaving(m)]
        return hand_over(state, recovery, seed.answer, rest, _kept(state, recovery, rest))
    return _await_seed(recovery, seed, left)


def _kept(state: ClusterState, recovery: Recovery, given_up: list[Member]) -> set[str]:
    """Members whose claims are kept: all but attempts, unless the request includes their deletion."""
    if state.desired.recover == name_of(recovery) + DELETE_CLAIMS:
        return set()
    return {m.name for m in given_up if m.claim is not None and not state.is_attempt(m.claim)}


def _make(state: ClusterState, recovery: Recovery, left: list[Member]) -> Plan:
    """Create the seed that status names: on an empty volume, with the survivor's data."""
    if all(member.name != recovery.survivor for member in left):
        return _offer(state) or _nobody(recovery)
    return Plan.act(
        create_seed(recovery), reason="Recovering", message=under_way(recovery), requeue_after=SEED_POLL
    )


def _return(state: ClusterState, recovery: Recovery) -> Plan:
    """A quorum is back, and nothing of it was changed: what was created for the recovery is deleted."""
    message = f"a quorum of the members that were to be given up answers again: {recovery.seed} is not needed"
    ours = [m for m in state.members if m.name == recovery.seed or _is_attempt(state, m)]
    drops = [DropSeed(name=member.name) for member in ours if not _is_leaving(member)]
    if ours:
        return Plan.act(*drops, reason="RecoveryEnding", message=message, requeue_after=SEED_POLL)
    persisted = replace(state.persisted, recovery=msgspec.structs.replace(recovery, replaces=""))
    return Plan.act(Remember(persisted=persisted), reason="QuorumReturned", message=message)


def _nobody(recovery: Recovery) -> Plan:
    return held(
        "QuorumLost",
        f"{recovery.seed} was lost before it served, and no member that could be recovered from answers: "
        "nothing is changed",
    )


def _await_seed(recovery: Recovery, seed: Member, left: list[Member]) -> Plan:
    message = under_way(recovery)
    has_fetched = seed.pod is not None and seed.pod.has_fetched
    if not has_fetched and all(member.name != recovery.survivor for member in left):
        message += f"; {recovery.survivor} does not answer now"
    if seed.problem is not None:
        return held(
            seed.problem.reason,
            f"{message}; {seed.problem.message}; to begin again: kubectl delete etcdpeer {seed.name}",
        )
    return Plan.wait("Recovering", message, requeue_after=SEED_POLL)


def _responders(state: ClusterState) -> list[Member]:
    """The voters of the old cluster that report their list: a learner may have only a part of the data."""
    old = state.persisted.cluster_id
    return [
        m for m in state.answers if m.answer is not None and m.answer.cluster_id == old and m.answer.members
    ]


def _may_elect(state: ClusterState, left: list[Member]) -> bool:
    """Whether those that answer may be electing a leader.

    Not after a while where one missed the last change of members and counts a majority that is none by the
    list of another (see `quorum_lost`). With the same list for all they merely do not reach each other.
    """
    judged = [_is_majority(state, responder) for responder in left]
    return any(judged) and (all(judged) or state.unavailable_for < ELECTION)


def _is_majority(state: ClusterState, responder: Member, *, led: bool = False) -> bool:
    """Whether most of the voters that a responder lists answer, and (led) follow a leader."""
    voters = voters_of(state, responder)
    found = [state.by_name[name] for name in voters if name in state.by_name]
    there = [m for m in found if (m.is_healthy if led else m.answer is not None)]
    return len(there) >= quorum(len(voters))


def _remains(member: Member) -> bool:
    parts = (member.peer, member.claim, member.pod)
    return all(part is not None and not part.is_terminating for part in parts)


def _silent(state: ClusterState, left: list[Member]) -> str:
    names = {name for responder in left for name in voters_of(state, responder)}
    missing = [m for m in state.members if m.name in names and m.answer is None]
    return ", ".join(f"{member.name} ({_state_of(member)})" for member in missing)


def _state_of(member: Member) -> str:
    if member.claim is None:
        return "its claim is missing"
    return member.problem.reason if member.problem is not None else "silent"


def _is_existing_only(recovery: Recovery, seed: Member) -> bool:
    """Whether the seed was found to serve, and others may have been changed since.

    Where its claim is being deleted only as long as it serves: it will not start again.
    """
    if seed.claim is None or seed.claim.cluster_id in ("", recovery.replaces):
        return False
    return not seed.claim.is_terminating or (seed.answer is not None and serves(seed.answer, recovery))


def _is_broken(seed: Member) -> bool:
    """Whether this seed will never serve: a part of it was removed before it did."""
    if seed.peer is None or seed.peer.is_terminating:
        return True
    if seed.claim is None:
        return seed.has_replica_set
    return seed.claim.is_lost or seed.claim.is_terminating


def _is_attempt(state: ClusterState, member: Member) -> bool:
    """Whether a member's claim was made for a seed that never served."""
    return member.claim is not None and state.is_attempt(member.claim)


def _is_leaving(member: Member) -> bool:
    """Whether nothing is left to delete of a member, its claim included."""
    if member.peer is not None and not member.peer.is_terminating:
        return False
    cleans = member.peer is not None and member.peer.is_for_cleanup
    return cleans or member.claim is None or member.claim.is_terminating
