"""What is known of the backups of a cluster when a recovery chooses its source."""

from dataclasses import dataclass

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_restore.decide.state import JobState
from etcd_operator.pods.tool_report import RestorableBackups


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBackups:
    """What the backup tool of the cluster has, as far as the operator knows.

    is_kept: the cluster has backups. report: the tool's, asked for since the loss; None if there is none yet.
    problem: why it is missing; empty also while the first question is under way. waited: seconds for which
    there has been a problem without a break. known_revision: of the newest backup of the recorded etcd
    cluster that was known before the loss, or that the tool has named since. has_source_tool: the cluster
    from whose backups a new cluster is restored has a backup tool, which uses its claim.
    """

    is_kept: bool = False
    report: RestorableBackups | None = None
    waited: float = 0.0
    problem: str = ""
    known_revision: int = 0
    has_source_tool: bool = False


NO_TOOL_BACKUPS = ToolBackups()


def revision_named(report: RestorableBackups | None, cluster_id: str) -> int:
    """The revision of the newest backup of this etcd cluster in a report of its tool; 0 if it names none.

    As long as the tool has not read it, that of its manifest counts.
    """
    if report is None:
        return 0
    named = report.newest if report.is_checked else report.candidate
    return named.revision if named is not None and named.cluster_id == cluster_id else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedBackup:
    """A completed EtcdBackup of this cluster, of the etcd cluster that had this ID then.

    time: when it was taken (RFC 3339). age: seconds that it is old. spec, url: see
    `persisted.RestoredBackup`. is_damaged: its verification has failed.
    """

    name: str
    uid: str
    cluster_id: str
    revision: int
    etcd_version: str
    sha256: str
    time: str
    age: int
    url: str
    spec: RawObject
    is_damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFacts:
    """What is known of the EtcdBackups of a cluster; only where one of them may be restored.

    is_listed: whether `stored` has all of them. job: the Job that restores one to the volume of a seed, while
    that is not started. is_closed: the Service selects no member, because they are being given up.
    is_awaited: they are being listed. refusal: why the API server does not let the operator list them.
    unreadable: which of the namespace exist and cannot be read, as a phrase; empty if there is none.
    """

    is_listed: bool = False
    is_awaited: bool = False
    refusal: str = ""
    unreadable: str = ""
    stored: tuple[CompletedBackup, ...] = ()
    job: JobState | None = None
    is_closed: bool = False

    @property
    def but_unreadable(self) -> str:
        """The same as the end of a sentence which reports that there is none."""
        return f", but {self.unreadable}" if self.unreadable else ""


NO_BACKUPS = BackupFacts()
