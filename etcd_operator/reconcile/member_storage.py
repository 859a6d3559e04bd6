"""A live look at those that stay, before a member is taken out for good or for a restart.

A cache is always a moment behind. Three voters can spare one: if a pod is being deleted while the
operator takes out another member, two voters are left, one of which is just going, and with it the
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


def assert_others_stay(client: Client, state: ClusterState, leaving: str) -> None:
    """Raises Conflict if what holds a healthy voter's data has begun to go since it was looked at.

    What was already going when the plan was made is part of the plan.
    """
    _assert_still_there(client, state, leaving, state.kind.storage_of)


def assert_others_run(client: Client, state: ClusterState, leaving: str) -> None:
    """Raises Conflict if a healthy voter's pod has begun to go since it was looked at: two would be away."""
    _assert_still_there(client, state, leaving, lambda voter: voter.pod)


def _assert_still_there(
    client: Client, state: ClusterState, leaving: str, part: Callable[[Member], PodFacts | ClaimFacts | None]
) -> None:
    for voter in state.healthy_voters:
        seen = part(voter)
        if voter.name == leaving or seen is None or seen.is_terminating:
            continue
        if not _is_still_there(client, Key(state.desired.namespace, seen.name), seen):
            raise Conflict(f"{voter.name} is going since it was looked at: looking again")


def _is_still_there(client: Client, key: Key, seen: PodFacts | ClaimFacts) -> bool:
    resource = resources.PODS if isinstance(seen, PodFacts) else resources.CLAIMS
    try:
        found = client.get(resource, key, Written).metadata
    except NotFound:
        return False
    return found.uid == seen.uid and found.deletion_timestamp is None
