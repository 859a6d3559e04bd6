"""A Job that runs a command of the operator, and its pods, as `job_reader` finds them for decisions.

A kubelet evicts pods because its node runs out of disk or memory. The Job of a restore tolerates that, and
Kubernetes makes another pod each time, after a pause that doubles from 10 seconds to 10 minutes. A node that
lacks room for the snapshot evicts that one, too. So repeated evictions are reported with the next step, and
the Job goes on by itself when there is room.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.shared.decide.job_report import JobReport
from etcd_operator.pods.reports import Progress

START_PATIENCE = 600.0
"""Seconds for which a Job is waited for before any pod of it runs: a Secret or a node may be missing."""

REPORTED_FROM = 2
"""One eviction may be the fault of another pod on that node."""

LONGEST_PAUSE = 600.0
"""Seconds from an eviction to the next pod of the Job at most."""


REFUSED_AFTER = 5.0
"""Seconds after which a Job without a pod is asked for its Events: most have a pod sooner."""

LINGER = 60.0
"""Seconds within which Kubernetes notes the end of a pod; after that, another container keeps it running."""


class JobEnd(Enum):
    """Whether Kubernetes counts a Job as ended."""

    RUNS = "runs"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPod:
    """A pod of a Job, and its container that runs the command."""

    name: str
    has_started: bool = False  # the container runs or has run
    is_terminating: bool = False
    has_failed: bool = False
    is_finished: bool = False  # none of its containers will run again
    waits_for: str = ""  # why it has not started, as Kubernetes reports it
    exit_code: int | None = None  # None until the container has ended
    reason: str = ""  # Kubernetes' word for how the container or the pod ended
    message: str = ""  # what Kubernetes adds to that
    report: JobReport | None = None

    @property
    def has_ended(self) -> bool:
        """Whether Kubernetes reports its end."""
        return self.exit_code is not None or self.has_failed

    @property
    def is_running(self) -> bool:
        """Whether its command runs, or has just succeeded, on a node that has not been given up."""
        return self.has_started and self.exit_code in (None, 0) and not self.is_terminating


@dataclass(frozen=True, slots=True, kw_only=True)
class Evictions:
    """The pods of a Job that were evicted."""

    count: int
    pod: str  # the last one
    node: str  # from which the last one was evicted
    message: str  # the kubelet's reason


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """A Job that was made for one object, and its pods."""

    name: str
    uid: str = ""
    end: JobEnd = JobEnd.RUNS
    message: str = ""  # Kubernetes' message on the end
    is_terminating: bool = False
    is_suspended: bool = False
    is_running: bool = False
    age: float = 0.0  # seconds for which passes have seen it
    waited: float = 0.0  # seconds for which passes have seen that nothing of it runs
    stopping: float = 0.0  # seconds for which passes have seen that it `is_stopping`
    lingering: float = 0.0  # seconds for which passes have seen that it `lingers`
    waits_for: str = ""  # why nothing of it runs
    refusal: str = ""  # why Kubernetes cannot create its pod: a quota, or a policy
    report: JobReport | None = None  # of its newest pod that reported
    why: str = ""  # why it failed, as Kubernetes reports it of the newest pod or of the Job
    claim_uid: str = ""  # of the claim to which it restores; empty if it does not show that
    request: str = ""  # for which old backups are removed
    secret: str = ""  # the name of its Secret for etcd; empty if it needs none
    progress: Progress | None = None  # what its newest pod last reported
    pod: str = ""  # its newest pod; empty without one
    node: str = ""  # to which the newest pod was assigned
    evictions: Evictions | None = None
    pods: tuple[JobPod, ...] = ()  # the oldest first

    @property
    def is_stopping(self) -> bool:
        """Whether all of it that has not ended is being deleted."""
        left = [pod for pod in self.pods if not pod.has_ended]
        return all(pod.is_terminating for pod in left) if left else self.is_terminating

    @property
    def lingers(self) -> bool:
        """Whether its command has ended, and its newest pod goes on: a webhook may have added a container."""
        pod = self.pods[-1] if self.pods else None
        return pod is not None and pod.exit_code is not None and not pod.is_finished

    @property
    def has_started(self) -> bool:
        """Whether one of its pods runs or has run."""
        return any(pod.has_started for pod in self.pods)


def patience(job: JobState) -> float:
    """For how many seconds nothing of a Job of a restore may run."""
    return START_PATIENCE + LONGEST_PAUSE if job.evictions is not None else START_PATIENCE


def evicted_again(jobs: Sequence[JobState]) -> str:
    """The first Job whose pods are evicted again and again, and what to do; empty if there is none."""
    return next((text for job in jobs if (text := _evicted_again(job))), "")


def _evicted_again(job: JobState) -> str:
    found = job.evictions
    if found is None or found.count < REPORTED_FROM:
        return ""
    step = (
        "free what the node lacks, or have the next pod of the Job start on another node: kubectl cordon "
        f"{found.node}; Kubernetes creates that pod after a pause of up to 10 minutes"
    )
    waits = f"; now: {job.waits_for}" if not job.is_running and job.pod != found.pod else ""
    return (
        f"{found.count} pods of the Job {job.name} were evicted, the last one, {found.pod}, from the node "
        f"{found.node}: {found.message}: {step}{waits}"
    )
