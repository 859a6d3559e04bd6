"""What is observed for a recovery only: absences, data that was read, and backups."""

from dataclasses import dataclass

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.shared.decide.job_state import JobState
from etcd_operator.pods.reports import RestorableBackups


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """For how long a quorum, and every voter that does not answer, have been missed without interruption."""

    seconds: float = 0.0  # by a clock that never jumps
    since: str = ""  # the same as a time for people (RFC 3339); empty while nothing is counted


NO_ABSENCE = Absence()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFacts:
    """The last container that was added to a pod to read its member's data (see `offline`)."""

    name: str
    number: int = 1  # of how many in its pod it is the last
    is_running: bool = False
    has_ended: bool = False
    # whether it ended because its member followed a leader; the member has not been restarted since
    found_leader: bool = False
    problem: str = ""  # why it does not run


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read of the data of a member that answers nobody."""

    answer: Answer  # what it would have answered; without a list of members, if it is no voter
    sha256: str  # the SHA-256 of its database


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedToolBackup:
    """The newest backup of the tool, as the status recorded it when it was stored."""

    name: str = ""
    sha256: str = ""
    cluster_id: str = ""
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBackups:
    """What the backup tool of the cluster has, as far as the operator knows."""

    has_tool: bool = False  # whether the cluster has a backup tool; false also where none needs to be asked
    report: RestorableBackups | None = None  # of the tool, since the loss; None if there is none
    waited: float = 0.0  # seconds for which there has been a problem without a break
    problem: str = ""  # why the report is missing; empty also while the first question is under way
    # the revision of the newest backup of the recorded cluster that was known before the loss, or named since
    known_revision: int = 0
    # the backup on record, if the tool takes only older ones for its own; None if not, or if it has none
    missing: RecordedToolBackup | None = None
    # whether the cluster from whose backups a new one is restored has a backup tool that uses its claim
    has_source_tool: bool = False
    is_source_secured: bool = False


NO_TOOL_BACKUPS = ToolBackups()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedBackup:
    """A completed EtcdBackup of this cluster."""

    name: str
    uid: str
    cluster_id: str  # the ID that the etcd cluster had then
    revision: int
    etcd_version: str
    sha256: str
    time: str  # when it was taken (RFC 3339)
    age: int  # seconds that it is old
    url: str  # where it is stored
    size: int  # of its snapshot, in bytes
    spec: RawObject  # the spec of the EtcdBackup, for its access to the store
    is_damaged: bool = False  # whether its verification has failed


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFacts:
    """What is known of the EtcdBackups of a cluster; only where one of them may be restored."""

    is_listed: bool = False  # whether `stored` has all of them
    is_awaited: bool = False  # whether they are being listed
    refusal: str = ""  # why the API server does not let the operator list them
    # which of the namespace exist and cannot be read, as a phrase; empty if there is none
    unreadable: str = ""
    stored: tuple[CompletedBackup, ...] = ()
    # the Job that restores one to the volume of a seed, while that is not started
    job: JobState | None = None
    is_closed: bool = False  # whether the Service selects no member, because they are being given up
    closed_for: float = 0.0  # seconds since it was closed; 0 where that is not known

    @property
    def but_unreadable(self) -> str:
        """The same as the end of a sentence which reports that there is none."""
        return f", but {self.unreadable}" if self.unreadable else ""


NO_BACKUPS = BackupFacts()
