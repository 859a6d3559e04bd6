"""The seed of a recovery from an EtcdBackup: a Job restores the backup to its claim before etcd starts on it.

    claim, Job (`FillSeed`) -> the Job succeeds -> the EtcdPeer, with an existing-only start

The Job compares what it fetches with the SHA-256 on record, and the data gets its name only when it is
complete. So a Job can be repeated, and a claim that somebody deletes is followed by another one. One whose
volume is gone is not: the attempt has failed, as with a Job that fails.
"""

from dataclasses import replace

from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.restores import RestoreFailure
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import DropFilling, FillSeed
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import is_deletion_blocked, waits_for
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import create_seed
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import reason_of, step, under_way
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.job_report import restore_failure
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobState, evicted_again, patience

FILLING_POLL = 1.0
"""Seconds between observations of the Job: its events lead to no pass of the cluster."""


def fill(state: ClusterState, recovery: Recovery, seed: Member | None) -> Plan | RestoreFailure:
    """The next step until the EtcdPeer of the seed exists; or why there is none."""
    claim, job = seed.claim if seed is not None else None, state.backups.job
    if claim is not None and claim.is_lost and not claim.is_terminating:
        return RestoreFailure(reason="ClaimLost", message=f"the volume of the claim {claim.name} is gone")
    if job is None:
        if claim is not None and claim.is_terminating:
            return _wait(recovery, f"waiting until the former claim {claim.name} is deleted")
        return replace(step(recovery, FillSeed(name=recovery.seed)), requeue_after=FILLING_POLL)
    if job.is_terminating:
        why = f": {waits_for(job)}" if is_deletion_blocked(job) else ""
        return _wait(recovery, f"waiting until its former Job is deleted{why}")
    is_other = claim is not None and job.claim_uid not in ("", claim.uid)
    if claim is None or claim.is_terminating or is_other:
        dropped = step(recovery, DropFilling(name=recovery.seed))
        return replace(dropped, message=f"{under_way(recovery)}: its claim was deleted")
    if job.end is JobEnd.SUCCEEDED:
        return step(recovery, create_seed(recovery))
    if job.end is JobEnd.FAILED:
        return restore_failure(job.report, why=job.why, job=job.name)
    return _await(recovery, job)


def _await(recovery: Recovery, job: JobState) -> Plan | RestoreFailure:
    limit = patience(job)
    evicted = evicted_again([job])
    if evicted and (job.is_running or job.waited < limit):
        return _wait(recovery, evicted)
    if job.is_running:
        return _wait(recovery, f"the Job {job.name} is restoring the backup")
    if job.waited < limit:
        return _wait(recovery, f"the Job {job.name} has not started: {job.waits_for}")
    minutes = round(limit / 60)
    message = f"no pod of the Job {job.name} ran for {minutes} minutes: {job.waits_for}"
    return RestoreFailure(reason="NotStarted", message=message)


def _wait(recovery: Recovery, what: str) -> Plan:
    return Plan.wait(reason_of(recovery), f"{under_way(recovery)}: {what}", requeue_after=FILLING_POLL)
