"""The objects of a persistent member: an EtcdPeer, which stands for a claim and a ReplicaSet of one pod."""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

import msgspec

from etcd_operator.api import improbable
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.shared_keys import TOKEN_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AnnotateVoters,
    ChangeStorage,
    ClearMissing,
    ConfirmClaimsLost,
    CreateMemberService,
    DropPod,
    RecreatePod,
    ReplaceMember,
    SetExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import PeerFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    CloseClients,
    ConfirmBackup,
    CreateClosedService,
    DropFilling,
    FillSeed,
    ReopenClients,
    RetireMember,
    StartSurvivor,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import of_replaced
from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming
from etcd_operator.controllers.etcd_cluster.manifests import persistent, persistent_services, survivor_reader
from etcd_operator.controllers.etcd_cluster.members import claims
from etcd_operator.controllers.etcd_cluster.members.pod_facts import pod_facts
from etcd_operator.controllers.etcd_cluster.members.protocol import AnnotateSeed, OwnAction, OwnsPod, Scope
from etcd_operator.controllers.etcd_cluster.members.restoring import Restoring
from etcd_operator.controllers.shared.caches import Caches, cached, member_of
from etcd_operator.controllers.shared.manifests.pod import RESTORED_DIR
from etcd_operator.controllers.shared.manifests.security import AS_ROOT, security
from etcd_operator.errors import Conflict, Unavailable
from etcd_operator.etcd.values import MemberList
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Service, Written


@dataclass(frozen=True)
class PersistentMembers:
    """See `members.protocol.Members`. image: the operator's own. repository: of etcd's images."""

    scope: Scope
    image: Callable[[], str]
    repository: str

    storage = resources.CLAIMS  # data is on the claim

    def is_own_storage(self, found: ObjectMeta) -> bool:
        """By the token of the etcd cluster that a claim was made for; it has no owner."""
        return found.annotations.get(TOKEN_ANNOTATION) == self.scope.desired.token

    def create(self, body: RawObject) -> None:
        """The EtcdPeer. Before that of a seed, the Service gets a selector that leaves the seed out."""
        if body["spec"]["bootstrap"]["initialClusterToken"] != self.scope.desired.token:
            self._select_by_token()
        self.scope.create(resources.PEERS, body, "PeerCreated")

    def _select_by_token(self) -> None:
        """The Service of a cluster that was taken over selects all pods with the name of the cluster.

        Clients would read and write a seed that may be dropped again.
        """
        desired, objects = self.scope.desired, self.scope.objects
        found = objects.find(resources.SERVICES, desired.name, Service)
        if found is None or found.metadata.controller_uid != desired.uid:
            return
        label = persistent_services.client_label(desired)
        if label in found.spec.selector:
            return
        metadata, selector = found.metadata, {**found.spec.selector, label: desired.token}
        change = {"op": "add", "path": "/spec/selector", "value": selector}
        objects.change(resources.SERVICES, metadata, change, kind=Written, version=metadata.resource_version)

    def replace(self, action: ReplaceMember, loads: Mapping[str, str]) -> None:
        """Delete the EtcdPeer, in the foreground: it is gone only when its pod is, so no two processes meet.

        Its claim is annotated with the version to run before that; `rules.objects` makes the missing
        peer again at that version.
        """
        del loads  # the new EtcdPeer has its own
        member = self.scope.state.by_name[action.name]
        peer, claim = member.peer, member.claim
        if peer is None or peer.is_terminating or peer.is_for_cleanup:
            raise Conflict(f"the EtcdPeer {action.name} is being deleted: not upgrading it")
        if claim is not None:
            claims.write_restart(self.scope, claim, action.version)
        self.scope.objects.remove(resources.PEERS, peer, propagation="Foreground")

    def remove(self, name: str, whose: str = "") -> None:
        """The peer with its claim, by its finalizer; a claim without a peer by itself."""
        self.scope.remove_certificates(name)
        member = self.scope.member(name)
        claim = member.claim
        if member.peer is not None:
            self._remove_peer(member.peer, whose, keeps_claim=False)
        elif claim is not None and not claim.is_terminating:
            self.scope.objects.remove(resources.CLAIMS, claim)
            self.scope.report("PVCRemoved", f"removed PersistentVolumeClaim {name}{whose}")

    def _remove_peer(self, peer: PeerFacts, whose: str, *, keeps_claim: bool) -> None:
        if peer.is_terminating:
            return
        # The finalizer first: it makes the claim go before the last trace of the member.
        if not peer.is_for_cleanup and not keeps_claim:
            self._add_finalizer(peer)
        self.scope.objects.remove(resources.PEERS, peer)
        self.scope.report("PeerRemoved", f"removed EtcdPeer {peer.name}{whose}")

    def _add_finalizer(self, peer: PeerFacts) -> None:
        """Beside those of others. With the UID: a peer that was made again must not take its claim along."""
        objects = self.scope.objects
        found = objects.client.get(resources.PEERS, objects.key(peer.name), Written).metadata
        if found.uid != peer.uid:
            raise Conflict(f"the EtcdPeer {peer.name} was created again: trying again")
        objects.write_finalizers(resources.PEERS, found, [*found.finalizers, improbable.CLEANUP_FINALIZER])

    def open_seed(self, name: str) -> None:
        """Clients find the members of the new cluster from now on: first its pod gets the label."""
        desired, objects = self.scope.desired, self.scope.objects
        recovery = self.scope.recovery
        found = objects.client.get(resources.SERVICES, objects.key(desired.name), Written)
        if found.metadata.controller_uid != desired.uid:
            raise Conflict(f"Service {desired.name} is not this cluster's")
        bootstrap = Bootstrap(members=(name,), token=recovery.token)
        renewed = replace(desired, persisted=replace(desired.persisted, bootstrap=bootstrap))
        selector = persistent_services.client_selector(renewed)
        pod = self.scope.member(name).pod
        if pod is not None:
            objects.label(resources.PODS, pod, selector)
        changes: list[RawObject] = [{"op": "replace", "path": "/spec/selector", "value": selector}]
        if improbable.CLOSED_ANNOTATION in found.metadata.annotations:
            closed = improbable.CLOSED_ANNOTATION.replace("/", "~1")
            changes.append({"op": "remove", "path": f"/metadata/annotations/{closed}"})
        objects.change(resources.SERVICES, found.metadata, *changes, kind=Written)

    def keep_clients_from(self, name: str) -> None:
        """Nothing to do: the Service selects all members of one etcd cluster, or none."""

    def reader(self, name: str, *, number: int, image: str) -> RawObject:
        """As the user that etcd is on this volume: the image of the operator has another default."""
        claim, template = self.scope.member(name).claim, self.scope.desired.pod_template
        is_root_owned = claim is not None and not claim.is_for_non_root
        contexts = security(template, is_root_owned=is_root_owned)
        as_root = {"runAsUser": 0} if contexts is AS_ROOT else {}
        is_restored = claim is not None and claim.is_restored
        return survivor_reader.reader(
            number=number,
            image=image,
            folder=posixpath.basename(RESTORED_DIR) if is_restored else "",
            cluster=self.scope.desired.name,
            security={**contexts.container, **as_root},
            secured=self.scope.desired.secured,
        )

    def act(self, action: OwnAction) -> None:
        """All that is written on claims and peers."""
        match action:
            case SetExistingOnly():
                # First the claim, if it is there, then the peer: a claim that is seen later is written later.
                claims.write_identity(self.scope, action)
                self._set_existing_only(action.name)
            case AnnotateVoters():
                claims.write_identity(self.scope, action)
            case ConfirmClaimsLost() | ChangeStorage():
                self._begin_again(action)
            case RecreatePod():
                self._recreate_pod(action.name)
            case ClearMissing():
                self._clear_missing(action.name)
            case RetireMember():
                self._give_up(action.name)
            case AnnotateSeed():
                self._annotate_seed(action.name, action.served)
            case (
                ConfirmBackup()
                | FillSeed()
                | DropFilling()
                | CloseClients()
                | CreateClosedService()
                | ReopenClients()
            ):
                Restoring(self.scope, image=self.image, repository=self.repository).act(action)
            case DropPod() | CreateMemberService() | StartSurvivor():
                raise TypeError(f"{action}: its ReplicaSet replaces its pod, and it has no Service")
            case _:
                assert_never(action)

    def _annotate_seed(self, name: str, served: MemberList) -> None:
        """First the peer: its next pod starts from the data. Then the claim: now there is no way back."""
        member, recovery = self.scope.member(name), self.scope.recovery
        if member.peer is None or member.claim is None:
            raise Unavailable(f"{name} has no peer or no claim")
        bootstrap = persistent.peer_bootstrap(self.scope.desired, name, Resuming(token=recovery.token))
        spec = {"op": "replace", "path": "/spec/bootstrap", "value": msgspec.to_builtins(bootstrap)}
        self.scope.objects.change(resources.PEERS, member.peer, spec, kind=Written)
        claims.write_seed(self.scope, member.claim, served, recovery.version)

    def _set_existing_only(self, name: str) -> None:
        desired, peer = self.scope.desired, self.scope.member(name).peer
        if peer is None:
            raise Unavailable(f"{name} has no EtcdPeer")
        bootstrap = persistent.peer_bootstrap(desired, name, Resuming(token=desired.token))
        # A merge keeps what is left out of it, and with either a peer does not count as existing-only.
        outdated = {"survivor": None, "sha256": None, "external": None}
        spec = {"bootstrap": {**outdated, **msgspec.to_builtins(bootstrap)}}
        self.scope.objects.merge(resources.PEERS, peer, {"spec": spec})

    def _confirm_claims_lost(self, names: tuple[str, ...]) -> None:
        """One that exists may have data, and its member may serve by now."""
        for name in names:
            if self.scope.objects.find(resources.CLAIMS, name, Written) is not None:
                raise Conflict(f"the claim {name} exists: its member is not created again")
        lost = f"the claims of {', '.join(names)} were lost before the cluster ID was recorded"
        self.scope.report("ClaimsLost", f"{lost}, with anything that was written: bootstrapping again")

    def _begin_again(self, action: ConfirmClaimsLost | ChangeStorage) -> None:
        if isinstance(action, ConfirmClaimsLost):
            self._confirm_claims_lost(action.names)
        else:
            self._change_storage(action.names)

    def _change_storage(self, names: tuple[str, ...]) -> None:
        """The claims first: one that is being deleted gets no volume, so no member starts on it."""
        claims.delete_unbound(self.scope, names)
        for peer in filter(None, (self.scope.member(name).peer for name in names)):
            if not peer.is_terminating:
                self.scope.objects.remove(resources.PEERS, peer, propagation="Foreground")

    def _recreate_pod(self, name: str) -> None:
        """Recreate the pod that reports missing data, before that is believed.

        Which pod reported it first is written on the claim before, so that an operator that dies in between
        knows it too.
        """
        member = self.scope.state.by_name[name]
        claim, pod = member.claim, member.pod
        if claim is None or pod is None:
            return
        self._assert_down(pod.name, pod.uid)
        if claim.missing_in != pod.uid:
            claims.write_missing(self.scope, claim, pod.uid)
        self.scope.objects.remove(resources.PODS, pod)
        self.scope.report("PodRemade", f"recreated the pod of {name}, which reported missing data")

    def _clear_missing(self, name: str) -> None:
        claim = self.scope.state.by_name[name].claim
        if claim is not None:
            claims.write_missing(self.scope, claim, None)

    def _assert_down(self, name: str, uid: str) -> None:
        """A process that runs by now has found its data, and may be needed for the quorum."""
        found = self.scope.objects.find(resources.PODS, name, Pod)
        if found is None:
            return
        if found.metadata.uid != uid or pod_facts(found, now=self.scope.now).is_running:
            raise Conflict(f"the pod {name} has changed since it was observed: trying again")

    def _give_up(self, name: str) -> None:
        self.scope.remove_certificates(name)
        member = self.scope.member(name)
        if member.claim is not None:
            claims.write_given_up(self.scope, member.claim)
        if member.peer is not None:
            whose = of_replaced(self.scope.recovery)
            self._remove_peer(member.peer, whose, keeps_claim=True)


def owns_pod(caches: Caches[improbable.EtcdCluster]) -> OwnsPod:
    """By its member's peer, its cluster's token and its claim: its ReplicaSet has let go of it.

    A pod without an owner that is not being deleted is left alone.
    """

    def owns(desired: DesiredCluster, pod: Pod) -> bool:
        member = member_of(pod)
        peer = cached(caches.peers, Key(desired.namespace, member))
        is_members = peer is not None and peer.metadata.controller_uid == desired.uid
        is_ours = pod.metadata.labels.get(improbable.TOKEN_LABEL) == desired.token and member in pod.claims
        return is_members and is_ours

    return owns
