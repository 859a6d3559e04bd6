"""Pods of Jobs that a kubelet evicts, because its node runs out of disk or memory.

Nobody counts these: the Job tolerates disruptions, and Kubernetes makes another pod each time, after a pause
that doubles from 10 seconds to 10 minutes. A node that lacks room for the snapshot evicts that one, too. So
what is evicted again is reported, with the next step, and goes on by itself when there is room.
"""

from collections.abc import Sequence

from etcd_operator.controllers.etcd_restore.decide.state import JobState

REPORTED_FROM = 2
"""One eviction may be the fault of another pod on that node."""

LONGEST_PAUSE = 600.0
"""Seconds from an eviction to the next pod of the Job at most."""


def patience(job: JobState, seconds: float) -> float:
    """For how long nothing of a Job may run. seconds: without evictions."""
    return seconds + LONGEST_PAUSE if job.evictions is not None else seconds


def repeated(jobs: Sequence[JobState]) -> str:
    """The first Job whose pods are evicted again and again, and what to do; empty if there is none."""
    return next((text for job in jobs if (text := _repeated(job))), "")


def _repeated(job: JobState) -> str:
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
