"""The entry of a recovery in status: what the seed gets, and a name and a token that were never used before.

See `recovery.quorum_lost` and `recovery.manual_recovery`.
"""

import msgspec

from etcd_operator.api.persisted import REVISION_BUMP, Recovery, RestoredBackup, recovery_token
from etcd_operator.controllers.etcd_cluster.decide.member_names import ordinal_of
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.known_backups import CompletedBackup
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_names import generation_in
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pods.tool_report import VerifiedBackup

MOVED_ON = REVISION_BUMP // 2
"""How far a seed's revision is ahead of its survivor's at least.

Not the whole bump: etcdutl counts from the newest revision that is still stored, and the last ones
may be deletions that were compacted away; an empty store has none.
"""


def next_recovery(state: ClusterState, survivor: Member) -> Recovery:
    """The entry of a recovery from `survivor`, with a seed, and a token, that were never used before."""
    return _next(
        state,
        survivor=survivor.name,
        revision=survivor.revision,
        version=survivor.report.version if survivor.report is not None else state.desired.version,
        sha256=survivor.reading.sha256 if survivor.answer is None and survivor.reading is not None else "",
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
