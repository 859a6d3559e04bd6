"""Carries out what was planned for one EtcdPeer. Each action can be cut off after any write and run again."""

from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from etcd_operator.api import improbable
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.core.peers.actions import Act, AnnotateStarted, CleanUp, Disown, PeerAction
from etcd_operator.errors import NotFound
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written
from etcd_operator.reconcile.cleanup import PeerReport, clean_up, release
from etcd_operator.reconcile.objects import Objects
from etcd_operator.reconcile.peer_observe import ObservedPeer, replica_set
from etcd_operator.render import persistent


@dataclass(frozen=True, kw_only=True)
class PeerActor:
    """Acts on one EtcdPeer. repository: of etcd's images."""

    observed: ObservedPeer
    repository: str
    objects: Objects
    report: PeerReport
    disown: PeerReport

    def act(self, action: PeerAction) -> bool:
        """Do it; false if the caches turn out to be behind, so that the rest of the plan rests on nothing.

        Raises the errors of `Objects`, and CleanupFailed.
        """
        match action:
            case Act.FIND_CLAIM:
                return not self.objects.find_own(resources.CLAIMS, persistent.claim(self.observed.peer))
            case Act.CREATE_CLAIM:
                return self._create_claim()
            case AnnotateStarted():
                claim = ObjectMeta(name=self.observed.key.name, uid=action.uid)
                self.objects.annotate(resources.CLAIMS, claim, {improbable.STARTED_ANNOTATION: "true"})
            case Act.CREATE_REPLICA_SET:
                self._create(resources.REPLICA_SETS, self._replica_set(), "ReplicaSetCreated")
            case Act.CHANGE_TEMPLATE:
                self._change_template()
            case CleanUp():
                clean_up(self.objects, self.observed.peer, self.report, may_leave=action.may_leave)
            case Act.RELEASE:
                release(self.objects, self.observed.peer)
            case Disown():
                self.disown(self.observed.peer, action.problem.reason, action.problem.message)
            case _:
                assert_never(action)
        return True

    def _create_claim(self) -> bool:
        body = persistent.claim(self.observed.peer, is_root_owned=self.observed.state.is_root_owned)
        return self._create(resources.CLAIMS, body, "PVCCreated")

    def _create(self, resource: Resource, body: RawObject, reason: str) -> bool:
        is_new = self.objects.create(resource, body)
        if is_new:
            self.report(self.observed.peer, reason, f"created {resource.kind} {self.observed.key.name}")
        return is_new

    def _change_template(self) -> None:
        found, wanted = self.observed.found, self._replica_set()
        if found is None:
            return
        # Annotations of others are kept; an object without any has nothing to add a single one to.
        annotations = {**found.annotations, **wanted["metadata"]["annotations"]}
        with suppress(NotFound):  # deleted meanwhile: the watch will report it
            self.objects.change(
                resources.REPLICA_SETS,
                found,
                {"op": "add", "path": "/metadata/annotations", "value": annotations},
                {"op": "replace", "path": "/spec/template", "value": wanted["spec"]["template"]},
                kind=Written,
                version=found.resource_version,
            )

    def _replica_set(self) -> RawObject:
        return replica_set(self.observed.peer, self.observed.state, self.repository)
