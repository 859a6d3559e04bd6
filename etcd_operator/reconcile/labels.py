"""Objects of ours that somebody took labels from: found by what else proves them ours, and labelled again.

Caches hold what carries a cluster's label, so an object without it looks as if it were gone. What is found
by the proof that remains (its owner's UID, the token of its etcd cluster, the claim that it uses) is given
its labels back before anything is concluded from its absence.
"""

from etcd_operator.api import improbable
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.kinds.persistent import PERSISTENT
from etcd_operator.core.members import ClaimFacts, Member, PodFacts, Unlabelled, is_member_name
from etcd_operator.core.state import ClusterState
from etcd_operator.dialects.base import Dialect
from etcd_operator.errors import Conflict, NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import Pod, Written
from etcd_operator.reconcile.caches import Caches, Cluster, member_of
from etcd_operator.reconcile.objects import Objects


def unlabelled(
    caches: Caches[Cluster], dialect: Dialect[Cluster], key: Key, desired: DesiredCluster
) -> tuple[Unlabelled, ...]:
    """The pods of a cluster's members that lack labels, as the caches show them."""
    without = [pod for pod in caches.unlabelled.store.values() if pod.metadata.namespace == key.namespace]
    return tuple(
        Unlabelled(name=pod.metadata.name, uid=pod.metadata.uid, member=member_of(pod))
        for pod in (*without, *caches.of_cluster(caches.pods, key))
        if _is_unlabelled(caches, dialect, desired, pod)
    )


def _is_unlabelled(
    caches: Caches[Cluster], dialect: Dialect[Cluster], desired: DesiredCluster, pod: Pod
) -> bool:
    meta, member = pod.metadata, member_of(pod)
    if meta.deletion_timestamp is not None or not is_member_name(member, desired.name):
        return False
    if dialect.member_labels(desired, member).items() <= meta.labels.items():
        return False
    if desired.kind is not PERSISTENT:
        return meta.controller_uid == desired.uid
    # Its ReplicaSet has let it go, so that it has no owner; a pod of nobody that stays is left to itself.
    peer = caches.peers.store.get(Key(desired.namespace, member)) if caches.peers is not None else None
    is_members = peer is not None and peer.metadata.controller_uid == desired.uid
    is_ours = meta.labels.get(improbable.TOKEN_LABEL) == desired.token and member in pod.claims
    return is_members and is_ours


def assert_gone_as_seen(objects: Objects, state: ClusterState, name: str, labels: dict[str, str]) -> None:
    """Raises Conflict if what holds a member's data is there, live, although the plan rests on its absence.

    A watch that is half-open and a label that was taken away look like a loss. The object is given its
    labels back, so that the next look sees it.
    """
    member = state.by_name.get(name) or Member(name=name)
    seen = state.kind.storage_of(member)
    resource = resources.CLAIMS if state.kind is PERSISTENT else resources.PODS
    try:
        found = objects.client.get(resource, objects.key(name), Written).metadata
    except NotFound:
        return
    if _is_what_was_seen(seen, found) or not _is_of(state.desired, found):
        return
    lost = {label: value for label, value in labels.items() if found.labels.get(label) != value}
    if lost:
        objects.patch(resource, name, {"metadata": {"uid": found.uid, "labels": lost}})
    raise Conflict(f"{resource.kind} {name} is there after all: looking again")


def _is_what_was_seen(seen: ClaimFacts | PodFacts | None, found: ObjectMeta) -> bool:
    """A deletion that has begun does not end otherwise: there is nothing to look at again."""
    return found.deletion_timestamp is not None or (seen is not None and seen.uid == found.uid)


def _is_of(desired: DesiredCluster, found: ObjectMeta) -> bool:
    if desired.kind is not PERSISTENT:
        return found.controller_uid == desired.uid
    return found.annotations.get(improbable.TOKEN_ANNOTATION) == desired.token
