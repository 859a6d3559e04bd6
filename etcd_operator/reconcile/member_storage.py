"""Reads the remaining members live before one is removed or restarted.

A cache is always a moment behind. Three voters tolerate the loss of one: if a pod is being deleted while
the operator removes another member, one of the two remaining voters is about to end, and with it the
quorum. etcd would not refuse: a pod that is being deleted still answers.
"""

from collections.abc import Callable

from etcd_operator.core.members import ClaimFacts, Member, PodFacts
from etcd_operator.core.state import ClusterState
from etcd_operator.errors import Conflict, NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.views import Written


def assert_others_are_kept(client: Client, state: ClusterState, leaving: str) -> None:
    """Raises Conflict if the storage of another healthy voter is being deleted since it was observed.

    What was already being deleted then is part of the plan.
    """
    _assert_still_there(client, state, leaving, state.kind.storage_of)


def assert_others_run(client: Client, state: ClusterState, leaving: str) -> None:
    """Raises Conflict if the pod of another healthy voter is being deleted since: two would be away."""
    _assert_still_there(client, state, leaving, lambda voter: voter.pod)


def _assert_still_there(
    client: Client, state: ClusterState, leaving: str, part: Callable[[Member], PodFacts | ClaimFacts | None]
) -> None:
    for voter in state.healthy_voters:
        seen = part(voter)
        if voter.name == leaving or seen is None or seen.is_terminating:
            continue
        if not _is_still_there(client, Key(state.desired.namespace, seen.name), seen):
            raise Conflict(f"{voter.name} is being deleted since it was observed: trying again")


def _is_still_there(client: Client, key: Key, seen: PodFacts | ClaimFacts) -> bool:
    resource = resources.PODS if isinstance(seen, PodFacts) else resources.CLAIMS
    try:
        found = client.get(resource, key, Written).metadata
    except NotFound:
        return False
    return found.uid == seen.uid and found.deletion_timestamp is None
