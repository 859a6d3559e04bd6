"""When the backup tool is asked which backups it has, and what counts of its reports.

The tool is asked while a source is chosen, or the status names a backup to a person. In the second case a
quorum that the operator does not reach may go on, and newer backups may be stored: what was reported until a
source is to be chosen does not count then, except that it is known.
"""

from dataclasses import dataclass, replace

import msgspec

from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import RecordedToolBackup, ToolBackups
from etcd_operator.controllers.etcd_cluster.decide.recovery.proof import chooses_source, names_backup
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pods.reports import RestorableBackups


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What a process remembers of the questions in this loss."""

    is_named: bool = False  # whether the tool was asked only for the name of a backup until now
    outdated: RestorableBackups | None = None  # what it had reported until a source was to be chosen


def inquire(
    memory: Inquiry | None, state: ClusterState, report: RestorableBackups | None
) -> tuple[Inquiry | None, bool]:
    """The memory from now on, None where nothing is asked; and whether the tool has to be asked anew.

    report: the last one of the tool.
    """
    if chooses_source(state):
        if memory is not None and memory.is_named:
            return Inquiry(outdated=report or memory.outdated), True
        return memory or Inquiry(), False
    if names_backup(state):
        return replace(memory or Inquiry(), is_named=True), False
    return None, True


def known_backups(
    memory: Inquiry,
    state: ClusterState,
    report: RestorableBackups | None,
    *,
    is_answered: bool,
    problem: str,
    waited: float,
    recorded: RecordedToolBackup,
) -> ToolBackups:
    """What is known of the backups of a tool.

    report: the last one since it was asked anew. is_answered: whether the last question was. problem, waited:
    see `ToolBackups`. recorded: of a deleted cluster of this name, its revision does not count.
    """
    is_own = recorded.cluster_id == state.persisted.cluster_id
    named = (revision_named(each, state.persisted.cluster_id) for each in (report, memory.outdated))
    return ToolBackups(
        has_tool=True,
        report=_with_recorded(report, recorded) if is_answered and report is not None else None,
        waited=waited,
        problem=problem,
        known_revision=max(recorded.revision if is_own else 0, *named),
        missing=recorded if _is_newer(recorded, report, is_own=is_own) else None,
    )


def _is_newer(recorded: RecordedToolBackup, report: RestorableBackups | None, *, is_own: bool) -> bool:
    """Whether the backup on record is newer than all that the tool takes for its own.

    The tool has an earlier token or key, with which it has stored older backups, and lists this one last. If
    it is gone, the status follows.
    """
    first = report.candidate if report is not None else None
    if first is None:
        return False
    if first.cluster_id != recorded.cluster_id:
        return is_own  # all others are of former clusters
    return first.revision < recorded.revision


def _with_recorded(report: RestorableBackups, recorded: RecordedToolBackup) -> RestorableBackups:
    """With the newest backup as an authentic one, if it is on record: that was written when it was stored.

    Not against the keys that are given now.
    """
    newest = report.newest
    if newest is None or newest.refusal or not newest.is_known(recorded.name, recorded.sha256):
        return report
    return msgspec.structs.replace(report, newest=msgspec.structs.replace(newest, is_authentic=True))


def revision_named(report: RestorableBackups | None, cluster_id: str) -> int:
    """The revision of the newest backup of this etcd cluster in a report of its tool; 0 if it names none.

    As long as the tool has not read it, that of its manifest counts.
    """
    if report is None:
        return 0
    named = report.newest if report.is_checked else report.candidate
    return named.revision if named is not None and named.cluster_id == cluster_id else 0
