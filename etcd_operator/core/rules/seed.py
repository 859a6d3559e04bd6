"""What both kinds of recovery share: the survivor, the seed of the new cluster, and the handover to it.

See `rules.quorum_lost` and `rules.manual_recovery`.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import REVISION_BUMP, Bootstrap, Recovery, RestoredBackup, recovery_token
from etcd_operator.core.actions import Action, CreateMember, Plan, Remember
from etcd_operator.core.backup_tool.report import VerifiedBackup
from etcd_operator.core.known_backups import CompletedBackup
from etcd_operator.core.member_names import ordinal_of
from etcd_operator.core.members import ClaimFacts, Member
from etcd_operator.core.recovery_actions import OpenSeed, ReadMember, RetireMember, SetSeedExistingOnly
from etcd_operator.core.recovery_names import generation_in
from etcd_operator.core.recovery_texts import missing, source_of
from etcd_operator.core.replies import Answer
from etcd_operator.core.starts import OfflineSurvivor, Resuming, Seeding, Start
from etcd_operator.core.state import ClusterState

RECHECK = 2.0
"""Seconds between observations while somebody else has to act."""

SEED_POLL = 0.15
"""Seconds between observations of a seed: the start of its etcd causes no event."""

MOVED_ON = REVISION_BUMP // 2
"""How far a seed's revision is ahead of its survivor's at least.

Not the whole bump: etcdutl counts from the newest revision that is still stored, and the last ones
may be deletions that were compacted away; an empty store has none.
"""

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


def next_recovery(state: ClusterState, survivor: Member) -> Recovery:
    """The entry of a recovery from `survivor`, with a seed, and a token, that were never used before."""
    return _next(
        state,
        survivor=survivor.name,
        revision=survivor.revision,
        version=survivor.report.version if survivor.report is not None else state.desired.version,
        sha256=survivor.reading.sha256 if survivor.answer is None and survivor.reading is not None else "",
    )


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


def next_from_backup(state: ClusterState, backup: VerifiedBackup) -> Recovery:
    """The entry of a recovery that restores a backup of this cluster, with the version of etcd it is of.

    It may be of an etcd cluster that this resource had before: no backup of the recorded one was stored yet.
    """
    source = RestoredBackup(
        cluster=state.desired.name,
        via="Tool",
        name=backup.name,
        sha256=backup.sha256,
        time=backup.time,
        age=int(backup.age),
    )
    found = next_recovery_of(state, source, revision=backup.revision, version=backup.etcd_version)
    return msgspec.structs.replace(found, bump=_bump(state, backup.revision))


def _bump(state: ClusterState, revision: int) -> int:
    """How much the revisions of a backup increase: at least `MOVED_ON` above all that were ever issued.

    Members report those of their cluster. Where they are lost, the last recovery shows with which ones the
    seed began that may have served since.
    """
    former = state.persisted.recovery
    began = former.revision + former.bump if former is not None else 0
    ahead = max(0, max(began, _reported(state)) - revision) // MOVED_ON
    return REVISION_BUMP + ahead * MOVED_ON


def _reported(state: ClusterState) -> int:
    """The highest revision that a member answers with now."""
    return max((m.answer.revision for m in state.answers if m.answer is not None), default=0)


def next_from_stored(
    state: ClusterState, backup: CompletedBackup, *, version: str = "", in_place: bool = False
) -> Recovery:
    """The entry of a recovery that restores an EtcdBackup. version: of etcd; empty for that of the backup."""
    source = RestoredBackup(
        cluster=state.desired.name,
        via="Object",
        name=backup.name,
        sha256=backup.sha256,
        time=backup.time,
        age=backup.age,
        url=backup.url,
        spec=backup.spec,
    )
    return msgspec.structs.replace(
        _next(state, revision=backup.revision, version=version or backup.etcd_version, backup=source),
        bump=_bump(state, backup.revision),
        in_place=in_place,
        given_up=_reported(state) if in_place else 0,
    )


def next_recovery_of(state: ClusterState, backup: RestoredBackup, *, revision: int, version: str) -> Recovery:
    """The entry of a recovery that restores this backup, with this version of etcd."""
    return _next(state, revision=revision, version=version, backup=backup)


def learned(recovery: Recovery, seed: Member) -> Recovery:
    """With what the seed has fetched, where only it knows that."""
    backup, fetched = recovery.backup, seed.pod.fetched if seed.pod is not None else None
    if backup is None or backup.name or fetched is None:
        return recovery
    known = msgspec.structs.replace(
        backup, name=fetched.name, sha256=fetched.sha256, time=fetched.time, age=fetched.age
    )
    return msgspec.structs.replace(recovery, backup=known, revision=fetched.revision)


def reason_of(recovery: Recovery, *, is_done: bool = False) -> str:
    """What is done: a new cluster is restored, or one that serves, or a lost one recovered."""
    if recovery.in_place or (recovery.backup is not None and not recovery.replaces):
        return "Restored" if is_done else "Restoring"
    return "Recovered" if is_done else "Recovering"


def _next(
    state: ClusterState,
    *,
    revision: int,
    version: str,
    survivor: str = "",
    backup: RestoredBackup | None = None,
    sha256: str = "",
) -> Recovery:
    former = state.persisted.recovery
    generation = _attempts(state) + 1
    names = [*(member.name for member in state.members), *(claim.name for claim in state.kept)]
    number = max([state.persisted.next_ordinal, *(ordinal_of(name) + 1 for name in names)])
    return Recovery(
        generation=generation,
        survivor=survivor,
        revision=revision,
        version=version,
        seed=state.desired.member_name(number),
        token=recovery_token(state.desired.uid, generation),
        replaces=state.persisted.cluster_id,
        backup=backup,
        former=_former_ids(former, state.persisted.cluster_id),
        sha256=sha256,
        stopped=former is not None and former.stopped,
    )


def _attempts(state: ClusterState) -> int:
    """The highest number that an attempt had: kept claims may be of a deleted EtcdCluster of this name."""
    former = state.persisted.recovery
    kept = (generation_in(claim.given_up_by) for claim in state.kept)
    return max([former.generation if former is not None else 0, *kept])


def _former_ids(former: Recovery | None, recorded: str) -> tuple[str, ...]:
    """The IDs of the etcd clusters that this resource had before the recorded one."""
    if former is None:
        return ()
    given_up = (former.replaces,) if former.replaces not in ("", recorded) else ()
    return (*former.former, *given_up)


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
        last.reverse()  # if this operator dies in between, the next pass opens it (`core.readiness`)
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
