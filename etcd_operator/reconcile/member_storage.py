"""Reads the remaining members live before one is removed or restarted.

A cache is always a moment behind. Three voters tolerate the loss of one: if a pod is being deleted while
the operator removes another member, one of the two remaining voters is about to end, and with it the
quorum. etcd would not refuse: a pod that is being deleted still answers.
"""

from collections.abc import Callable

from etcd_operator.core.members import ClaimFacts, Member, PodFacts
from etcd_operator.errors import Conflict
from etcd_operator.kube import resources
from etcd_operator.kube.views import Written
from etcd_operator.reconcile.members.protocol import Scope


def assert_others_are_kept(scope: Scope, leaving: str) -> None:
    """Raises Conflict if the storage of another healthy voter is being deleted since it was observed.

    What was already being deleted then is part of the plan.
    """
    _assert_still_there(scope, leaving, scope.state.kind.storage_of)


def assert_others_run(scope: Scope, leaving: str) -> None:
    """Raises Conflict if the pod of another healthy voter is being deleted since: two would be away."""
    _assert_still_there(scope, leaving, lambda voter: voter.pod)


def _assert_still_there(
    scope: Scope, leaving: str, part: Callable[[Member], PodFacts | ClaimFacts | None]
) -> None:
    for voter in scope.state.healthy_voters:
        seen = part(voter)
        if voter.name == leaving or seen is None or seen.is_terminating:
            continue
        resource = resources.PODS if isinstance(seen, PodFacts) else resources.CLAIMS
        found = scope.objects.find(resource, seen.name, Written)
        if found is None or found.metadata.uid != seen.uid or found.metadata.deletion_timestamp is not None:
            raise Conflict(f"{voter.name} is being deleted since it was observed: trying again")
