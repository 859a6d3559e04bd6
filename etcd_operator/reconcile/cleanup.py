"""Lets go of an EtcdPeer whose member was removed for good: its ReplicaSet and its claim go first.

Its finalizer is there for that, and for that only. It never holds the deletion of the peer (and with it of a
cluster or a namespace) for ever: what cannot be deleted for some minutes is left behind and named.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.clock import Clock
from etcd_operator.errors import NotFound, OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written
from etcd_operator.reconcile.facts import instant

Report = Callable[[EtcdPeer, str, str], None]
"""`(peer, reason, sentence)`: an Event on the peer's cluster."""

PATIENCE = timedelta(minutes=5)
"""For how long a claim that cannot be deleted holds its peer."""

RETRY = 10.0
"""Seconds until a deletion that was refused is tried again."""


@dataclass(frozen=True, kw_only=True)
class Cleanup:
    """Cleans up after removed members, live: a cache may lack what has just been made."""

    client: Client
    clock: Clock
    report: Report

    def finish(self, key: Key, peer: EtcdPeer, *, with_claim: bool) -> OperatorError | None:
        """Delete what is the peer's, then take the finalizer off; why not yet, if it could not be deleted.

        with_claim: whether what has the peer's name is a member's at all. The ReplicaSet goes before the
        claim, or it would start the removed member again and again until the garbage collector comes.
        """
        if improbable.CLEANUP_FINALIZER not in peer.metadata.finalizers:
            return None
        result = self._deleted(key, peer) if with_claim else False
        failure = result if isinstance(result, OperatorError) else None
        if failure is not None and not self._is_over(peer):
            return failure
        if failure is not None:
            left = f"PersistentVolumeClaim {key.name} of a removed member is left behind, delete it by hand"
            self.report(peer, "CleanupGivenUp", f"{left}: {failure}")
        elif result:
            self.report(peer, "PVCRemoved", f"removed PersistentVolumeClaim {key.name}")
        self._let_go(key, peer)
        return None

    def _deleted(self, key: Key, peer: EtcdPeer) -> bool | OperatorError:
        """Whether this deletes a claim; why not, if it cannot."""
        token = peer.spec.bootstrap.initial_cluster_token
        try:
            self._delete(resources.REPLICA_SETS, key, lambda found: found.controller_uid == peer.metadata.uid)
            return self._delete(
                resources.CLAIMS,
                key,
                lambda found: (
                    found.annotations.get(improbable.TOKEN_ANNOTATION) == token and not is_kept(found)
                ),
            )
        except OperatorError as error:
            return error

    def _delete(self, resource: Resource, key: Key, is_ours: Callable[[ObjectMeta], bool]) -> bool:
        try:
            found = self.client.get(resource, key, Written).metadata
            if found.deletion_timestamp is not None or not is_ours(found):
                return False
            self.client.delete(resource, key, uid=found.uid)
        except NotFound:
            return False
        return True

    def _is_over(self, peer: EtcdPeer) -> bool:
        since = instant(peer.metadata.deletion_timestamp or "")
        return self.clock.now() - since > PATIENCE

    def _let_go(self, key: Key, peer: EtcdPeer) -> None:
        rest = [name for name in peer.metadata.finalizers if name != improbable.CLEANUP_FINALIZER]
        patch: list[RawObject] = [
            {"op": "test", "path": "/metadata/uid", "value": peer.metadata.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": peer.metadata.resource_version},
            {"op": "replace", "path": "/metadata/finalizers", "value": rest},
        ]
        try:
            self.client.patch(resources.PEERS, key, patch, Written, kind=PatchKind.JSON)
        except NotFound:
            return


def is_kept(claim: ObjectMeta) -> bool:
    """Whether it is a claim that a recovery gave up: nobody's, until a person deletes it."""
    return improbable.GIVEN_UP_ANNOTATION in claim.annotations
