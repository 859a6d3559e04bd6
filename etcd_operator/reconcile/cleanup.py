"""Releases an EtcdPeer whose member was removed for good: its ReplicaSet and its claim are deleted first.

The cleanup finalizer has no other purpose. It never blocks the deletion of the peer (and with it of a
cluster or a namespace) for ever: what cannot be deleted for some minutes is left behind and named.
"""

from collections.abc import Callable
from contextlib import suppress

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.errors import NotFound, OperatorError
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written
from etcd_operator.reconcile.objects import Objects

PeerReport = Callable[[EtcdPeer, str, str], None]
"""`(peer, reason, sentence)`: an Event on the peer's cluster."""


class CleanupFailed(Exception):
    """Something of a removed member could not be deleted, for `cause`."""

    def __init__(self, cause: OperatorError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def clean_up(objects: Objects, peer: EtcdPeer, report: PeerReport, *, may_leave: bool) -> None:
    """Delete what is the peer's, live: a cache may lack what has just been made.

    The ReplicaSet is deleted before the claim; otherwise it would start the removed member again and
    again until the garbage collector deletes it. Raises CleanupFailed, unless what cannot be deleted may be
    left behind.
    """
    name = peer.metadata.name
    try:
        _delete(
            objects, resources.REPLICA_SETS, name, lambda found: found.controller_uid == peer.metadata.uid
        )
        if _delete(objects, resources.CLAIMS, name, lambda found: _is_claim_of(peer, found)):
            report(peer, "PVCRemoved", f"removed PersistentVolumeClaim {name}")
    except OperatorError as failure:
        if not may_leave:
            raise CleanupFailed(failure) from failure
        left = f"PersistentVolumeClaim {name} of a removed member is left behind: delete it by hand"
        report(peer, "CleanupGivenUp", f"{left}: {failure}")


def release(objects: Objects, peer: EtcdPeer) -> None:
    """Take the finalizer off, beside those of others."""
    rest = [name for name in peer.metadata.finalizers if name != improbable.CLEANUP_FINALIZER]
    with suppress(NotFound):
        objects.write_finalizers(resources.PEERS, peer.metadata, rest)


def _is_claim_of(peer: EtcdPeer, found: ObjectMeta) -> bool:
    """By its token; a claim that a recovery gave up is kept until a person deletes it."""
    is_given_up = improbable.GIVEN_UP_ANNOTATION in found.annotations
    token = peer.spec.bootstrap.initial_cluster_token
    return found.annotations.get(improbable.TOKEN_ANNOTATION) == token and not is_given_up


def _delete(objects: Objects, resource: Resource, name: str, is_ours: Callable[[ObjectMeta], bool]) -> bool:
    """Whether this deletes the object of that name."""
    found = objects.find(resource, name, Written)
    if found is None or found.metadata.deletion_timestamp is not None or not is_ours(found.metadata):
        return False
    return objects.remove(resource, found.metadata)
