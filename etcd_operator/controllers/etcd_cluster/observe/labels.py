"""Objects of ours without their labels: found by what else proves them ours, and labelled again.

Caches hold what carries a cluster's label, so an object without it appears to be missing. What is found
by the proof that remains (its owner's UID, the token of its etcd cluster, the claim that it uses) is given
its labels back before anything is concluded from its absence.
"""

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, PodFacts
from etcd_operator.controllers.etcd_cluster.decide.orphans import Unlabelled
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.members.protocol import Members, OwnsPod, Scope
from etcd_operator.controllers.shared.caches import Caches, Cluster, member_of
from etcd_operator.controllers.shared.decide.clusters import is_member_name
from etcd_operator.errors import Conflict
from etcd_operator.keys import Key
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Written


def unlabelled(
    caches: Caches[Cluster], dialect: Dialect[Cluster], owns_pod: OwnsPod, key: Key, desired: DesiredCluster
) -> tuple[Unlabelled, ...]:
    """The pods of a cluster's members that lack labels, as the caches show them."""

    def is_unlabelled(pod: Pod) -> bool:
        meta, member = pod.metadata, member_of(pod)
        if meta.is_deleting or not is_member_name(member, desired.name):
            return False
        is_complete = dialect.member_labels(desired, member).items() <= meta.labels.items()
        return not is_complete and owns_pod(desired, pod)

    without = [pod for pod in caches.unlabelled.store.values() if pod.metadata.namespace == key.namespace]
    return tuple(
        Unlabelled(name=pod.metadata.name, uid=pod.metadata.uid, member=member_of(pod))
        for pod in (*without, *caches.of_cluster(caches.pods, key))
        if is_unlabelled(pod)
    )


def assert_gone_as_seen(scope: Scope, members: Members, name: str, labels: dict[str, str]) -> None:
    """Raises Conflict if a member's storage is there, live, although the plan rests on its absence.

    A watch that is half-open and a label that was removed appear as a loss. The object is given its
    labels back, so that the next observation sees it.
    """
    seen, resource = scope.state.kind.storage_of(scope.member(name)), members.storage
    stored = scope.objects.find(resource, name, Written)
    if stored is None:
        return
    found = stored.metadata
    if _is_what_was_seen(seen, found) or not members.is_own_storage(found):
        return
    lost = {label: value for label, value in labels.items() if found.labels.get(label) != value}
    if lost:
        scope.objects.label(resource, found, lost)
    raise Conflict(f"{resource.kind} {name} still exists: trying again")


def _is_what_was_seen(seen: ClaimFacts | PodFacts | None, found: ObjectMeta) -> bool:
    """A deletion that has begun does not end otherwise: there is nothing to try again."""
    return found.is_deleting or (seen is not None and seen.uid == found.uid)
