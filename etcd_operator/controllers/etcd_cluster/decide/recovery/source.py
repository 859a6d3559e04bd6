"""Which backup a recovery restores: one that is newer than every survivor, or all that is left.

Persistent members are recovered from a backup only if a person requests it (`requested`).

Of the backup tool, only what it has verified since the loss counts: no backup of this cluster can be begun
without a quorum, so what is found then is final. One that was begun before, and is still being stored, has
every write that was acknowledged by then, so it is waited for; a tool that makes no progress gives it up by
itself. A backup is newer than a survivor if it is of the same etcd cluster and has a higher revision. Every
survivor has more than any backup of an earlier etcd cluster.

Whoever can write to the store can put any backup there. So one is restored only if the tool has stored it
itself, as its report or, from that time, the status of the cluster shows. Others are named to a person; with
keys, so is each one that is not encrypted with one of them. And none is restored while the status has a newer
one that the tool does not know.

Of EtcdBackups, the newest one is offered; a person may name an older one, because only reading it shows
whether a backup is whole.
"""

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import (
    CompletedBackup,
    RecordedToolBackup,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import (
    is_corrupt,
    keeps_running,
    kept_survivor,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import held
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.formats import UNKNOWN_BACKUP
from etcd_operator.pods.reports import BackupReport
from etcd_operator.versions import can_restore

TOOL_GRACE = 30.0
"""Seconds of silence of a backup tool, where a survivor has all that is known to be stored."""

ASK_AGAIN = 0.5
"""Seconds until a tool that is reading its backups is asked again."""

ALL_LOST = "the data of all members is lost"
EMPTY = "no empty cluster is bootstrapped in its place"


def less_than(state: ClusterState, survivor: Member) -> int:
    """The revision that a backup must exceed to come before a survivor.

    One with an equal revision comes before corrupt data, too.
    """
    return survivor.revision - is_corrupt(state, survivor)


def stored_newer_than(state: ClusterState, least: int) -> tuple[CompletedBackup, ...]:
    """The EtcdBackups that have more than this revision, the newest first.

    One whose verification has failed comes after all others.
    """
    found = [
        backup
        for backup in state.backups.stored
        if backup.cluster_id == state.persisted.cluster_id
        and backup.revision > least
        and can_restore(backup.etcd_version)
    ]
    return tuple(sorted(found, key=lambda b: (not b.is_damaged, b.revision, b.time), reverse=True))


def newer_than(state: ClusterState, survivor: Member) -> BackupReport | Plan | None:
    """A backup of the tool that comes before this survivor; None: there is none; a plan: that is unknown."""
    tool_backups = state.tool_backups
    if not tool_backups.has_tool:
        return None
    least, report = less_than(state, survivor), tool_backups.report
    if report is None:
        return _wait_beside(state, survivor, least)
    if not report.is_listed:
        return held(
            "BackupPending",
            "no quorum can return; waiting for the backup tool, which lists the stored backups or still "
            f"stores a backup that was begun before the loss{_without(state, survivor)}",
        )
    missing, listed = tool_backups.missing, report.candidate
    is_own = missing is not None and missing.cluster_id == state.persisted.cluster_id
    if missing is not None and listed is not None and is_own and missing.revision > least:
        return _missing(missing, listed, f"no quorum can return{_without(state, survivor)}")
    if not _has_more(state, report.candidate, least):
        return None  # so has no other: there is no need to wait until it is read
    if not report.is_checked:
        return _wait_beside(state, survivor, least)
    if report.newest is None or not _has_more(state, report.newest, least):
        return None
    loss = f"no quorum can return{_without(state, survivor)}"
    return report.newest if report.newest.is_authentic else _unknown(report.newest, loss)


def _without(state: ClusterState, survivor: Member) -> str:
    """How a person recovers from the survivor instead, as the end of a message."""
    if is_corrupt(state, survivor):
        return ""  # it is no source without a person: see `proven`
    return f"; remove spec.backup to recover from {survivor.name}"


def _unknown(backup: BackupReport, loss: str) -> Plan:
    """A backup that is listed, and that the tool has not stored as far as is known, or does not read."""
    what = f"{loss}; the backup {backup.name} at revision {backup.revision}"
    if backup.refusal:
        return held(
            "UnknownBackup",
            f"{what} is not restored: {backup.refusal}; to go on without it, move it away with its manifest",
        )
    return held(
        "UnknownBackup",
        f"{what} {UNKNOWN_BACKUP}: move it away with its manifest to go on without it; to begin with its "
        "data, delete the cluster and create it again with spec.restore",
    )


def _missing(recorded: RecordedToolBackup, listed: BackupReport, loss: str) -> Plan:
    """The newest backup on record is not known to the tool any more: no older one is restored instead."""
    return held(
        "UnknownBackup",
        f"{loss}; {recorded.name} at revision {recorded.revision}, the newest backup in status.backup, is "
        f"none of those that the backup tool knows, the newest of which is {listed.name} at revision "
        f"{listed.revision}: if the token in its Secret or a key of spec.backup.encryption is an earlier "
        f"one, put the later one back; to begin with the data of {recorded.name}, delete the cluster and "
        f"create it again with spec.restore; to go on without that data, move {recorded.name} away with its "
        "manifest",
    )


def _has_more(state: ClusterState, backup: BackupReport | None, revision: int) -> bool:
    if backup is None or backup.cluster_id != state.persisted.cluster_id:
        return False
    return backup.revision > revision and can_restore(backup.etcd_version)


def _wait_beside(state: ClusterState, survivor: Member, least: int) -> Plan | None:
    tool_backups = state.tool_backups
    why = f" ({tool_backups.problem})" if tool_backups.problem else ""
    candidate = tool_backups.report.candidate if tool_backups.report is not None else None
    known = max(tool_backups.known_revision, candidate.revision if candidate is not None else 0)
    if known > least:
        return held(
            "BackupPending",
            f"no quorum can return; a backup has revision {known}, {survivor.name} has {survivor.revision}: "
            f"waiting for the backup tool{why}{_without(state, survivor)}",
        )
    if tool_backups.waited < TOOL_GRACE:
        return Plan.wait(
            "QuorumLost",
            "no quorum can return; asking the backup tool which backups it has",
            requeue_after=ASK_AGAIN,
        )
    return None


def _newest_backup(state: ClusterState) -> BackupReport | Plan:
    """The backup to restore where no member is left; a plan where there is none, or it is not known."""
    tool_backups = state.tool_backups
    if not tool_backups.has_tool:
        return held(
            "NoBackup",
            "no pod of a member is found by its labels (etcd_cluster, etcd_node): the data of all members is "
            f"lost, and {EMPTY}; if pods run without these labels, restore them; if there are backups, set "
            "spec.backup to where they are; if not, delete the cluster and create it again to begin with an "
            "empty one",
        )
    if tool_backups.report is None or not tool_backups.report.is_checked:
        why = tool_backups.problem or "it is asked which backups it has"
        return Plan.hold(
            "BackupPending",
            f"{ALL_LOST}: waiting for the backup tool to restore a backup: {why}",
            requeue_after=ASK_AGAIN,
        )
    newest, damaged = tool_backups.report.newest, ", ".join(tool_backups.report.damaged)
    if newest is None:
        what = f"no backup is intact (damaged: {damaged})" if damaged else "there is no backup"
        return held(
            "NoBackup",
            f"{ALL_LOST}, and {what}: {EMPTY}; delete the cluster and create it again to begin with an empty "
            "one",
        )
    if tool_backups.missing is not None:
        return _missing(tool_backups.missing, newest, ALL_LOST)
    if not _is_own(state, newest):
        return held(
            "NoBackup",
            f"{ALL_LOST}, and there is no intact backup of this cluster: the newest one, "
            f"{newest.name}, is of another etcd cluster ({newest.cluster_id}) that had this name; to begin "
            "with its data, delete the cluster and create it again with spec.restore",
        )
    if not can_restore(newest.etcd_version):
        return held(
            "RecoveryUnsupported",
            f"{ALL_LOST}: the newest backup {newest.name} is of etcd "
            f"{newest.etcd_version}, which cannot restore it without hiding writes from watchers (3.5.10 and "
            "later can): restore it by hand",
        )
    return newest if newest.is_authentic else _unknown(newest, ALL_LOST)


def older_source(state: ClusterState) -> BackupReport | Recovery | Plan:
    """What to go back to where no member is left: a backup, or the last recovery, whose survivor is kept.

    A plan where there is neither, or that is not known. Only backups of the lost cluster are newer than that
    survivor.
    """
    kept, recovery = kept_survivor(state), state.persisted.recovery
    if kept is None or recovery is None or recovery.survivor != kept.name or state.persisted.is_recovering:
        return _newest_backup(state)
    tool = state.tool_backups
    is_known = not tool.has_tool or (tool.report is not None and tool.report.is_checked)
    if not (is_known and keeps_running(kept)):  # any backup of the lost cluster is newer, so it is waited for
        return _newest_backup(state)
    return newer_than(state, kept) or recovery


def _is_own(state: ClusterState, backup: BackupReport) -> bool:
    """Whether a backup is of an etcd cluster that this resource had, as far as its status records them.

    A seed is opened to clients, and to the backup tool, after the ID of its cluster is on record.
    """
    recovery = state.persisted.recovery
    if recovery is None:
        return backup.cluster_id == state.persisted.cluster_id
    source = recovery.backup if recovery.is_at_creation else None
    if source is not None and source.cluster == state.desired.name:
        return True  # it began with the newest backup of a cluster of this name
    return backup.cluster_id in (state.persisted.cluster_id, *recovery.given_up_ids)
