"""Whether the NetworkPolicy of a cluster is written or removed (decision 040).

This is no rule of the plan: nothing waits for it, and a right that is missing for it must not keep the
operator from replacing a member.
"""

from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import is_adopting


class PolicyStep(Enum):
    """What to do about the NetworkPolicy of a cluster."""

    NOTHING = "nothing"
    WRITE = "write"  # create it, or put it right
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFacts:
    """The NetworkPolicies that concern a cluster."""

    exists: bool = False  # the one of the operator
    is_as_desired: bool = False
    other: str = ""  # the name of another one that selects members; empty for none
    names_operator: bool = True  # whether a NetworkPolicy can name the pods of the operator


def policy_step(state: ClusterState, found: PolicyFacts) -> PolicyStep:
    """What to do. One that does not name the operator's pods would cut the operator off.

    Policies add up, so beside one that was there before, ours would only allow more. Ours remains where
    another one comes later: without ours, that one would close every port that it does not name.
    """
    if is_held(state):
        return PolicyStep.NOTHING
    if not state.desired.network.enabled or not found.names_operator:
        return PolicyStep.REMOVE if found.exists else PolicyStep.NOTHING
    if found.is_as_desired or (found.other and not found.exists):
        return PolicyStep.NOTHING
    return PolicyStep.WRITE


def has_outside_peers(state: ClusterState) -> bool | None:
    """Whether members that the operator did not create, or those of another resource, connect as peers.

    None while that is not known: without a quorum, etcd's list of members is not.
    """
    if is_adopting(state) or state.desired.is_adoptable or state.unknown_members or state.external:
        return True
    return None if state.members and not state.has_quorum else False


def is_held(state: ClusterState) -> bool:
    """Whether nothing may be changed: see `rules.guard`.

    A cluster is paused before another resource adopts its members, which then have to be reached.
    """
    desired = state.desired
    is_paused = desired.is_paused and not desired.is_adoptable
    is_taken = bool(state.objects_of_others or state.former) and not state.persisted.has_begun
    is_unknown = not state.is_fresh or state.unseen is not None
    return bool(
        is_paused or is_taken or is_unknown or desired.is_deleting or desired.problem or state.conflict
    )
