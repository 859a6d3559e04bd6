"""Releases an EtcdPeer whose member was removed for good: its ReplicaSet and its claim are deleted first.

The cleanup finalizer has no other purpose. It never blocks the deletion of the peer (and with it of a
cluster or a namespace) for ever: what cannot be deleted for some minutes is left behind and named.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.errors import NotFound, OperatorError
from etcd_operator.keys import Key
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


@dataclass(frozen=True, kw_only=True)
class Cleanup:
    """Cleans up after one removed member, live: a cache may lack what has just been made."""

    objects: Objects
    key: Key
    peer: EtcdPeer
    report: PeerReport

    def delete(self, *, may_leave: bool) -> None:
        """Delete what is the peer's. Raises CleanupFailed, unless what cannot be deleted may be left behind.

        The ReplicaSet is deleted before the claim; otherwise it would start the removed member again and
        again until the garbage collector deletes it.
        """
        claim = f"PersistentVolumeClaim {self.key.name}"
        try:
            owner = self.peer.metadata.uid
            self._delete(resources.REPLICA_SETS, lambda found: found.controller_uid == owner)
            if self._delete(resources.CLAIMS, self._is_our_claim):
                self.report(self.peer, "PVCRemoved", f"removed {claim}")
        except OperatorError as failure:
            if not may_leave:
                raise CleanupFailed(failure) from failure
            left = f"{claim} of a removed member is left behind: delete it by hand"
            self.report(self.peer, "CleanupGivenUp", f"{left}: {failure}")

    def release(self) -> None:
        """Take the finalizer off, beside those of others."""
        meta = self.peer.metadata
        rest = [name for name in meta.finalizers if name != improbable.CLEANUP_FINALIZER]
        with suppress(NotFound):
            self.objects.write_finalizers(resources.PEERS, meta, rest)

    def _is_our_claim(self, found: ObjectMeta) -> bool:
        """By its token; a claim that a recovery gave up is kept until a person deletes it."""
        token = self.peer.spec.bootstrap.initial_cluster_token
        is_given_up = improbable.GIVEN_UP_ANNOTATION in found.annotations
        return found.annotations.get(improbable.TOKEN_ANNOTATION) == token and not is_given_up

    def _delete(self, resource: Resource, is_ours: Callable[[ObjectMeta], bool]) -> bool:
        """Whether this deletes the object of the peer's name."""
        found = self.objects.find(resource, self.key.name, Written)
        if found is None or found.metadata.deletion_timestamp is not None or not is_ours(found.metadata):
            return False
        return self.objects.remove(resource, found.metadata)
