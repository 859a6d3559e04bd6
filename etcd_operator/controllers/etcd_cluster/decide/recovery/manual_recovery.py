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
again, the seed is deleted instead: nothing is lost then. The names are in `recovery.recovery_names`, what
begins a recovery is in `recovery.recovery_request`, what ephemeral members share is in `recovery.seed`; the
reasons are in docs/decisions/008.
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import Recovery
from etcd_operator.api.shared_keys import DELETE_CLAIMS, RECOVER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.first_start import is_resuming
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import pause
from etcd_operator.controllers.etcd_cluster.decide.recovery import offline
from etcd_operator.controllers.etcd_cluster.decide.recovery.automatic import STABLE_AFTER, is_stabilizing
from etcd_operator.controllers.etcd_cluster.decide.recovery.in_place import (
    CANCELLED,
    close,
    is_still_requested,
    observed,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_actions import ReopenClients
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_ending import (
    claim_going,
    end,
    give_up,
    is_leaving,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_names import (
    claims_kept_by,
    recovery_name,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_request import (
    is_for,
    is_requested,
    offered,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.responders import (
    is_led,
    keeps_running,
    responders,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import (
    SEED_POLL,
    create_seed,
    hand_over,
    held,
    is_filled_by_job,
    not_needed,
    reason_of,
    record,
    serves,
    under_way,
    was_found_to_serve,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed_job import fill
from etcd_operator.controllers.etcd_cluster.decide.recovery.slow_seed import creating
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import seed_corrupt
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import PATIENCE as PATIENCE_OF_UPGRADES
from etcd_operator.controllers.etcd_cluster.decide.upgrade.state_machine import roll

PATIENCE = 30.0
"""Seconds of silence after which a seed that keeps clients out is reported with the way to give it up."""


def recover(state: ClusterState) -> Plan | None:
    """Begin the recovery that is requested, or report why not; or continue one."""
    if not state.persisted.is_bootstrapped or state.kind.can_prove_loss:
        return None
    recovery = state.persisted.recovery_under_way
    if recovery is not None:
        return _go_on(state, recovery)
    return offered(state) if is_requested(state) else None


def offer(state: ClusterState) -> Plan | None:
    """Report a loss, and the name by which its recovery can be requested.

    This comes after all rules that may bring a quorum back: a member that an upgrade stops is not lost.
    """
    if state.kind.can_prove_loss or state.has_quorum:
        return None
    made = offline.read_silent(state) or offered(state)
    if made is not None and is_resuming(state) and made.reason in _LOSSES and made.stage is Stage.HELD:
        return None  # a member that answers before the others is no survivor of a loss
    return made


_LOSSES = ("QuorumLost", "RecoveryUnsupported")
"""Why the operator waits for the data of a lost quorum."""


def offer_beside_upgrade(state: ClusterState) -> Plan | None:
    """Report the recovery, too, while an upgrade is blocked without a quorum: a person knows what helps.

    What silent members have is read first (`offline.read_silent`): it decides which recovery is possible.
    """
    if state.unavailable_for <= PATIENCE_OF_UPGRADES:
        return None
    blocked, possible = roll(state), offer(state)
    if blocked is None or blocked.stage is not Stage.HELD or possible is None:
        return None
    if possible.actions:
        return possible
    return replace(blocked, message=f"{blocked.message}; {possible.message}")


def record_stable(state: ClusterState) -> Plan | None:
    """Record that a cluster serves after a recovery that began without a person."""
    recovery = state.persisted.recovery
    if recovery is None or not is_stabilizing(state) or state.served_for < STABLE_AFTER:
        return None
    stable = msgspec.structs.replace(recovery, stable=True)
    message = "the cluster has served since its automatic recovery"
    return Plan.act(record(state, stable), reason="RecoveryStable", message=message)


def refused(state: ClusterState) -> Plan | None:
    """Report that a requested recovery is not needed: a quorum answers."""
    requested, former = state.desired.recover, state.persisted.recovery
    if not requested or (former is not None and is_for(requested, former)):
        return None
    return Plan.hold(
        "RecoveryRefused",
        f"the annotation {RECOVER_ANNOTATION} requests {requested}, but a quorum answers: "
        "there is nothing to recover, remove the annotation",
    )


def _go_on(state: ClusterState, recovery: Recovery) -> Plan:
    seed, left = state.by_name.get(recovery.seed), responders(state)
    is_existing_only = seed is not None and _is_existing_only(recovery, seed)
    if not is_existing_only:
        ending = claim_going(state, recovery, seed) or _ending(state, recovery, left)
        if ending is not None:
            return ending
    if is_filled_by_job(recovery) and (seed is None or seed.peer is None):
        return _fill(state, recovery, seed, is_filled=is_existing_only)
    if seed is None:
        return _make(state, recovery, left)
    if not is_existing_only and _is_broken(recovery, seed):
        return _begin_again(state, recovery, f"{recovery.seed} was lost before it served")
    has_quorum = seed.is_healthy if recovery.in_place else state.has_quorum
    if has_quorum and seed.answer is not None and serves(seed.answer, recovery):
        if recovery.in_place and not is_existing_only:
            return close(recovery)
        return _hand_over(state, recovery, seed, seed.answer, left)
    return _await_seed(state, recovery, seed, left)


def _hand_over(
    state: ClusterState, recovery: Recovery, seed: Member, answer: Answer, left: list[Member]
) -> Plan:
    rest = [m for m in state.members if m is not seed and not is_leaving(m)]
    final = observed(recovery, left) if recovery.in_place else recovery
    made = hand_over(state, final, answer, rest, _kept(state, recovery, rest))
    if final == recovery:
        return made
    # Before a member is deleted: afterwards the revision cannot be read any more.
    return replace(made, actions=(record(state, final), *made.actions))


def _ending(state: ClusterState, recovery: Recovery, left: list[Member]) -> Plan | None:
    """Before the point of no return: a quorum is back, or a restore in place is cancelled."""
    if recovery.in_place:
        if recovery.failure:
            return end(state, recovery, "RestoreFailed", recovery.failure)
        if is_still_requested(state, recovery):
            return None
        return end(state, recovery, "RestoreCancelled", CANCELLED)
    if not is_led(state, left):
        return None
    return end(state, recovery, "QuorumReturned", not_needed(recovery))


def _fill(state: ClusterState, recovery: Recovery, seed: Member | None, *, is_filled: bool) -> Plan:
    """Restore a backup to the volume of the seed, then create its EtcdPeer, which may have been deleted."""
    if is_filled:
        return Plan.act(create_seed(recovery), reason=reason_of(recovery), message=under_way(recovery))
    if recovery.in_place and claims_kept_by(recovery_name(recovery), state.kept):
        # The Service may select its token by now: another seed with that would serve before its time.
        why = f"{recovery.seed} was lost after members of the old cluster had been given up"
        return _begin_again(state, recovery, why)
    if state.backups.is_closed:
        return _let_clients_in(recovery)
    found = fill(state, recovery, seed)
    if isinstance(found, Plan):
        return found
    why = f"{recovery_name(recovery)} failed ({found.reason}): {found.message}"
    return _begin_again(state, recovery, why)


def _begin_again(state: ClusterState, recovery: Recovery, why: str) -> Plan:
    """This attempt will never serve: the next one can be requested, or the cluster goes on as it was."""
    if recovery.in_place:
        # Before anything is removed: without it, nothing would show that this attempt has failed.
        failed = record(state, msgspec.structs.replace(recovery, failure=why))
        return Plan.act(failed, reason="RestoreFailed", message=why, requeue_after=0.0)
    made = offline.read_silent(state) or offered(state)
    if made is None or made.actions or made.reason not in ("QuorumLost", "RecoveryRefused"):
        return made or _nobody(recovery)
    return replace(made, message=f"{why}; {made.message}")


def _kept(state: ClusterState, recovery: Recovery, given_up: list[Member]) -> set[str]:
    """Members whose claims are kept: all but attempts, unless the request includes their deletion."""
    if state.desired.recover == recovery_name(recovery) + DELETE_CLAIMS:
        return set()
    return {m.name for m in given_up if m.claim is not None and not state.is_attempt(m.claim)}


def _make(state: ClusterState, recovery: Recovery, left: list[Member]) -> Plan:
    """Create the seed that status names: on an empty volume, with the survivor's data."""
    if not any(_is_source(recovery, member) for member in left):
        return offline.read_silent(state) or offered(state) or _nobody(recovery)
    return Plan.act(
        create_seed(recovery), reason="Recovering", message=under_way(recovery), requeue_after=SEED_POLL
    )


def _is_source(recovery: Recovery, member: Member) -> bool:
    """Whether the seed can fetch from this member, as it was decided: a survivor may restart meanwhile."""
    return member.name == recovery.survivor and (bool(recovery.sha256) or member.answer is not None)


def _nobody(recovery: Recovery) -> Plan:
    return held(
        "QuorumLost",
        f"{recovery.seed} was lost before it served, and no member from which the cluster could be recovered "
        "answers: nothing is changed",
    )


def _await_seed(state: ClusterState, recovery: Recovery, seed: Member, left: list[Member]) -> Plan:
    message = under_way(recovery)
    if state.backups.is_closed and not _is_existing_only(recovery, seed):
        return _let_clients_in(recovery)
    has_fetched = recovery.backup is not None or (seed.pod is not None and seed.pod.has_fetched)
    if not has_fetched and all(member.name != recovery.survivor for member in left):
        message += f"; {recovery.survivor} does not answer now"
    if seed.problem is not None:
        step = f"to begin again: kubectl delete etcdpeer {seed.name}"
        if state.backups.is_closed:
            step = give_up(state, recovery)
        return held(seed.problem.reason, f"{message}; {seed.problem.message}; {step}")
    if seed.answer is not None and seed.answer.is_corrupt:
        return held(*seed_corrupt(message, seed.name))
    silent_for = seed.silent_for if seed.pod is not None else state.unavailable_for
    if state.backups.is_closed and silent_for >= PATIENCE:
        message += f"; {seed.name} does not answer; {give_up(state, recovery)}"
    poll = pause(seed, SEED_POLL)
    return Plan.wait(reason_of(recovery), f"{message}{creating(seed)}", requeue_after=poll)


def _let_clients_in(recovery: Recovery) -> Plan:
    """The Service was closed for a seed that does not serve now: until it does, the old cluster goes on."""
    return Plan.act(
        ReopenClients(name=recovery.seed),
        reason=reason_of(recovery),
        message=under_way(recovery),
        requeue_after=SEED_POLL,
    )


def _is_existing_only(recovery: Recovery, seed: Member) -> bool:
    """Whether the seed was found to serve, and others may have been changed since.

    Where its claim is being deleted only as long as it serves, and stays: it will not start again.
    """
    if seed.claim is None or not was_found_to_serve(seed.claim, recovery):
        return False
    return not seed.claim.is_terminating or (_stays(seed) and _serves_now(seed, recovery))


def _stays(seed: Member) -> bool:
    """Whether nobody has begun to delete it: an etcd answers for a while after that, also one given up."""
    return seed.peer is not None and keeps_running(seed)


def _serves_now(seed: Member, recovery: Recovery) -> bool:
    return seed.answer is not None and serves(seed.answer, recovery)


def _is_broken(recovery: Recovery, seed: Member) -> bool:
    """Whether this seed will never serve: a part of it was removed before it did."""
    if seed.peer is None or seed.peer.is_terminating:
        return True
    if seed.claim is None:
        return seed.has_replica_set or is_filled_by_job(recovery)
    if is_filled_by_job(recovery) and not seed.claim.is_restored:
        return True  # another, empty one
    return seed.claim.is_lost or seed.claim.is_terminating
