"""What both kinds of recovery share: the survivor, the seed of the new cluster, and the handover to it.

See `recovery.quorum_lost` and `recovery.manual_recovery`.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from etcd_operator.api.persisted import Bootstrap, Recovery
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, CreateMember, Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_actions import (
    OpenSeed,
    ReadMember,
    RetireMember,
    SetSeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_entry import MOVED_ON
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_texts import missing, source_of
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.starts import OfflineSurvivor, Resuming, Seeding, Start
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState

RECHECK = 2.0
"""Seconds between observations while somebody else has to act."""

SEED_POLL = 0.15
"""Seconds between observations of a seed: the start of its etcd causes no event."""


ELECTION = 10.0
"""Seconds without a quorum after which members that reach each other would have elected a leader."""


def record(state: ClusterState, recovery: Recovery) -> Remember:
    """Write this entry into status, whatever is there now."""
    return Remember(persisted=replace(state.persisted, recovery=recovery))


def voters_of(state: ClusterState, responder: Member) -> tuple[str, ...]:
    """The names of the voters that a member lists; empty for one whose name is unknown."""
    return _listed(state, responder, is_learner=False)


def learners_of(state: ClusterState, responder: Member) -> tuple[str, ...]:
    """The same of its learners; there is one at most."""
    return _listed(state, responder, is_learner=True)


def _listed(state: ClusterState, responder: Member, *, is_learner: bool) -> tuple[str, ...]:
    listed = responder.report.members if responder.report is not None else ()
    by_id = {member.id: member.name for member in state.members if member.id}
    return tuple(e.name or by_id.get(e.id, "") for e in listed if e.is_learner is is_learner)


def newest(member: Member) -> tuple[int, int, int]:
    """The content of a snapshot decides: the revision; then the committed index."""
    answer = member.report
    return (answer.revision, answer.committed, -member.ordinal) if answer is not None else (0, 0, 0)


def answering(members: Iterable[Member]) -> tuple[tuple[str, str], ...]:
    """Those that answer, each as its name and the UID of its pod."""
    return tuple((m.name, m.pod.uid) for m in members if m.pod is not None and m.answer is not None)


def read_among(members: Iterable[Member]) -> tuple[ReadMember, ...]:
    """Those that answer nobody, whose data was read."""
    return tuple(
        ReadMember(name=m.name, uid=m.pod.uid, sha256=m.reading.sha256)
        for m in members
        if m.pod is not None and m.answer is None and m.reading is not None
    )


def reason_of(recovery: Recovery, *, is_done: bool = False) -> str:
    """What is done: a new cluster is restored, or one that serves, or a lost one recovered."""
    if recovery.in_place or (recovery.backup is not None and not recovery.replaces):
        return "Restored" if is_done else "Restoring"
    return "Recovered" if is_done else "Recovering"


def serves(answer: Answer, recovery: Recovery) -> bool:
    """Whether a seed has what the survivor had, in a cluster of its own."""
    alone = tuple(entry.name for entry in answer.members) == (recovery.seed,)
    return alone and answer.revision >= least_revision(recovery)


def was_found_to_serve(claim: ClaimFacts | None, recovery: Recovery) -> bool:
    """Whether the claim of a persistent seed has the ID of the new cluster: there is no way back.

    It is written when the seed serves. From then on others may have been changed.
    """
    return claim is not None and claim.cluster_id not in ("", recovery.replaces)


def least_revision(recovery: Recovery) -> int:
    """What the revision of a seed is at least that has all data."""
    return recovery.revision + recovery.bump - MOVED_ON


def hand_over(
    state: ClusterState,
    recovery: Recovery,
    answer: Answer,
    left: list[Member],
    kept: Collection[str] = (),
) -> Plan:
    """The seed serves: delete what is left of the old cluster, let clients in, record the new cluster ID.

    kept: the members whose claims are kept.
    """
    persisted = replace(
        state.persisted,
        cluster_id=answer.cluster_id,
        bootstrap=Bootstrap(members=(recovery.seed,), token=recovery.token, version=recovery.version),
        recovery=recovery,
    )
    last: list[Action] = [OpenSeed(name=recovery.seed), Remember(persisted=persisted)]
    if state.kind.opens_seed_last:
        last.reverse()  # if this operator dies in between, the next pass opens it (`decide.readiness`)
    return Plan.act(
        SetSeedExistingOnly(name=recovery.seed, revision=least_revision(recovery)),
        *(RetireMember(name=m.name, seed=recovery.seed, keeps_claim=m.name in kept) for m in left),
        *last,
        reason=reason_of(recovery, is_done=True),
        message=(
            f"{recovery.seed} serves the data of {source_of(recovery)}, in the new cluster "
            f"{answer.cluster_id}; {missing(recovery)}"
        ),
        requeue_after=SEED_POLL,
    )


def held(reason: str, message: str) -> Plan:
    """Nothing may be done until somebody else acts."""
    return Plan.hold(reason, message, requeue_after=RECHECK)


def is_filled_by_job(recovery: Recovery) -> bool:
    """Whether a Job restores the data to the claim of the seed, before that is started."""
    return recovery.backup is not None and recovery.backup.via == "Object"


def create_seed(recovery: Recovery) -> CreateMember:
    """The seed, with the version of its survivor or backup."""
    offline = OfflineSurvivor(sha256=recovery.sha256) if recovery.sha256 else None
    start: Start = Seeding(
        survivor=recovery.survivor,
        backup=recovery.backup,
        token=recovery.token,
        offline=offline,
        bump=recovery.bump,
    )
    if is_filled_by_job(recovery):
        start = Resuming(token=recovery.token)
    return CreateMember(name=recovery.seed, start=start, version=recovery.version)


def not_needed(recovery: Recovery) -> str:
    """Why a recovery ends before the point of no return, for messages."""
    return f"a quorum of the members that were to be given up answers again: {recovery.seed} is not needed"


def under_way(recovery: Recovery) -> str:
    """One message for all steps of a recovery."""
    if recovery.in_place:
        return f"restoring {source_of(recovery)} as {recovery.seed}"
    return f"recovering from {source_of(recovery)} as {recovery.seed}"
