"""Bootstrap: static, once, and never again (invariant I4).

The names of the initial members and their token are recorded in status before the first object
is created, so that an operator that dies at any point continues the same bootstrap. The
bootstrap ends when a quorum answers: the cluster ID is recorded in status, and from then on no rule
bootstraps this cluster again, whatever seems to be missing.

An initial member that is lost before that is created again with its bootstrap flags only where
no quorum can have formed; otherwise two empty initial members could form an empty quorum beside
the data of a third (docs/architecture.md, "Bootstrap").
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import Bootstrap, repeated
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    ChangeStorage,
    ConfirmClaimsLost,
    DropPod,
    Plan,
    Remember,
    ReplaceMember,
)
from etcd_operator.controllers.etcd_cluster.decide.facts.budget import missing_budget
from etcd_operator.controllers.etcd_cluster.decide.facts.services import missing_services
from etcd_operator.controllers.etcd_cluster.decide.first_start import (
    LONG_BOOTSTRAP,
    bootstrapping,
    create,
    initial_members,
)
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import BOOTSTRAP_POLL
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import auth_enabled


def bootstrap(state: ClusterState) -> Plan | None:
    """Begin the bootstrap, or continue the one that status records."""
    if state.persisted.is_bootstrapped or state.persisted.is_restoring:
        return None
    bootstrap = state.persisted.bootstrap
    if bootstrap is None:
        return _begin(state)
    return _record_cluster_id(state, bootstrap) or _continue(state, bootstrap)


def _begin(state: ClusterState) -> Plan:
    """Of a cluster without members and claims: `rules.take_back` and `rules.resume` take every other one."""
    names = state.desired.initial_member_names
    bootstrap = Bootstrap(members=names, token=state.desired.uid, version=state.desired.version)
    return create(bootstrap, names, state.persisted.tls)


def _record_cluster_id(state: ClusterState, bootstrap: Bootstrap) -> Plan | None:
    bootstrapped = state.has_quorum or any(
        # Right after a static bootstrap the committed index is the number of initial members; more was
        # committed only if a leader had a quorum behind it, even if nobody saw it.
        member.answer.committed > len(bootstrap.members)
        for member in state.answers
        if member.answer is not None
    )
    if not bootstrapped or len(state.cluster_ids) != 1:
        return None
    (cluster_id,) = state.cluster_ids
    return Plan.act(
        Remember(persisted=replace(state.persisted, cluster_id=cluster_id)),
        reason="ClusterCreated",
        message=f"a quorum serves, cluster ID {cluster_id}",
        requeue_after=BOOTSTRAP_POLL,
    )


def _continue(state: ClusterState, bootstrap: Bootstrap) -> Plan:
    another = _another_version(state, bootstrap) or _another_storage(state)
    if another is not None:
        return another
    made = {member.name for member in state.members if state.kind.is_made(member)}
    kept = {member.name for member in state.members if state.kind.may_keep_data(member)}
    missing = [name for name in bootstrap.members if name not in made]
    lost = [name for name in bootstrap.members if name not in kept]
    doubtful = [m.name for m in state.members if m.name not in lost and m.may_have_served]
    if lost and doubtful:
        # Members that keep their data continue: a quorum of them has all that was acknowledged.
        missing = [name for name in missing if name not in lost]
    if lost and doubtful and not missing:
        return Plan.hold(
            "BootstrapUncertain",
            f"the data of {', '.join(lost)} was lost while {', '.join(doubtful)} may already have served: "
            "waiting for a quorum to answer; if no quorum can answer, delete the cluster with its claims and "
            "create it again",
            requeue_after=1.0,
        )
    failed = [m for m in state.members if m.name in lost and state.kind.has_ended(m)]
    if failed:
        return _drop(state, bootstrap, failed, is_all=len(lost) == len(bootstrap.members))
    if len(lost) == len(bootstrap.members):
        without_claims = [member.name for member in state.members if _has_lost_its_claim(state, member)]
        if without_claims:
            return _remake(bootstrap, without_claims)
    actions = initial_members(bootstrap, missing)
    actions += [*missing_services(state), *missing_budget(state)]
    slow = state.age > LONG_BOOTSTRAP
    poll = 2.0 if slow else BOOTSTRAP_POLL
    if actions:
        return Plan.act(*actions, reason="Creating", message=bootstrapping(bootstrap), requeue_after=poll)
    return _await_quorum(state, bootstrap, poll)


def _drop(state: ClusterState, bootstrap: Bootstrap, failed: list[Member], *, is_all: bool) -> Plan:
    """Remove pods that never run again, and their data with them; the next pass creates their members again.

    No remaining member has served. Where none remains, though one of them ran, the bootstrap begins again
    with a token of its own, so that a process that is wrongly believed dead never joins.
    """
    actions: list[Action] = [DropPod(name=member.name) for member in failed]
    if is_all and any(m.pod is not None and m.pod.has_run for m in failed):
        renewed = msgspec.structs.replace(bootstrap, token=repeated(bootstrap.token))
        actions.insert(0, Remember(persisted=replace(state.persisted, bootstrap=renewed)))
    names = ", ".join(member.named for member in failed)
    return Plan.act(
        *actions,
        reason="Creating",
        message=f"{names} failed before the cluster served: creating again",
        requeue_after=BOOTSTRAP_POLL,
    )


def _has_lost_its_claim(state: ClusterState, member: Member) -> bool:
    return member.peer is not None and not member.is_terminating and state.kind.is_storage_lost(member)


def _remake(bootstrap: Bootstrap, names: list[str]) -> Plan:
    """Delete the peers of members that are all without claims; later passes create them again.

    Their pods would wait for ever. The token stays the same: a peer is gone only when its process is.
    """
    return Plan.act(
        ConfirmClaimsLost(names=bootstrap.members),
        *(ReplaceMember(name=name, version=bootstrap.version) for name in names),
        reason="Creating",
        message=f"all claims were lost before the cluster served: creating {', '.join(names)} again",
        requeue_after=BOOTSTRAP_POLL,
    )


def _another_version(state: ClusterState, bootstrap: Bootstrap) -> Plan | None:
    """Bootstrap another version if the spec changes before any initial member has run: it may not exist."""
    if not bootstrap.version or any(m.pod is not None and m.pod.has_run for m in state.members):
        return None
    wanted = state.desired.version
    actions: list[Action] = [
        ReplaceMember(name=member.name, version=wanted)
        for member in state.members
        if member.requested_version not in ("", wanted) and not member.is_terminating
    ]
    if bootstrap.version != wanted:
        renewed = msgspec.structs.replace(bootstrap, version=wanted)
        actions.insert(0, Remember(persisted=replace(state.persisted, bootstrap=renewed)))
    if not actions:
        return None
    return Plan.act(
        *actions, reason="Creating", message=f"bootstrapping with etcd {wanted}", requeue_after=BOOTSTRAP_POLL
    )


def _another_storage(state: ClusterState) -> Plan | None:
    """Make initial members anew if the spec's storage changes before any claim has a volume.

    Nothing can be on them, and no member has run. New ones are made when all of the old ones are gone: beside
    a claim on which a member may have run, one that is late would count as lost.
    """
    outdated = [member for member in state.members if _has_other_storage(member)]
    claims = [member.claim for member in state.members if member.claim is not None]
    if not outdated or any(claim.is_bound or claim.is_lost for claim in claims):
        return None
    names = tuple(member.name for member in outdated)
    has_all_ended = all(member.peer is None or member.is_terminating for member in outdated)
    actions = () if has_all_ended else (ChangeStorage(names=names),)
    return Plan.act(
        *actions,
        reason="Creating",
        message=f"spec.storage has changed, and no claim has a volume yet: creating {', '.join(names)} again",
        requeue_after=BOOTSTRAP_POLL,
    )


def _has_other_storage(member: Member) -> bool:
    """Whether it has the former storage, or is what is left of that."""
    if member.peer is not None:
        return member.peer.has_other_storage
    return member.has_terminating_claim


def _await_quorum(state: ClusterState, bootstrap: Bootstrap, poll: float) -> Plan:
    if state.requires_user:
        return Plan.hold(*auth_enabled(state), requeue_after=poll)
    for member in state.members:
        if member.problem is not None:
            problem = member.problem
            return Plan.hold(problem.reason, f"{member.name}: {problem.message}", requeue_after=poll)
    return Plan.wait("Creating", bootstrapping(bootstrap), requeue_after=poll)
