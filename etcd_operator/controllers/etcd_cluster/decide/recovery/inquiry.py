"""What the backup tool of a cluster is asked while a recovery chooses its source, or a person may.

No backup can be begun without a quorum, so what a tool reports since the loss is final. But while the status
only names a backup to a person, a quorum that the operator does not reach may go on, and newer backups may be
stored: what was reported until a source is to be chosen does not count then, except that it is known.
"""

from dataclasses import dataclass, replace

from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ToolBackups
from etcd_operator.controllers.etcd_cluster.decide.recovery.proof import chooses_source, names_backup
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pods.reports import RestorableBackups


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What a process remembers of the questions in this loss."""

    is_named: bool = False
    """Whether the tool was asked only for the name of a backup until now."""
    outdated: RestorableBackups | None = None
    """What it had reported until a source was to be chosen."""


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
    recorded: int,
) -> ToolBackups:
    """What is known of the backups of a tool.

    report: the last one since it was asked anew. is_answered: whether the last question was. problem, waited:
    see `ToolBackups`. recorded: the revision of the newest backup by the status of the cluster.
    """
    named = (revision_named(each, state.persisted.cluster_id) for each in (report, memory.outdated))
    return ToolBackups(
        is_kept=True,
        report=report if is_answered else None,
        waited=waited,
        problem=problem,
        known_revision=max(recorded, *named),
    )


def revision_named(report: RestorableBackups | None, cluster_id: str) -> int:
    """The revision of the newest backup of this etcd cluster in a report of its tool; 0 if it names none.

    As long as the tool has not read it, that of its manifest counts.
    """
    if report is None:
        return 0
    named = report.newest if report.is_checked else report.candidate
    return named.revision if named is not None and named.cluster_id == cluster_id else 0
