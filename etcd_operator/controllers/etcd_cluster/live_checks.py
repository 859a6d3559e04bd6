"""What an act confirms live, right before it: that what its plan rests on still holds."""

from collections.abc import Callable

from etcd_operator.api.persisted import AnyCluster
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member, PodFacts
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.errors import Conflict
from etcd_operator.kube import resources
from etcd_operator.kube.views import Written


def assert_bootstraps(scope: Scope, resource: resources.Resource) -> None:
    """Raises Conflict if the bootstrap has ended, or begun again, since it was observed.

    Empty members beside, or instead of, those that have served would be a quorum without their data. Nothing
    else would stop one whose pod was deleted since the observation: its name is free.
    """
    desired = scope.desired
    found = scope.objects.find(resource, desired.name, AnyCluster)
    if found is None or found.metadata.uid != desired.uid:
        raise Conflict(f"{desired.name} was deleted since it was observed: not bootstrapping it")
    if found.status.cluster_id or found.status.bootstrap != desired.persisted.bootstrap:
        raise Conflict(f"{desired.name} was bootstrapped since it was observed: trying again")


Part = Callable[[Member], PodFacts | ClaimFacts | None]
"""One object of a member."""


def pod_of(member: Member) -> PodFacts | None:
    """The pod of a member."""
    return member.pod


def assert_still_there(scope: Scope, leaving: str, part: Part) -> None:
    """Raises Conflict if this part of another healthy voter is being deleted since it was observed.

    A cache is always a moment behind. Three voters tolerate the loss of one: if a pod is being deleted while
    the operator removes or restarts another member, one of the two remaining voters is about to end, and with
    it the quorum. etcd would not refuse: a pod that is being deleted still answers. What was already being
    deleted when it was observed is part of the plan.
    """
    for voter in scope.state.healthy_voters:
        if voter.name != leaving:
            assert_stays(scope, voter, part)


def assert_stays(scope: Scope, member: Member, part: Part) -> None:
    """Raises Conflict if this part of a member is being deleted since it was observed.

    A learner, too: a voter that ends at once costs a cluster of one its quorum.
    """
    seen = part(member)
    if seen is None or seen.is_terminating:
        return
    resource = resources.PODS if isinstance(seen, PodFacts) else resources.CLAIMS
    found = scope.objects.find(resource, seen.name, Written)
    if found is None or found.metadata.uid != seen.uid or found.metadata.is_deleting:
        raise Conflict(f"{member.name} is being deleted since it was observed: trying again")
