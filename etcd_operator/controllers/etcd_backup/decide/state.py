"""The observed state of an EtcdBackup: all that a decision about it may rest on."""

from dataclasses import dataclass

from etcd_operator.api.backups import COMPLETED, FAILED
from etcd_operator.controllers.shared.decide.job_state import JobState

RESTORE = "Restore"
"""The level of a verification that also restores the backup; at any level everything is read back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCluster:
    """The cluster to back up: `endpoints` to ask (host:port), or why there are none yet."""

    endpoints: tuple[str, ...] = ()
    uid: str = ""  # of the EtcdCluster; empty for another etcd
    needs_secret: bool = False  # whether the Job has to get a certificate of this EtcdCluster
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """What was observed of one EtcdBackup."""

    phase: str = ""
    is_deleting: bool = False
    problem: str = ""  # what is wrong with its spec
    url: str = ""  # what its template stands for
    source: SourceCluster = SourceCluster()
    waited: float = 0.0  # seconds for which passes have seen it; of a stored one, to be verified
    verify: str = ""  # the level at which it is to be verified, empty for none
    has_verdict: bool = False  # its verification has ended
    sha256: str = ""  # of what was stored; empty if it is not known
    etcd_version: str = ""  # of what was stored; empty if it is not known
    job: JobState | None = None  # of what is to be done now, storing or verifying
    is_job_recorded: bool = False  # its status names that Job, so it was made
    stopped: tuple[str, str] = ("", "")  # reason and message with which the operator stopped it
    message: str = ""  # of the status, on what is to be done now

    @property
    def is_final(self) -> bool:
        """Whether its phase is never changed again."""
        return self.is_deleting or self.phase in (COMPLETED, FAILED)

    @property
    def is_to_be_verified(self) -> bool:
        """Whether it is stored, and its verification has not ended."""
        is_stored = self.phase == COMPLETED and not self.is_deleting
        return is_stored and bool(self.verify) and not self.has_verdict
