"""The ordered rules for one EtcdRestore. The first with an opinion wins.

Everything is verified before anything is made. Then each member has a claim and a Job that restores to it.
When all of them have succeeded, the claims are annotated with its ID, the Jobs are removed, and the
EtcdCluster is created, which resumes on the claims. Until the first claim is annotated, a failure removes
everything; after that no claim: all data is complete, and a cluster that somebody else created may run on it.
"""

from collections.abc import Callable

from etcd_operator.api.restores import COMPLETED, PENDING, RestoreFailure, Verified
from etcd_operator.controllers.etcd_restore.decide.actions import Act, RestorePlan, ended, failed
from etcd_operator.controllers.etcd_restore.decide.spec import version_problem
from etcd_operator.controllers.etcd_restore.decide.state import ClaimState, RestoreState, TargetCluster
from etcd_operator.controllers.shared.decide.job_report import restore_failure
from etcd_operator.controllers.shared.decide.job_state import JobEnd, JobState, evicted_again, patience
from etcd_operator.formats import counted

SOURCE_PATIENCE = 60.0
"""Seconds for which the EtcdBackup may be missing: it may be created with its EtcdRestore."""

RECHECK = 10.0
"""Seconds; the events of what a restore waits for come first."""

SOON = 1.0
"""Seconds; for what has no event here: claims, clusters, EtcdBackups."""

PROGRESS_POLL = 5.0
"""Seconds; for the progress of pods, which have no right to write it anywhere."""

RestoreRule = Callable[[RestoreState], RestorePlan | None]


def accept(state: RestoreState) -> RestorePlan | None:
    """Write that it has begun before anything is made."""
    if state.phase == PENDING:
        return None
    if state.problem:
        return ended(RestoreFailure(reason="InvalidSpec", message=state.problem))
    return RestorePlan("Accepted", f"the backup will be restored to the EtcdCluster {state.cluster_name}")


def refuse(state: RestoreState) -> RestorePlan | None:
    """Wait with a spec that an operator of another version accepted: what it has made is not known here."""
    if not state.problem:
        return None
    message = (
        f"{state.problem}: another version of the operator accepted this spec: use that version, or delete "
        "this EtcdRestore together with what it has created"
    )
    return RestorePlan("InvalidSpec", message)


def clean_up(state: RestoreState) -> RestorePlan | None:
    """After a failure: remove what was made, then report the end."""
    if state.failure is None:
        return None
    if state.has_leftovers:
        message = f"removing what the restore created, because of: {state.failure.message}"
        return RestorePlan("CleaningUp", message, act=Act.CLEAN_UP, requeue_after=SOON)
    message = f"{state.failure.message}{_kept(state)}"
    return ended(RestoreFailure(reason=state.failure.reason, message=message))


def finish(state: RestoreState) -> RestorePlan | None:
    """All claims are handed over: the cluster resumes on them.

    Kubernetes deletes no claim that a pod mounts, not even of one that has ended: without the Jobs, the
    cluster can remove and replace its members.
    """
    if state.cluster is TargetCluster.OURS:
        return RestorePlan("Restored", _restored(state), phase=COMPLETED)
    if not state.members or any(member.claim is not ClaimState.ANNOTATED for member in state.members):
        return None
    if state.has_jobs:
        message = "all members are restored; removing their Jobs"
        return RestorePlan("RemovingJobs", message, act=Act.REMOVE_JOBS, requeue_after=SOON)
    name = state.cluster_name
    match state.cluster:
        case TargetCluster.ABSENT:
            message = f"all members are restored; creating the EtcdCluster {name}"
            return RestorePlan("CreatingCluster", message, act=Act.CREATE_CLUSTER, requeue_after=SOON)
        case TargetCluster.TERMINATING:
            return RestorePlan("WaitingForDeletion", _waiting(f"EtcdCluster {name}"), requeue_after=SOON)
        case _:
            message = (
                f"somebody else created an EtcdCluster {name} at the last moment: it resumes on the restored "
                "claims, which are kept"
            )
            return ended(RestoreFailure(reason="ClusterExists", message=message))


def require_free_name(state: RestoreState) -> RestorePlan | None:
    """Nothing that exists is touched."""
    if state.is_handed_over:
        return None
    name = state.cluster_name
    if state.cluster is TargetCluster.FOREIGN:
        message = f"there is an EtcdCluster {name} already: delete it and its claims, or choose another name"
        return failed("ClusterExists", message)
    if state.in_the_way:
        message = (
            f"there are claims of a cluster {name} already: {', '.join(state.in_the_way)}: delete them if "
            "their data is not needed, or choose another name"
        )
        return failed("ClaimsExist", message)
    leaving = (*state.going, *([f"EtcdCluster {name}"] if state.cluster is TargetCluster.TERMINATING else []))
    if leaving:
        return RestorePlan("WaitingForDeletion", _waiting(", ".join(leaving)), requeue_after=SOON)
    return None


def await_source(state: RestoreState) -> RestorePlan | None:
    """Wait for the EtcdBackup; it does not matter any more once every member has its Job, or its data."""
    source = state.source
    is_needed = state.snapshot is None or any(m.job is None and not m.is_restored for m in state.members)
    if source.url or not is_needed:
        return None
    if source.is_final or (source.is_missing and state.waited >= SOURCE_PATIENCE):
        return failed(source.reason, source.message)
    return RestorePlan(source.reason, source.message, requeue_after=SOON)


def verify(state: RestoreState) -> RestorePlan | None:
    """One Job reads the whole backup before anything is made for the cluster."""
    if state.snapshot is not None:
        return None
    job = state.check
    if job is None:
        message = f"creating the Job that verifies {state.source.url}"
        return RestorePlan("Verifying", message, act=Act.CREATE_CHECK, requeue_after=RECHECK)
    if job.end is JobEnd.SUCCEEDED and job.report is not None and job.report.snapshot is not None:
        snapshot = job.report.snapshot
        if state.source.sha256 not in ("", snapshot.sha256):
            found = f"the object at {state.source.url} is not the one that the EtcdBackup stored there: "
            found += f"the SHA-256 of its snapshot is {snapshot.sha256}"
            return failed("Replaced", f"{found}: choose another EtcdBackup")
        message = f"verified: {_contents(snapshot)}"
        return RestorePlan("Verified", message, snapshot=snapshot, requeue_after=0.0)
    return _await((job,), "Verifying", f"verifying {state.source.url}")


def judge(state: RestoreState) -> RestorePlan | None:
    """Whether the cluster that is asked for can start with this snapshot."""
    snapshot = state.snapshot
    if snapshot is None or any(member.claim is not ClaimState.ABSENT for member in state.members):
        return None
    problem = version_problem(snapshot, state.template_version)
    if problem:
        return failed("VersionNotPossible", problem)
    if state.storage is not None and state.storage < snapshot.size:
        message = f"the database has {snapshot.size} bytes, and each claim requests only {state.storage}: "
        return failed("VolumeTooSmall", f"{message}request more in spec.clusterTemplate.spec.storage")
    return None


def create_claims(state: RestoreState) -> RestorePlan | None:
    """Make the claims; one that was deleted since then takes its data with it."""
    missing = [member for member in state.members if member.claim is ClaimState.ABSENT]
    leaving = (ClaimState.TERMINATING, ClaimState.ANNOTATED_TERMINATING)
    gone = [m.name for m in state.members if m.claim in leaving or m.is_replaced] + [
        member.name for member in missing if member.job is not None or state.is_handed_over
    ]
    if gone:
        return failed("ClaimDeleted", f"somebody deleted the claim {', '.join(gone)} of the new cluster")
    if not missing:
        return None
    return RestorePlan("CreatingClaims", "creating the claims", act=Act.CREATE_CLAIMS, requeue_after=0.0)


def create_jobs(state: RestoreState) -> RestorePlan | None:
    """Make the Jobs. To repeat one does no harm: complete data is left alone."""
    if all(member.job is not None or member.is_restored for member in state.members):
        return None
    message = f"creating the Jobs that restore {state.source.url}"
    return RestorePlan("Restoring", message, act=Act.CREATE_JOBS, requeue_after=RECHECK)


def await_jobs(state: RestoreState) -> RestorePlan | None:
    """Report what the Jobs do."""
    jobs = [member.job for member in state.members if member.job is not None and not member.is_restored]
    if not jobs:
        return None
    restored = sum(member.is_restored for member in state.members)
    return _await(tuple(jobs), "Restoring", f"restored {restored} of {len(state.members)} members")


def annotate(_state: RestoreState) -> RestorePlan | None:
    """All data is complete."""
    message = "all members are restored; annotating their claims with the ID of the cluster"
    return RestorePlan("AnnotatingClaims", message, act=Act.ANNOTATE, requeue_after=0.0)


RULES: tuple[RestoreRule, ...] = (
    accept,
    refuse,
    clean_up,
    finish,
    require_free_name,
    await_source,
    verify,
    judge,
    create_claims,
    create_jobs,
    await_jobs,
    annotate,
)


def plan(state: RestoreState) -> RestorePlan | None:
    """What to do for a restore; None for one that has ended: total, deterministic, without side effects."""
    if state.is_final:
        return None
    return next(opinion for rule in RULES if (opinion := rule(state)))


def _await(jobs: tuple[JobState, ...], reason: str, message: str) -> RestorePlan:
    """Jobs of which at least one has not succeeded with a report."""
    for job in jobs:
        if job.end is not JobEnd.RUNS:
            why = restore_failure(job.report, why=job.why or "it was deleted", job=job.name)
            return failed(why.reason, why.message)
    waiting = [job for job in jobs if not job.is_running]
    late = [job for job in waiting if job.waited >= patience(job)]
    if late:
        minutes = round(patience(late[0]) / 60)
        message = f"no pod of the Job {late[0].name} ran for {minutes} minutes: {late[0].waits_for}"
        return failed("NotStarted", message)
    left = max(min((patience(job) - job.waited for job in waiting), default=PROGRESS_POLL), SOON)
    evicted = evicted_again(jobs)
    if evicted:
        return RestorePlan("PodEvicted", f"{message}; {evicted}", requeue_after=min(left, PROGRESS_POLL))
    if waiting:
        return RestorePlan("PodPending", f"{message}; {waiting[0].waits_for}", requeue_after=min(left, 60.0))
    return RestorePlan(reason, message, requeue_after=PROGRESS_POLL)


def _kept(state: RestoreState) -> str:
    """What stays after a failure, and what becomes of it."""
    annotated, owned = (
        ", ".join(member.name for member in state.members if member.claim is claim)
        for claim in (ClaimState.ANNOTATED, ClaimState.OURS)
    )
    resumed = f"an EtcdCluster {state.cluster_name} resumes on {annotated}" if annotated else ""
    deleted = f"{owned} will be deleted with this EtcdRestore" if owned else ""
    left = "; ".join(text for text in (resumed, deleted) if text)
    return f". The claims with restored data are kept: {left}" if left and state.is_handed_over else ""


def _waiting(what: str) -> str:
    """What stands in the way until Kubernetes has deleted it."""
    return f"waiting until a former cluster or claims of this name are deleted: {what}"


def _contents(snapshot: Verified) -> str:
    """What is in a snapshot, and how that was checked."""
    checked = {
        "manifest": "all hashes match",
        "hash": "there is no manifest, but etcd's hash matches",
        "none": "there is neither a manifest nor etcd's hash, so only the structure was checked",
    }
    keys = counted(snapshot.keys, "key")
    return f"revision {snapshot.revision}, {keys}, {checked.get(snapshot.check, snapshot.check)}"


def _restored(state: RestoreState) -> str:
    """What a restore has made."""
    found = f" ({_contents(state.snapshot)})" if state.snapshot is not None else ""
    members = counted(len(state.members), "member")
    return f"restored {members}, on which the EtcdCluster {state.cluster_name} resumes{found}"
