"""A recovery that ends before the point of no return: what was made for it is deleted.

What is left when all of that is being deleted keeps nobody from repairing the cluster that goes on: a claim
remains as long as a pod uses it, and if the node of that pod was cut off, until a person acts. The pod of an
EtcdPeer is waited for all the same, because its etcd may answer. That of a Job is not.
"""

import msgspec

from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.shared_keys import PEER_LABEL, RESTORE_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import DropSeed, ReopenClients
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import (
    claims_kept_by,
    record,
    recovery_name,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import (
    is_led,
    may_elect,
    newer_survivor,
    responders,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import (
    RECHECK,
    SEED_POLL,
    held,
    reason_of,
    source_of,
    under_way,
    way_out,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.job_state import JobState

DELETION_PATIENCE = 60.0
"""Seconds after which a pod that is being deleted is reported: twice what Kubernetes gives it to end."""

CANCELLED = (
    f"the annotation {RESTORE_ANNOTATION} no longer requests this restore: the cluster continues unchanged"
)


def ending(state: ClusterState, recovery: Recovery, seed: Member | None) -> Plan | None:
    """End an attempt before the point of no return.

    A quorum is back, another member has more than is restored, or a restore in place is cancelled.
    """
    if recovery.is_in_place:
        return _claim_going(state, recovery, seed) or _in_place(state, recovery)
    is_proven = state.kind.can_prove_loss and not recovery.is_automatic  # no quorum can come back
    if is_proven or not is_led(state, responders(state)):
        return _outdated(state, recovery)
    why = f"a quorum of the members that were to be given up answers again: {recovery.seed} is not needed"
    if state.kind.can_prove_loss:
        return _without_claim(state, recovery, seed, why)
    return _end(state, recovery, "QuorumReturned", why)


def _outdated(state: ClusterState, recovery: Recovery) -> Plan | None:
    """Give up an attempt whose source is not the best of all that answer now.

    That is recorded, because the other member may fall silent again.
    """
    newer = newer_survivor(state, recovery)
    if newer is None or recovery.failure:
        return None
    why = (
        f"{recovery.seed} is not used: {newer.name} answers at revision {newer.revision}, and is a better "
        f"source than {source_of(recovery)}"
    )
    failed = record(state, msgspec.structs.replace(recovery, failure=why))
    return Plan.act(failed, reason=reason_of(recovery), message=why, requeue_after=0.0)


def await_election(state: ClusterState, recovery: Recovery) -> Plan | None:
    """Wait for the leader of members that answer again: with one the recovery ends (`ending`)."""
    left = responders(state)
    if not may_elect(state, left):
        return None
    return held(
        "QuorumLost",
        f"{', '.join(member.name for member in left)} answer again, and may elect a leader: {recovery.seed} "
        "does not take over; check that they reach each other on port 2380, or, to go on with "
        f"{recovery.seed}, give members up with kubectl delete {state.kind.kubectl_kinds} NAME",
    )


def _in_place(state: ClusterState, recovery: Recovery) -> Plan | None:
    if recovery.failure:
        return _end(state, recovery, "RestoreFailed", recovery.failure)
    if state.desired.restore_in_place == recovery_name(recovery):
        return None
    return _end(state, recovery, "RestoreCancelled", CANCELLED)


def _without_claim(state: ClusterState, recovery: Recovery, seed: Member | None, message: str) -> Plan:
    """Delete an ephemeral seed, then record the end."""
    if seed is not None:
        drops = () if seed.is_terminating else (DropSeed(name=seed.name),)
        return Plan.act(*drops, reason="RecoveryEnding", message=message, requeue_after=SEED_POLL)
    ended = record(state, msgspec.structs.replace(recovery, replaces=""))
    return Plan.act(ended, reason="QuorumReturned", message=message)


def _end(state: ClusterState, recovery: Recovery, reason: str, message: str) -> Plan:
    """Nothing of the old cluster was changed: what was created for the recovery is deleted."""
    ours = [m for m in state.members if m.name == recovery.seed or _is_attempt(state, m)]
    names = [member.name for member in ours if not state.kind.is_retired(member, may_run=False)]
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


def _is_attempt(state: ClusterState, member: Member) -> bool:
    """Whether a member's claim was made for a seed that never served."""
    return member.claim is not None and state.is_attempt(member.claim)


def was_found_to_serve(claim: ClaimFacts | None, recovery: Recovery) -> bool:
    """Whether the claim of a persistent seed has the ID of the new cluster: there is no way back.

    It is written when the seed serves. From then on others may have been changed.
    """
    return claim is not None and bool(claim.cluster_id) and not recovery.gives_up(claim.cluster_id)


def _claim_going(state: ClusterState, recovery: Recovery, seed: Member | None) -> Plan | None:
    """A claim that was found to serve, and is being deleted, is waited for: it may serve until it is gone.

    Only then does the Service select the old members again, and what is left of the seed is deleted.
    """
    claim = seed.claim if seed is not None else None
    if seed is None or claim is None or not claim.is_terminating or not was_found_to_serve(claim, recovery):
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


def cut_off(state: ClusterState) -> str:
    """That a restore in place keeps clients out now, and how to cancel it, as the end of a message.

    Empty if clients reach the cluster.
    """
    recovery = state.persisted.recovery_under_way
    if recovery is None or not recovery.is_in_place or not state.backups.is_closed:
        return ""
    if has_switched_over(state, recovery):
        return "; no client reaches the cluster until the restore has ended: it can no longer be cancelled"
    return (
        f"; no client reaches the cluster; to cancel the restore, remove the annotation {RESTORE_ANNOTATION}"
    )


def has_switched_over(state: ClusterState, recovery: Recovery) -> bool:
    """Whether a restore in place has passed the point of no return."""
    seed = state.by_name.get(recovery.seed)
    return seed is not None and was_found_to_serve(seed.claim, recovery)


def give_up(state: ClusterState, recovery: Recovery) -> str:
    """What a person can do where the Service selects nobody: the EtcdPeer alone would be made again."""
    seed = recovery.seed
    step = _kept_for(state, recovery) or f"to give {seed} up: kubectl delete etcdpeer/{seed} pvc/{seed}"
    return f"no client reaches the cluster meanwhile; {step}"


def seed_problem(state: ClusterState, recovery: Recovery, seed: Member, message: str) -> str:
    """What keeps a seed from running, and how a person begins again."""
    problem = seed.problem.message if seed.problem is not None else ""
    if state.kind.can_prove_loss:
        source = recovery.survivor or "a backup"
        text = f"recovering from {source}: {seed.name}: {problem}; delete its pod to begin again"
        return text + _without_backups(state, recovery)
    step = f"to begin again: kubectl delete etcdpeer {seed.name}"
    if state.backups.is_closed:
        step = give_up(state, recovery)
    return f"{message}; {problem}; {step}"


def _without_backups(state: ClusterState, recovery: Recovery) -> str:
    """For a new cluster: neither another pod nor an edit helps if it names a cluster without backups."""
    if recovery.backup is None or state.persisted.is_bootstrapped:
        return ""
    return (
        f"; if {recovery.backup.cluster} has no backups there, delete this EtcdCluster and create it again "
        "with another spec.restore, or without: it cannot be changed"
    )


def _kept_for(state: ClusterState, recovery: Recovery) -> str:
    """What was given up for the seed: from then on it is the only member, and must not be deleted."""
    kept = ", ".join(claims_kept_by(recovery_name(recovery), state.kept_claims))
    if not kept:
        return ""
    return f"do not delete {recovery.seed}: {kept} were given up for it, and only their claims are kept"


def _going(member: Member) -> str:
    if member.pod is None:
        return f"the EtcdPeer {member.name}"
    return f"the pod {member.pod.name}{way_out(member.pod.name, member.pod.node)}"


# What is left after the end


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
    return f"the pod {job.pod} of the Job {job.name} does not end{way_out(job.pod, job.node)}"


def leftovers(state: ClusterState) -> str:
    """Why the Job of a recovery that has ended still exists, as the end of a message; empty if it is gone."""
    job = state.backups.job
    return f"; {waits_for(job)}" if job is not None and undeleted_seed(state) else ""
