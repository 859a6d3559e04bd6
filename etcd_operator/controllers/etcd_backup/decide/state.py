"""The observed state of an EtcdBackup: all that a decision about it may rest on."""

from dataclasses import dataclass

from etcd_operator.controllers.etcd_backup.decide.result import BackupReport
from etcd_operator.controllers.shared.decide.job_end import JobEnd

BACKING_UP, COMPLETED, FAILED = "BackingUp", "Completed", "Failed"
"""The phases. The last two are final."""

RESTORE = "Restore"
"""The level of a verification that also restores the backup; at any level everything is read back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPodState:
    """The pod of a backup.

    has_started: its container runs or has run. waits_for: why it has not started, as Kubernetes reports it.
    exit_code: of its container, None until that has ended. reason: Kubernetes' word for how the pod or its
    container ended. report: what the command reported.
    """

    name: str
    has_started: bool = False
    is_terminating: bool = False
    has_failed: bool = False
    waits_for: str = ""
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    report: BackupReport | None = None

    @property
    def has_succeeded(self) -> bool:
        """Whether the command has stored the backup, also if it failed after its report."""
        return self.exit_code == 0 or (self.report is not None and self.report.manifest is not None)

    @property
    def has_ended(self) -> bool:
        """Whether Kubernetes reports its end."""
        return self.exit_code is not None or self.has_failed


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupJobState:
    """The Job that was made for this very EtcdBackup: the one that stores it, or the one that verifies it.

    age: seconds for which passes have seen it. stopping: seconds for which passes have seen that it
    `is_stopping`.
    """

    name: str
    uid: str
    end: JobEnd = JobEnd.RUNS
    message: str = ""
    is_terminating: bool = False
    age: float = 0.0
    stopping: float = 0.0
    pods: tuple[BackupPodState, ...] = ()

    @property
    def is_stopping(self) -> bool:
        """Whether all of it that has not ended is being deleted."""
        left = [pod for pod in self.pods if not pod.has_ended]
        return all(pod.is_terminating for pod in left) if left else self.is_terminating


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCluster:
    """The cluster to back up: `endpoints` to ask (host:port), or why there are none yet."""

    endpoints: tuple[str, ...] = ()
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """What was observed of one EtcdBackup.

    problem: what is wrong with its spec. url: what its template stands for.
    waited: seconds for which passes have seen it; of a stored one, to be verified.
    verify: the level at which it is to be verified, empty for none. has_verdict: that has ended.
    job: of what is to be done now, storing or verifying. is_job_recorded: its status names that Job, so that
    one was made. stopped: reason and message with which the operator stopped it; empty if it did not.
    message: the message of the status on what is to be done now.
    sha256, etcd_version: of what was stored; empty if they are not known.
    """

    phase: str = ""
    is_deleting: bool = False
    problem: str = ""
    url: str = ""
    source: SourceCluster = SourceCluster()
    waited: float = 0.0
    verify: str = ""
    has_verdict: bool = False
    sha256: str = ""
    etcd_version: str = ""
    job: BackupJobState | None = None
    is_job_recorded: bool = False
    stopped: tuple[str, str] = ("", "")
    message: str = ""

    @property
    def is_final(self) -> bool:
        """Whether its phase is never changed again."""
        return self.is_deleting or self.phase in (COMPLETED, FAILED)

    @property
    def is_to_be_verified(self) -> bool:
        """Whether it is stored, and its verification has not ended."""
        is_stored = self.phase == COMPLETED and not self.is_deleting
        return is_stored and bool(self.verify) and not self.has_verdict
