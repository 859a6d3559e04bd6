"""Members that another operator created, and that a person has handed over, become members of ours.

The operator that served `etcd.improbable.io` before gave claims, pods and peer URLs the names that ours have.
Handed over means: its EtcdPeers are gone, and its pods are labelled and its claims annotated with one
token (docs/migrating.md). The members go on to run as they are; only the status is written here. Later
rules create what is missing: the EtcdPeers, whose ReplicaSets are created once a person has deleted
those of the other operator.
"""

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.shared_keys import INITIAL_MEMBERS_ANNOTATION, TOKEN_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import (
    in_former_pods,
    left_outside,
    may_change,
)
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import named, of_another_operator
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD

RECHECK = 1.0
"""Seconds between observations while no quorum of the members answers."""


def take_over(state: ClusterState) -> Plan | None:
    """Record the token that they are annotated with, and the cluster ID that a quorum of them reports."""
    if state.persisted.has_begun:
        return None
    running = [member for member in state.members if member.pod is not None]
    if not running or any(member.peer is not None for member in state.members):
        return None
    claims = [member.claim for member in state.members if member.claim is not None]
    if len({claim.name for claim in claims} & {member.name for member in running}) < len(running):
        return None  # a pod without a claim is not what that operator created
    if any(_is_recorded(claim) for claim in claims):
        return _annotated_as_stopped(running, claims)
    return _without_token(state.desired.name, claims) or _record(state, claims)


def finish(state: ClusterState) -> Plan | None:
    """Make no planned change before a person has deleted the ReplicaSets of the other operator.

    Their pods would go on to run after the EtcdPeer of their member was removed or replaced.
    """
    former = in_former_pods(state)
    return _delete_replica_sets(former) if former else None


def remains(state: ClusterState) -> Plan | None:
    """Wait for a person where all that is left of removed members is in pods of the other operator."""
    former = left_outside(state) if may_change(state) else ()
    return _delete_replica_sets(former) if former else None


def _delete_replica_sets(names: tuple[str, ...]) -> Plan:
    return Plan.hold(
        "OtherOperator",
        f"the ReplicaSets {', '.join(names)} were not created by this operator: delete them, each with its "
        "pod, one at a time (docs/migrating.md)",
        requeue_after=RETRY_HELD,
    )


def _is_recorded(claim: ClaimFacts) -> bool:
    """Whether this operator has annotated it: then the status was lost, which is another matter."""
    return bool(claim.cluster_id or claim.initial_members)


def _annotated_as_stopped(running: list[Member], claims: list[ClaimFacts]) -> Plan | None:
    """A person has annotated the claims in the way for members whose pods are gone.

    Claims and pods of this operator show that it made them: then the status was lost.
    """
    is_ours = any(claim.cluster_id or claim.cluster_uid for claim in claims)
    if is_ours or any(member.pod is not None and member.pod.is_gated for member in running):
        return None
    names = ", ".join(member.name for member in running)
    message = (
        f"{names} run, but their claims are annotated as those of members without pods: to take them over, "
        f"remove the annotation {INITIAL_MEMBERS_ANNOTATION} from the claims (docs/migrating.md)"
    )
    return Plan.hold("OtherOperator", message, requeue_after=RETRY_HELD)


def _without_token(name: str, claims: list[ClaimFacts]) -> Plan | None:
    """The earlier operator's token was the name of the cluster; by it the peer URLs are known.

    See `DesiredCluster.has_one_service`.
    """
    names = [claim.name for claim in claims]
    if not all(claim.token for claim in claims):
        return Plan.hold(*of_another_operator(names, "the claims "), requeue_after=RETRY_HELD)
    if {claim.token for claim in claims} == {name}:
        return None
    message = (
        f"the claims {named(names)} must have the annotation {TOKEN_ANNOTATION}={name} (docs/migrating.md)"
    )
    return Plan.hold("OtherOperator", message, requeue_after=RETRY_HELD)


def _record(state: ClusterState, claims: list[ClaimFacts]) -> Plan:
    names = ", ".join(claim.name for claim in claims)
    if not state.has_quorum or len(state.cluster_ids) != 1:
        return Plan.hold(
            "QuorumLost",
            f"no quorum of {names} answers with the peer URLs that members of this resource have: not taking "
            "over",
            requeue_after=RECHECK,
        )
    (cluster_id,) = state.cluster_ids
    bootstrap = Bootstrap(members=(), token=claims[0].token)
    return Plan.act(
        Remember(persisted=PersistedState(bootstrap=bootstrap, cluster_id=cluster_id)),
        reason="TakingOver",
        message=f"taking over the cluster {cluster_id}, on the claims {names}",
    )
