"""A recovery that ends before the point of no return: what was made for it is deleted.

What is left when all of that is being deleted keeps nobody from repairing the cluster that goes on: a claim
remains as long as a pod uses it, and if the node of that pod was cut off, until a person acts. The pod of an
EtcdPeer is waited for all the same, because its etcd may answer. That of a Job is not.
"""

import msgspec

from etcd_operator.api.persisted import Recovery
from etcd_operator.api.shared_keys import PEER_LABEL
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_actions import (
    DropFilling,
    DropSeed,
    ReopenClients,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_names import (
    claims_kept_by,
    recovery_name,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import (
    RECHECK,
    SEED_POLL,
    held,
    reason_of,
    record,
    under_way,
    was_found_to_serve,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_restore.decide.state import JobState

DELETION_PATIENCE = 60.0
"""Seconds after which a pod that is being deleted is reported: twice what Kubernetes gives it to end."""


def end(state: ClusterState, recovery: Recovery, reason: str, message: str) -> Plan:
    """Nothing of the old cluster was changed: what was created for the recovery is deleted."""
    ours = [m for m in state.members if m.name == recovery.seed or is_attempt(state, m)]
    names = [member.name for member in ours if not is_leaving(member)]
    job = state.backups.job
    if job is not None and not job.is_terminating and recovery.seed not in names:
        names.append(recovery.seed)
    reopens = [ReopenClients(name=recovery.seed)] if state.backups.is_closed else []
    if names or reopens:
        drops = [DropSeed(name=name) for name in names]
        return Plan.act(*reopens, *drops, reason="RecoveryEnding", message=message, requeue_after=SEED_POLL)
    left = [_going(member) for member in ours if member.peer is not None or member.pod is not None]
    if left:
        waits = f"{message}; waiting until {', '.join(left)} is deleted"
        return Plan.wait("RecoveryEnding", waits, requeue_after=RECHECK)
    ended = record(state, msgspec.structs.replace(recovery, replaces=""))
    return Plan.act(ended, reason=reason, message=message)


def claim_going(state: ClusterState, recovery: Recovery, seed: Member | None) -> Plan | None:
    """A claim that was found to serve, and is being deleted, is waited for: it may serve until it is gone.

    Only then does the Service select the old members again, and what is left of the seed is deleted.
    """
    claim = seed.claim if seed is not None else None
    if seed is None or claim is None or not claim.is_terminating or not recovery.in_place:
        return None
    if not was_found_to_serve(claim, recovery):
        return None
    message = (
        f"{under_way(recovery)}; the claim {claim.name} is being deleted, after its member was found to "
        "serve: clients reach no member until the claim is gone"
    )
    return held(reason_of(recovery), f"{message}; {_next_step(state, recovery, seed)}")


def _next_step(state: ClusterState, recovery: Recovery, seed: Member) -> str:
    """What a person can do about the claim of a seed that is being deleted."""
    kept = _kept_for(state, recovery)
    if kept:
        return kept
    if seed.peer is not None and not seed.peer.is_terminating:
        return f"to begin again: kubectl delete etcdpeer {seed.name}"
    if seed.pod is not None:
        return f"waiting for {_going(seed)}"
    # Without its ReplicaSet the operator does not know a pod as that of the seed.
    return (
        f"if a pod of {seed.name} does not end because its node never responds again: kubectl delete pod "
        f"--selector {PEER_LABEL}={seed.name} --force"
    )


def give_up(state: ClusterState, recovery: Recovery) -> str:
    """What a person can do where the Service selects nobody: the EtcdPeer alone would be made again."""
    seed = recovery.seed
    step = _kept_for(state, recovery) or f"to give {seed} up: kubectl delete etcdpeer/{seed} pvc/{seed}"
    return f"no client reaches the cluster meanwhile; {step}"


def _kept_for(state: ClusterState, recovery: Recovery) -> str:
    """What was given up for the seed: from then on it is the only member, and must not be deleted."""
    kept = ", ".join(claims_kept_by(recovery_name(recovery), state.kept))
    if not kept:
        return ""
    return f"do not delete {recovery.seed}: {kept} were given up for it, and only their claims are kept"


def is_attempt(state: ClusterState, member: Member) -> bool:
    """Whether a member's claim was made for a seed that never served."""
    return member.claim is not None and state.is_attempt(member.claim)


def is_leaving(member: Member) -> bool:
    """Whether nothing is left to delete of a member, its claim included."""
    if member.peer is not None and not member.peer.is_terminating:
        return False
    cleans = member.peer is not None and member.peer.is_for_cleanup
    return cleans or member.claim is None or member.claim.is_terminating


def _going(member: Member) -> str:
    if member.pod is None:
        return f"the EtcdPeer {member.name}"
    return f"the pod {member.pod.name}{_way_out(member.pod.name, member.pod.node)}"


def _way_out(pod: str, node: str) -> str:
    """What a person can do about a pod whose node does not respond."""
    where = f"its node {node}" if node else "its node"
    return f" (if {where} never responds again: kubectl delete pod {pod} --force)"


# The cluster goes on


def reopen(state: ClusterState) -> Plan | None:
    """Let the Service select members although no restore is under way.

    A request to close it may take effect after its reply was given up, when the restore has ended.
    """
    recovery = state.persisted.recovery
    if recovery is None or not state.backups.is_closed or state.persisted.is_recovering:
        return None
    return Plan.act(
        ReopenClients(name=recovery.seed),
        reason="Repairing",
        message="letting clients reach the cluster again",
    )


def created_late(state: ClusterState) -> Plan | None:
    """Delete the claim or the Job of a recovery that has ended, whose creation took effect after that.

    The API server may carry out a request whose reply it gave up. Where a member has the name of the seed by
    now, only the Job is deleted: it would write to the volume of that member.
    """
    recovery, job = state.persisted.recovery, state.backups.job
    if recovery is None or state.persisted.is_recovering or recovery.replaces:
        return None
    if not recovery.in_place and not state.has_quorum:
        return None  # it has to confirm the quorum that ended it
    seed = state.by_name.get(recovery.seed)
    is_unused = seed is not None and _is_unused(seed, recovery)
    if not is_unused and (job is None or job.is_terminating):
        return None
    action = DropSeed if is_unused or seed is None else DropFilling
    return Plan.act(
        action(name=recovery.seed),
        reason="RecoveryEnding",
        message=f"deleting what was created late for {recovery.seed}, which is not needed any more",
        requeue_after=SEED_POLL,
    )


def _is_unused(seed: Member, recovery: Recovery) -> bool:
    """Whether there is a claim for a seed and nothing that used it."""
    claim = seed.claim
    if claim is None or claim.is_terminating or seed.peer is not None or seed.pod is not None:
        return False
    return claim.token == recovery.token and not claim.cluster_id


def undeleted_seed(state: ClusterState) -> str:
    """The seed of a recovery that has ended, whose Job cannot be deleted; empty if there is none."""
    recovery, job = state.persisted.recovery, state.backups.job
    if recovery is None or state.persisted.is_recovering or job is None or not is_deletion_blocked(job):
        return ""
    return recovery.seed


def is_deletion_blocked(job: JobState) -> bool:
    """Whether it takes longer to delete a Job than its pod may take to end."""
    return job.is_terminating and job.waited >= DELETION_PATIENCE


def waits_for(job: JobState) -> str:
    """Why a Job that is being deleted still exists."""
    if not job.pod:
        return f"the Job {job.name} is not deleted: its finalizers show who holds it"
    return f"the pod {job.pod} of the Job {job.name} does not end{_way_out(job.pod, job.node)}"


def leftovers(state: ClusterState) -> str:
    """Why the Job of a recovery that has ended still exists, as the end of a message; empty if it is gone."""
    job = state.backups.job
    return f"; {waits_for(job)}" if job is not None and undeleted_seed(state) else ""


def report(state: ClusterState) -> Plan | None:
    """Report what is left of a recovery that has ended, after all that concerns the cluster itself."""
    seed = undeleted_seed(state)
    if not seed:
        return None
    return held("RecoveryEnding", f"{seed} is not needed any more, and is being deleted{leftovers(state)}")
