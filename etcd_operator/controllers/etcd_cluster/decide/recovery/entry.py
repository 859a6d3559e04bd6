"""The entry of a recovery in status: its name, and what its seed gets that was never used before.

A person requests a recovery by its name, and the claims of members that it gave up keep it:

    <ID of the etcd cluster that is given up>/<survivor, or backup>/<generation>

So a request that is left on the object, or in a manifest, never begins another recovery.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from etcd_operator.api.recoveries import (
    REVISION_BUMP,
    Authority,
    Backup,
    OfflineSurvivor,
    Recovery,
    Source,
    StoredBackup,
    Survivor,
    ToolBackup,
    recovery_token,
)
from etcd_operator.api.shared_keys import DELETE_CLAIMS
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    CreateMember,
    CreateMemberService,
    Remember,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ConfirmBackup, FillSeed
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import CompletedBackup
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import is_corrupt
from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming, Seeding, Start
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.clusters import ordinal_of
from etcd_operator.formats import instant
from etcd_operator.pods.reports import BackupReport

MOVED_ON = REVISION_BUMP // 2
"""How far a seed's revision is ahead of its survivor's at least.

Not the whole bump: etcdutl counts from the newest revision that is still stored, and the last ones
may be deletions that were compacted away; an empty store has none.
"""

PER_SECOND = 1_000_000
"""Revisions for each second between two creations, some ten times of what an etcd can write.

Until the year 2300 they stay below 2**53, up to which JSON readers that know only floating point are exact.
"""

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


# Names


def recovery_name(recovery: Recovery) -> str:
    """The name by which a person requests this recovery, and no other; also of a restore in place."""
    is_marked = recovery.backup is not None and not recovery.is_in_place
    source = f"backup:{recovery.source.name}" if is_marked else recovery.source.name
    return f"{recovery.replaces}/{source}/{recovery.generation}"


def is_for(requested: str, recovery: Recovery) -> bool:
    """Whether an annotation requests this recovery, with or without the deletion of claims."""
    return requested.removesuffix(DELETE_CLAIMS) == recovery_name(recovery)


def cluster_id_in(name: str) -> str:
    """The ID of the etcd cluster that the recovery of this name gives up, hexadecimal."""
    return name.partition("/")[0]


def generation_in(name: str) -> int:
    """The generation of the recovery of this name; 0 for a text that is no such name."""
    generation = name.rpartition("/")[2]
    return int(generation) if generation.isdecimal() else 0


def claims_kept_by(name: str, kept: Iterable[ClaimFacts]) -> list[str]:
    """The claims of the members that the recovery of this name gave up."""
    return sorted(claim.name for claim in kept if claim.given_up_by == name)


# The next entry


def next_from_survivor(state: ClusterState, survivor: Member, authority: Authority) -> Recovery:
    """The entry of a recovery from a member that answers, or whose data was read."""
    source: Source = Survivor(name=survivor.name)
    if survivor.answer is None and survivor.reading is not None:
        source = OfflineSurvivor(name=survivor.name, sha256=survivor.reading.sha256)
    report = survivor.report
    version = report.version if report is not None else state.desired.version
    corrupt = (report.member_id,) if report is not None and is_corrupt(state, survivor) else ()
    made = _next(state, source, authority, revision=survivor.revision, version=version)
    return msgspec.structs.replace(made, corrupt_sources=(*made.corrupt_sources, *corrupt))


def next_from_tool(state: ClusterState, backup: BackupReport, authority: Authority) -> Recovery:
    """The entry of a recovery that restores a backup of this cluster, with the version of etcd it is of.

    It may be of an etcd cluster that this resource had before: no backup of the recorded one was stored yet.
    """
    source = ToolBackup(
        cluster=state.desired.name,
        name=backup.name,
        sha256=backup.sha256,
        time=backup.time,
        age=int(backup.age),
        has_tls=state.desired.secured.is_dialed,
    )
    return _next(state, source, authority, revision=backup.revision, version=backup.etcd_version)


def next_from_stored(
    state: ClusterState, backup: CompletedBackup, authority: Authority, *, version: str
) -> Recovery:
    """The entry of a recovery that restores an EtcdBackup with this version of etcd."""
    source = StoredBackup(
        cluster=state.desired.name,
        name=backup.name,
        sha256=backup.sha256,
        time=backup.time,
        age=backup.age,
        url=backup.url,
        size=backup.size,
        spec=backup.spec,
    )
    return _next(state, source, authority, revision=backup.revision, version=version)


def next_at_creation(state: ClusterState, source: Source, version: str) -> Recovery:
    """The entry of a new cluster that begins with a backup, which only its seed will know."""
    return _next(state, source, "Creation", revision=0, version=version)


def _next(
    state: ClusterState, source: Source, authority: Authority, *, revision: int, version: str
) -> Recovery:
    persisted, former = state.persisted, state.persisted.recovery
    failed = persisted.recovery_under_way
    ids = former.given_up_ids if former is not None else ()
    kept = (generation_in(claim.given_up_by) for claim in state.kept_claims)
    # Kept claims may be of a deleted EtcdCluster of this name.
    generation = max([former.generation if former is not None else 0, *kept]) + 1
    names = [*(member.name for member in state.members), *(claim.name for claim in state.kept_claims)]
    number = max([state.persisted.next_ordinal, *(ordinal_of(name) + 1 for name in names)])
    return Recovery(
        generation=generation,
        source=source,
        authority=authority,
        revision=revision,
        version=version,
        seed=state.desired.member_name(number),
        token=recovery_token(state.desired.uid, generation),
        replaces=state.persisted.cluster_id,
        former=tuple(each for each in ids if each != persisted.cluster_id),
        attempt=failed.attempt + 1 if failed is not None else 1,
        bump=bump_at(state.desired.created) if authority == "Creation" else _bump(state, source, revision),
        is_unstable=authority == "Automatic",
        given_up=_reported(state) if authority == "InPlace" else _given_up(state),
        corrupt_sources=former.corrupt_sources if former is not None else (),
    )


# How much higher the revisions of the new cluster are


def bump_at(created: str, revision: int = 0) -> int:
    """For what was requested by a resource of this creation time (RFC 3339, as the API server writes it).

    A client that has seen the lost cluster must find its last revision compacted. If that were still to come,
    etcd would let its watch wait in silence, and a comparison with it could match another write. The members
    of the lost cluster cannot be asked, and several clusters may begin with the same backup, one after the
    other. So whatever is restored later begins higher: by more than any etcd writes in the time between.

    revision: of the backup, 0 while that is not known. The first revision follows from the time alone: so a
    later restore begins higher also where it goes back to an older backup, and differences do not add up. A
    backup above that (its differences have added up) is raised by the whole difference.
    """
    seconds = (instant(created) - _BEGIN).total_seconds()
    begin = REVISION_BUMP + max(0, int(seconds)) * PER_SECOND
    return begin - revision if revision < begin else begin


def _bump(state: ClusterState, source: Source, revision: int) -> int:
    """At least `MOVED_ON` above all that were ever issued, also by a seed that served and is lost.

    Members report those of their cluster. Where they are lost, the last recovery shows with which ones the
    seed began that may have served since.
    """
    former = state.persisted.recovery
    issued = _given_up(state)
    if isinstance(source, Backup):
        issued = max(former.revision + former.bump if former is not None else 0, _reported(state))
    return REVISION_BUMP + max(0, issued - revision) // MOVED_ON * MOVED_ON


def _reported(state: ClusterState) -> int:
    """The highest revision that a member answers with now."""
    return max((m.answer.revision for m in state.answers if m.answer is not None), default=0)


def _given_up(state: ClusterState) -> int:
    """The first revision of a seed that served, and was lost before the recovery that is to begin again."""
    failed = state.persisted.recovery_under_way
    return failed.given_up if failed is not None else 0


def least_revision(recovery: Recovery) -> int:
    """What the revision of a seed is at least that has all data."""
    return recovery.revision + recovery.bump - MOVED_ON


# What follows from an entry


def record(state: ClusterState, recovery: Recovery) -> Remember:
    """Write this entry into status, whatever is there now."""
    return Remember(persisted=replace(state.persisted, recovery=recovery))


def begun_again(state: ClusterState, recovery: Recovery) -> PersistedState:
    """As it was before the seed took over: the cluster that it began is lost, and its survivor is kept.

    What clients wrote to the seed is given up with it.
    """
    undone = msgspec.structs.replace(
        recovery,
        former=(*recovery.former, state.persisted.cluster_id),
        given_up=recovery.revision + recovery.bump,
    )
    return replace(state.persisted, cluster_id=recovery.replaces, recovery=undone)


def create_seed(recovery: Recovery) -> CreateMember:
    """The seed, with the version of its survivor or backup."""
    start: Start = Seeding(source=recovery.source, token=recovery.token, bump=recovery.bump)
    if recovery.stored_backup is not None:
        start = Resuming(token=recovery.token)
    return CreateMember(name=recovery.seed, start=start, version=recovery.version)


def create(state: ClusterState, recovery: Recovery) -> list[Action]:
    """The seed; where numbers are used once, that uses up its own: it distinguishes a lost seed from one that
    was never created.

    One that is there is not created again: its survivor may not be read any more.
    """
    seed = state.by_name.get(recovery.seed)
    is_there = seed is not None and state.kind.may_keep_data(seed)
    is_kept = is_there and recovery.offline_survivor is not None
    made: list[Action] = [] if is_kept else [create_seed(recovery)]
    if not state.kind.reuses_numbers:
        used = replace(state.persisted, next_ordinal=ordinal_of(recovery.seed) + 1)
        made += [Remember(persisted=used), CreateMemberService(name=recovery.seed)]
    return made


def begin(state: ClusterState, recovery: Recovery) -> list[Action]:
    """Read the backup live, write the entry of the recovery, and create what restores its data."""
    remember = record(state, recovery)
    if recovery.backup is None or recovery.stored_backup is None:
        return [remember, create_seed(recovery)]
    backup = next(b for b in state.backups.stored if b.name == recovery.backup.name)
    confirm = ConfirmBackup(name=backup.name, uid=backup.uid, sha256=backup.sha256)
    return [confirm, remember, FillSeed(name=recovery.seed)]


def learned(recovery: Recovery, seed: Member) -> Recovery:
    """With what the seed has fetched, where only it knows that."""
    source, fetched = recovery.source, seed.pod.fetched if seed.pod is not None else None
    if source.name or fetched is None:
        return recovery
    known = msgspec.structs.replace(
        source, name=fetched.name, sha256=fetched.sha256, time=fetched.time, age=fetched.age
    )
    return msgspec.structs.replace(recovery, source=known, revision=fetched.revision)
