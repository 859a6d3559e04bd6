"""Carries out what was planned for one EtcdPeer. Each action can be cut off after any write and run again.

The cleanup finalizer has no other purpose than to delete what is left of a member that was removed for good.
It never blocks the deletion of the peer (and with it of a cluster or a namespace) for ever: what cannot be
deleted for some minutes is left behind and named.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.shared_keys import GIVEN_UP_ANNOTATION, TOKEN_ANNOTATION
from etcd_operator.controllers.etcd_cluster.manifests import persistent
from etcd_operator.controllers.etcd_peer.decide.plan import Act, AnnotateStarted, CleanUp, Disown, PeerAction
from etcd_operator.controllers.etcd_peer.decide.state import PeerState
from etcd_operator.controllers.etcd_peer.observe import TEMPLATE_ANNOTATION
from etcd_operator.controllers.shared.name_conflicts import name_conflict
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.decoding import convert
from etcd_operator.errors import NotFound, OperatorError
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written

PeerReport = Callable[[EtcdPeer, str, str], None]
"""`(peer, reason, sentence)`: an Event on the peer's cluster."""


class CleanupFailed(Exception):
    """Something of a removed member could not be deleted, for `cause`."""

    def __init__(self, cause: OperatorError) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(frozen=True, kw_only=True)
class PeerActor:
    """Acts on one EtcdPeer."""

    peer: EtcdPeer
    state: PeerState
    found: ObjectMeta | None  # the ReplicaSet of its name as the caches showed it
    replica_set: Callable[[], RawObject]  # renders the ReplicaSet as it should be
    objects: Objects
    report: PeerReport
    disown: PeerReport

    def act(self, action: PeerAction) -> bool:
        """Do it; false if the caches turn out to be behind, so that the rest of the plan rests on nothing.

        Raises the errors of `Objects`, and CleanupFailed.
        """
        match action:
            case Act.FIND_CLAIM:
                return not self.objects.find_own(resources.CLAIMS, persistent.claim(self.peer))
            case Act.CREATE_CLAIM:
                return self._create_claim()
            case AnnotateStarted():
                claim = ObjectMeta(name=self.state.name, uid=action.uid)
                self.objects.annotate(resources.CLAIMS, claim, {improbable.STARTED_ANNOTATION: "true"})
            case Act.CREATE_REPLICA_SET:
                self._create_replica_set()
            case Act.CHANGE_TEMPLATE:
                self._change_template()
            case CleanUp():
                self._clean_up(may_leave=action.may_leave)
            case Act.RELEASE:
                self._release()
            case Disown():
                self.disown(self.peer, action.problem.reason, action.problem.message)
            case _:
                assert_never(action)
        return True

    def _create_claim(self) -> bool:
        body = persistent.claim(self.peer, is_root_owned=self.state.is_root_owned)
        return self._create(resources.CLAIMS, body, "PVCCreated")

    def _create_replica_set(self) -> None:
        """Without a request while the cache shows another one of the name: its end is an event."""
        body = self.replica_set()
        if self.found is not None and _is_orphan(self.found):
            owner, version = body["metadata"]["ownerReferences"], self.found.resource_version
            self.objects.own(resources.REPLICA_SETS, self.found, owner, version=version)
            return
        if self.found is not None:
            name = f"ReplicaSet {self.state.name}"
            raise name_conflict(name, self.found, convert(body["metadata"], ObjectMeta))
        self._create(resources.REPLICA_SETS, body, "ReplicaSetCreated")

    def _create(self, resource: Resource, body: RawObject, reason: str) -> bool:
        is_new = self.objects.create(resource, body)
        if is_new:
            self.report(self.peer, reason, f"created {resource.kind} {self.state.name}")
        return is_new

    def _change_template(self) -> None:
        if self.found is not None:
            self.objects.change_template(resources.REPLICA_SETS, self.found, self.replica_set())

    def _clean_up(self, *, may_leave: bool) -> None:
        """Delete what is the peer's, live: a cache may lack what has just been made.

        The ReplicaSet is deleted before the claim; otherwise it would start the removed member again and
        again until the garbage collector deletes it. Raises CleanupFailed, unless what cannot be deleted may
        be left behind.
        """
        peer, claim = self.peer, f"PersistentVolumeClaim {self.state.name}"
        try:
            self._delete(resources.REPLICA_SETS, lambda found: found.controller_uid == peer.metadata.uid)
            if self._delete(resources.CLAIMS, lambda found: _is_claim_of(peer, found)):
                self.report(peer, "PVCRemoved", f"removed {claim}")
        except OperatorError as failure:
            if not may_leave:
                raise CleanupFailed(failure) from failure
            left = f"{claim} of a removed member is left behind: delete it by hand"
            self.report(peer, "CleanupGivenUp", f"{left}: {failure}")

    def _delete(self, resource: Resource, is_ours: Callable[[ObjectMeta], bool]) -> bool:
        found = self.objects.find(resource, self.state.name, Written)
        if found is None or found.metadata.is_deleting or not is_ours(found.metadata):
            return False
        return self.objects.remove(resource, found.metadata)

    def _release(self) -> None:
        metadata = self.peer.metadata
        rest = [name for name in metadata.finalizers if name != improbable.CLEANUP_FINALIZER]
        with suppress(NotFound):
            self.objects.write_finalizers(resources.PEERS, metadata, rest)


def _is_orphan(found: ObjectMeta) -> bool:
    """Whether this operator made a ReplicaSet, and it was stored again without its owner."""
    return TEMPLATE_ANNOTATION in found.annotations and not (found.owner_references or found.is_deleting)


def _is_claim_of(peer: EtcdPeer, found: ObjectMeta) -> bool:
    """By its token; a claim that a recovery gave up is kept until a person deletes it."""
    is_given_up = GIVEN_UP_ANNOTATION in found.annotations
    token = peer.spec.bootstrap.initial_cluster_token
    return found.annotations.get(TOKEN_ANNOTATION) == token and not is_given_up
