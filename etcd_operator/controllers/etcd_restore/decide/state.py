"""The observed state of an EtcdRestore: all that a decision about it may rest on."""

from dataclasses import dataclass
from enum import Enum

from etcd_operator.api.restores import COMPLETED, FAILED, RecordedBackup, RestoreFailure, Verified
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobState


class ClaimState(Enum):
    """The claim of a member, as far as this EtcdRestore made it."""

    ABSENT = "absent"
    OURS = "ours"  # made for this EtcdRestore, and not annotated
    ANNOTATED = "annotated"  # its data is complete, and it belongs to the cluster from now on
    TERMINATING = "terminating"
    ANNOTATED_TERMINATING = "annotated, and terminating"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberState:
    """A member of the new cluster."""

    name: str
    claim: ClaimState = ClaimState.ABSENT
    claim_uid: str = ""  # of the claim that it has now
    job: JobState | None = None

    @property
    def is_replaced(self) -> bool:
        """Whether its claim is another one than that to which its Job restores, and so may be empty."""
        return self.job is not None and self.job.claim_uid not in ("", self.claim_uid)

    @property
    def is_restored(self) -> bool:
        """Whether its data is complete."""
        is_done = self.job is not None and self.job.end is JobEnd.SUCCEEDED and not self.is_replaced
        return self.claim is ClaimState.ANNOTATED or (self.claim is ClaimState.OURS and is_done)


class TargetCluster(Enum):
    """The EtcdCluster of the name of the new one, of either group."""

    ABSENT = "absent"
    OURS = "ours"
    FOREIGN = "foreign"
    TERMINATING = "terminating"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """Where the backup is: its URL, or why there is none yet."""

    url: str = ""
    backup: RecordedBackup | None = None  # as recorded, or to be recorded, of the EtcdBackup that stored it
    reason: str = ""
    message: str = ""
    is_missing: bool = False  # there is no such EtcdBackup
    is_final: bool = False  # waiting does not help

    @property
    def sha256(self) -> str:
        """Of the snapshot that an EtcdBackup has stored; empty if that is not known."""
        return self.backup.sha256 if self.backup is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreState:
    """What was observed of one EtcdRestore."""

    created: str = ""  # RFC 3339
    cluster_name: str = ""
    phase: str = ""
    is_deleting: bool = False
    problem: str = ""  # what is wrong with its spec
    template_version: str = ""  # of etcd, as the template has it; may be empty
    storage: int | None = None  # bytes that each claim requests; None if not a whole number of a unit
    source: SourceState = SourceState()
    waited: float = 0.0  # seconds for which passes have seen the restore
    cluster: TargetCluster = TargetCluster.ABSENT
    in_the_way: tuple[str, ...] = ()  # claims of the new cluster's name that are somebody else's
    going: tuple[str, ...] = ()  # such claims that are being deleted
    snapshot: Verified | None = None  # of the status
    failure: RestoreFailure | None = None  # of the status
    check: JobState | None = None
    members: tuple[MemberState, ...] = ()

    @property
    def is_final(self) -> bool:
        """Whether nothing is ever done for it again."""
        return self.is_deleting or self.phase in (COMPLETED, FAILED)

    @property
    def is_handed_over(self) -> bool:
        """Whether a claim has been handed over to the cluster: from then on there is no way back."""
        annotated = (ClaimState.ANNOTATED, ClaimState.ANNOTATED_TERMINATING)
        was_handed_over = self.failure is not None and self.failure.claims_kept
        return was_handed_over or any(member.claim in annotated for member in self.members)

    @property
    def jobs(self) -> tuple[JobState, ...]:
        """All Jobs that exist."""
        found = (self.check, *(member.job for member in self.members))
        return tuple(job for job in found if job is not None)

    @property
    def has_jobs(self) -> bool:
        """Whether a Job exists that is not being deleted."""
        return any(not job.is_terminating for job in self.jobs)

    @property
    def has_leftovers(self) -> bool:
        """Whether something exists that it made, is not handed over, and is not being deleted."""
        return self.has_jobs or any(member.claim is ClaimState.OURS for member in self.removable)

    @property
    def removable(self) -> tuple[MemberState, ...]:
        """The members whose claims a failure may remove: once one is handed over, all data is complete."""
        return () if self.is_handed_over else self.members
