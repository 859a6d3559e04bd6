"""An attempt to recover that is under way: the seed of a new cluster, and the handover to it.

    Proving       no entry in status yet: `proof`, `requested`, `in_place`
    Seeding       the seed is created, fetches or is given its data, and starts
    Serving       it serves all that its source had; nothing of the old cluster was changed (I6)
    SwitchedOver  `kind.is_final_seed`: the point of no return; until it serves again it is waited for
    Retiring      the old members are deleted, clients are let in, and the ID of the new cluster is recorded
    Ended         that ID is on record, or `replaces` is empty (see `ending`); learners follow

The entry in status (`api.recoveries.Recovery`) comes before the first object, so that an operator that dies
at any point continues the same attempt. Its phase follows from the entry and from the seed's objects. What
the kinds of member do differently is in `kinds`.
"""

from dataclasses import dataclass, replace
from enum import Enum

import msgspec

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.shared_keys import DELETE_CLAIMS
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.corruption import seed_corrupt
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import pause
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    CloseClients,
    OpenSeed,
    ReopenClients,
    RetireMember,
    SetSeedExistingOnly,
    TrySeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import (
    await_election,
    cut_off,
    ending,
    give_up,
    seed_problem,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import (
    claims_kept_by,
    create,
    create_seed,
    learned,
    least_revision,
    record,
    recovery_name,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed_job import fill
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import names_answering, responders
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import (
    RECHECK,
    SEED_POLL,
    creating,
    held,
    missing,
    reason_of,
    source_of,
    step,
    under_way,
)
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.clusters import ordinal_of

PATIENCE = 30.0
"""Seconds of silence after which a seed that keeps clients out is reported with the way to give it up."""


class Phase(Enum):
    """How far an attempt is, once all of its seed was created."""

    SEEDING = "Seeding"
    SERVING = "Serving"
    SWITCHED_OVER = "SwitchedOver"
    RETIRING = "Retiring"


@dataclass(frozen=True, slots=True)
class Lost:
    """The attempt will never serve, and another one may begin. why: for messages; may be empty."""

    why: str = ""


def go_on(state: ClusterState, recovery: Recovery) -> Plan | Lost:
    """The next step of the attempt that is under way."""
    seed = state.by_name.get(recovery.seed)
    phase = phase_of(state, recovery, seed)
    if phase in (Phase.SEEDING, Phase.SERVING):
        ended = ending(state, recovery, seed)
        if ended is not None:
            return ended
        if recovery.failure:
            return Lost(recovery.failure)
    is_final = phase in (Phase.SWITCHED_OVER, Phase.RETIRING)
    whole = _complete(state, recovery, seed, is_final=is_final)
    if not isinstance(whole, Member):
        return whole
    if phase in (Phase.SEEDING, Phase.SWITCHED_OVER):
        return _await(state, recovery, whole, is_final=is_final)
    if phase is Phase.SERVING:
        before = _switch_over(state, recovery) if recovery.is_in_place else await_election(state, recovery)
        if before is not None:
            return before
    return _hand_over(state, recovery, whole)


def phase_of(state: ClusterState, recovery: Recovery, seed: Member | None) -> Phase:
    """The phase of the attempt that is under way."""
    if seed is None:
        return Phase.SEEDING
    has_data = seed.answer is not None and serves(seed.answer, recovery)
    is_final = state.kind.is_final_seed(seed, recovery, serves=has_data)
    # In place, the quorum may be that of the old cluster.
    if has_data and (seed.is_healthy if recovery.is_in_place else state.has_quorum):
        return Phase.RETIRING if is_final else Phase.SERVING
    return Phase.SWITCHED_OVER if is_final else Phase.SEEDING


def serves(answer: Answer, recovery: Recovery) -> bool:
    """Whether a seed has what its source had, in a cluster of its own."""
    alone = tuple(entry.name for entry in answer.members) == (recovery.seed,)
    return alone and answer.revision >= least_revision(recovery)


# Seeding


def _complete(
    state: ClusterState, recovery: Recovery, seed: Member | None, *, is_final: bool
) -> Plan | Lost | Member:
    """Create what is missing of the seed; or the seed, if nothing is."""
    is_filled = recovery.stored_backup is not None
    if is_filled and (seed is None or seed.peer is None):
        return _fill(state, recovery, seed, is_final=is_final)
    if _is_new(state, recovery, seed):
        return step(recovery, *create(state, recovery)) if _has_source(state, recovery, seed) else Lost()
    if seed is None or state.kind.is_seed_lost(seed, is_final=is_final, is_filled=is_filled):
        return Lost(f"{recovery.seed} was lost before it served")
    return seed


def _is_new(state: ClusterState, recovery: Recovery, seed: Member | None) -> bool:
    """Whether the seed was never created. A number that is used once distinguishes that from a lost seed."""
    if state.kind.reuses_numbers:
        return seed is None
    return state.persisted.next_ordinal <= ordinal_of(recovery.seed)


def _has_source(state: ClusterState, recovery: Recovery, seed: Member | None) -> bool:
    """Whether the seed can fetch from its survivor, as it was decided: that may restart meanwhile."""
    is_offline = recovery.offline_survivor is not None
    if state.kind.can_prove_loss:
        is_there = seed is not None and state.kind.may_keep_data(seed)
        return not is_offline or is_there or recovery.survivor in names_answering(state)
    found = (member for member in responders(state) if member.name == recovery.survivor)
    return any(is_offline or member.answer is not None for member in found)


def _fill(state: ClusterState, recovery: Recovery, seed: Member | None, *, is_final: bool) -> Plan | Lost:
    """Restore a backup to the volume of the seed, then create its EtcdPeer, which may have been deleted."""
    if is_final:
        return Plan.act(create_seed(recovery), reason=reason_of(recovery), message=under_way(recovery))
    if recovery.is_in_place and claims_kept_by(recovery_name(recovery), state.kept_claims):
        # The Service may select its token by now: another seed with that would serve before its time.
        return Lost(f"{recovery.seed} was lost after members of the old cluster had been given up")
    if state.backups.is_closed:
        return step(recovery, ReopenClients(name=recovery.seed))
    found = fill(state, recovery, seed)
    if isinstance(found, Plan):
        return found
    return Lost(f"{recovery_name(recovery)} failed ({found.reason}): {found.message}")


def _await(state: ClusterState, recovery: Recovery, seed: Member, *, is_final: bool) -> Plan | Lost:
    """Wait until the seed serves, and report what keeps it from that."""
    if state.backups.is_closed and not is_final:
        # The Service was closed for a seed that does not serve now: until it does, the old cluster goes on.
        return step(recovery, ReopenClients(name=recovery.seed))
    message, poll = under_way(recovery), pause(seed, SEED_POLL)
    has_fetched = recovery.backup is not None or (seed.pod is not None and seed.pod.has_fetched)
    if not has_fetched and state.kind.can_prove_loss:
        survivor = state.by_name.get(recovery.survivor)
        if survivor is None or not state.kind.may_keep_data(survivor):
            return Lost()  # it can never fetch: another survivor may be left
        if survivor.report is None:
            # `etcdctl snapshot save` waits for ever, possibly in vain: see `proof`.
            message, poll = f"{message}; {survivor.name} does not answer now", RECHECK
    elif not has_fetched and all(member.name != recovery.survivor for member in responders(state)):
        message += f"; {recovery.survivor} does not answer now"
    if seed.problem is not None:
        return held(seed.problem.reason, seed_problem(state, recovery, seed, message))
    if seed.answer is not None and seed.answer.is_corrupt and not state.kind.can_prove_loss:
        return held(*seed_corrupt(message, seed.name))
    silent_for = seed.silent_for if seed.pod is not None else state.unavailable_for
    if state.backups.is_closed and silent_for >= PATIENCE:
        message += f"; {seed.name} does not answer; {give_up(state, recovery)}"
    return Plan.wait(reason_of(recovery), f"{message}{creating(seed)}", requeue_after=poll)


def _switch_over(state: ClusterState, recovery: Recovery) -> Plan:
    """Pass the point of no return in place. Before clients are cut off, its writes are tried.

    An admission webhook or policy may refuse them for ever. If it refuses them only after that, the Service
    is opened again (`rules.reopen`).
    """
    name, revision = recovery.seed, least_revision(recovery)
    made = step(
        recovery,
        TrySeedExistingOnly(name=name, revision=revision),
        CloseClients(name=name),
        SetSeedExistingOnly(name=name, revision=revision),
    )
    return replace(made, message=made.message + cut_off(state))


# Retiring


def _hand_over(state: ClusterState, recovery: Recovery, seed: Member) -> Plan:
    """The seed serves: delete what is left of the old cluster, let clients in, record the new cluster ID.

    Only the seed has all data then, so the data that it was begun with is kept.
    """
    left = [
        m
        for m in state.members
        if m is not seed and not state.kind.is_retired(m, may_run=recovery.is_automatic)
    ]
    kept, final = _kept(state, recovery, left), learned(recovery, seed)
    cluster_id = seed.answer.cluster_id if seed.answer is not None else ""
    before: list[Action] = []
    if recovery.is_in_place:
        # Recorded before a member is deleted: afterwards the revision cannot be read any more.
        revisions = (m.answer.revision for m in responders(state) if m.answer is not None)
        final = msgspec.structs.replace(final, given_up=max([final.given_up, *revisions]))
        before = [record(state, final)] if final != recovery else []
    persisted = replace(
        state.persisted,
        cluster_id=cluster_id,
        bootstrap=Bootstrap(members=(recovery.seed,), token=recovery.token, version=recovery.version),
        recovery=final,
    )
    retired = [RetireMember(name=m.name, seed=recovery.seed, keeps_data=m.name in kept) for m in left]
    last: list[Action] = [*retired, OpenSeed(name=recovery.seed), Remember(persisted=persisted)]
    if state.kind.opens_seed_last:
        # If this operator dies in between, the next pass opens the seed (`decide.readiness`). The survivor is
        # stopped when it is needed only if the seed and all other members are lost.
        given_up = [each for each in retired if not each.keeps_data]
        survivor = [each for each in retired if each.keeps_data]
        last = [*given_up, Remember(persisted=persisted), *survivor, OpenSeed(name=recovery.seed)]
    return Plan.act(
        *before,
        SetSeedExistingOnly(name=recovery.seed, revision=least_revision(final)),
        *last,
        reason=reason_of(recovery, is_done=True),
        message=(
            f"{recovery.seed} serves the data of {source_of(final)}, in the new cluster "
            f"{cluster_id}; {missing(final)}"
        ),
        requeue_after=SEED_POLL,
    )


def _kept(state: ClusterState, recovery: Recovery, given_up: list[Member]) -> set[str]:
    """Members whose data is kept.

    Ephemeral: the source, until another member has the data of the seed (`situation.kept_survivor`).
    Persistent: all claims but those of attempts, unless the request includes their deletion.
    """
    if state.kind.can_prove_loss:
        return {recovery.survivor}
    if state.desired.recover == recovery_name(recovery) + DELETE_CLAIMS:
        return set()
    return {m.name for m in given_up if m.claim is not None and not state.is_attempt(m.claim)}
