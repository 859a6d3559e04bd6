"""Which backup a recovery restores: one that is newer than every survivor, or all that is left.

Of the backup tool, only what it has verified since the loss counts: no backup of this cluster can be begun
without a quorum, so what is found then is final. One that was begun before, and is still being stored, has
every write that was acknowledged by then, so it is waited for; a tool that makes no progress gives it up by
itself. A backup is newer than a survivor if it is of the same etcd cluster and has a higher revision. Every
survivor has more than any backup of an earlier etcd cluster.

Of EtcdBackups, the newest one is offered; a person may name an older one, because only reading it shows
whether a backup is whole.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import CompletedBackup
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import held
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pods.reports import BackupReport
from etcd_operator.versions import can_restore

TOOL_GRACE = 30.0
"""Seconds of silence of a backup tool, where a survivor has all that is known to be stored."""

ASK_AGAIN = 0.5
"""Seconds until a tool that is reading its backups is asked again."""

ALL_LOST = "the data of all members is lost"
EMPTY = "no empty cluster is bootstrapped in its place"


def stored_newer_than(state: ClusterState, survivor: Member | None) -> tuple[CompletedBackup, ...]:
    """The EtcdBackups that have more than the best survivor (None: there is none), the newest first.

    One whose verification has failed comes after all others.
    """
    least = survivor.revision if survivor is not None else 0
    found = [
        backup
        for backup in state.backups.stored
        if backup.cluster_id == state.persisted.cluster_id
        and backup.revision > least
        and can_restore(backup.etcd_version)
    ]
    return tuple(sorted(found, key=lambda b: (not b.is_damaged, b.revision, b.time), reverse=True))


def newer_than(state: ClusterState, survivor: Member) -> BackupReport | Plan | None:
    """A backup of the tool with more than this survivor; None if there is none; a plan if that is unknown."""
    tool_backups = state.tool_backups
    if not tool_backups.is_kept:
        return None
    revision, report = survivor.revision, tool_backups.report
    if report is None:
        return _wait_beside(state, survivor.name, revision)
    if not report.is_listed:
        return held(
            "BackupPending",
            "no quorum can return; waiting for the backup tool, which lists the stored backups or still "
            "stores a backup that was begun before the loss; remove spec.backup to recover from "
            f"{survivor.name}",
        )
    if not _has_more(state, report.candidate, revision):
        return None  # so has no other: there is no need to wait until it is read
    if not report.is_checked:
        return _wait_beside(state, survivor.name, revision)
    return report.newest if _has_more(state, report.newest, revision) else None


def _has_more(state: ClusterState, backup: BackupReport | None, revision: int) -> bool:
    if backup is None or backup.cluster_id != state.persisted.cluster_id:
        return False
    return backup.revision > revision and can_restore(backup.etcd_version)


def _wait_beside(state: ClusterState, name: str, revision: int) -> Plan | None:
    tool_backups = state.tool_backups
    why = f" ({tool_backups.problem})" if tool_backups.problem else ""
    candidate = tool_backups.report.candidate if tool_backups.report is not None else None
    known = max(tool_backups.known_revision, candidate.revision if candidate is not None else 0)
    if known > revision:
        return held(
            "BackupPending",
            f"no quorum can return; a backup has revision {known}, more than {name} with "
            f"{revision}: waiting for the backup tool{why}; remove spec.backup to recover from {name}",
        )
    if tool_backups.waited < TOOL_GRACE:
        return Plan.wait(
            "QuorumLost",
            "no quorum can return; asking the backup tool which backups it has",
            requeue_after=ASK_AGAIN,
        )
    return None


def newest_backup(state: ClusterState) -> BackupReport | Plan:
    """The backup to restore where no member is left; a plan where there is none, or it is not known."""
    tool_backups = state.tool_backups
    if not tool_backups.is_kept:
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
    return newest


def _is_own(state: ClusterState, backup: BackupReport) -> bool:
    """Whether a backup is of an etcd cluster that this resource had, as far as its status records them.

    A seed is opened to clients, and to the backup tool, after the ID of its cluster is on record.
    """
    recovery = state.persisted.recovery
    if recovery is None:
        return backup.cluster_id == state.persisted.cluster_id
    if not recovery.replaces:
        # It began with the newest backup of a cluster, or its quorum returned in time.
        source = recovery.backup if recovery.authority == "Creation" else None
        began = source is not None and source.cluster == state.desired.name
        return began or backup.cluster_id in (state.persisted.cluster_id, *recovery.former)
    return backup.cluster_id in (state.persisted.cluster_id, recovery.replaces, *recovery.former)
