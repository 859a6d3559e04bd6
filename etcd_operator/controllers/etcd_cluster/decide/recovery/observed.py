"""What is observed for a recovery only: absences, data that was read, and backups."""

from dataclasses import dataclass

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.shared.decide.job_state import JobState
from etcd_operator.pods.reports import RestorableBackups


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """For how long a quorum, and every voter that does not answer, have been missed without interruption."""

    seconds: float = 0.0
    """By a clock that never jumps."""
    since: str = ""
    """The same as a time for people (RFC 3339); empty while nothing is counted."""


NO_ABSENCE = Absence()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFacts:
    """The last container that was added to a pod to read its member's data (see `offline`)."""

    name: str
    number: int = 1
    """Of how many in its pod it is the last."""
    token: str = ""
    """What it requires of a client."""
    is_running: bool = False
    has_ended: bool = False
    ended_at: str = ""
    """When its process ended (RFC 3339), by the clock of its node."""
    found_leader: bool = False
    """Whether it ended because its member followed a leader; the member has not been restarted since."""
    problem: str = ""
    """Why it does not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read of the data of a member that answers nobody."""

    answer: Answer
    """What it would have answered; without a list of members, if it is no voter."""
    sha256: str
    """Of its database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBackups:
    """What the backup tool of the cluster has, as far as the operator knows."""

    is_kept: bool = False
    """Whether the cluster has backups."""
    report: RestorableBackups | None = None
    """The tool's, asked for since the loss; None if there is none yet."""
    waited: float = 0.0
    """Seconds for which there has been a problem without a break."""
    problem: str = ""
    """Why the report is missing; empty also while the first question is under way."""
    known_revision: int = 0
    """Of the newest backup of the recorded etcd cluster that was known before the loss, or named since."""
    has_source_tool: bool = False
    """Whether the cluster from whose backups a new one is restored has a backup tool that uses its claim."""


NO_TOOL_BACKUPS = ToolBackups()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedBackup:
    """A completed EtcdBackup of this cluster."""

    name: str
    uid: str
    cluster_id: str
    """The ID that the etcd cluster had then."""
    revision: int
    etcd_version: str
    sha256: str
    time: str
    """When it was taken (RFC 3339)."""
    age: int
    """Seconds that it is old."""
    url: str
    """Where it is stored."""
    spec: RawObject
    """Of the EtcdBackup, for its access to the store."""
    is_damaged: bool = False
    """Whether its verification has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFacts:
    """What is known of the EtcdBackups of a cluster; only where one of them may be restored."""

    is_listed: bool = False
    """Whether `stored` has all of them."""
    is_awaited: bool = False
    """Whether they are being listed."""
    refusal: str = ""
    """Why the API server does not let the operator list them."""
    unreadable: str = ""
    """Which of the namespace exist and cannot be read, as a phrase; empty if there is none."""
    stored: tuple[CompletedBackup, ...] = ()
    job: JobState | None = None
    """The Job that restores one to the volume of a seed, while that is not started."""
    is_closed: bool = False
    """Whether the Service selects no member, because they are being given up."""

    @property
    def but_unreadable(self) -> str:
        """The same as the end of a sentence which reports that there is none."""
        return f", but {self.unreadable}" if self.unreadable else ""


NO_BACKUPS = BackupFacts()
