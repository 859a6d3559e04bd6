"""Carries actions out. Each can be cut off after any write and run again.

A create that meets an object of its name looks whose it is: ours means that an earlier
reply was lost, anybody else's is `NameTaken` and nothing of theirs is touched. What is
written is noted in `Expectations`, so that the next pass sees it.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, assert_never

import msgspec

from etcd_operator.api import improbable
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.build.persistent import peer_bootstrap
from etcd_operator.build.urls import PEER_PORT, url
from etcd_operator.core.actions import (
    Action,
    AddLearner,
    ConfirmLoss,
    ConfirmSilence,
    CreateClientService,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    DropSeed,
    KeepBudget,
    MoveLeader,
    OpenSeed,
    PadLog,
    Promote,
    RecoveryAction,
    Remember,
    RemoveMember,
    ReplaceMember,
    Resuming,
    RetireMember,
    SealMember,
    SealSeed,
)
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.members import Member
from etcd_operator.core.state import ClusterState
from etcd_operator.dialects.base import Dialect
from etcd_operator.errors import AlreadyExists, Conflict, NotFound, RetryableError, Unavailable
from etcd_operator.etcd.client import OnCall
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written
from etcd_operator.reconcile.caches import Caches, Cluster
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.holders import assert_others_stay
from etcd_operator.reconcile.membership import Membership
from etcd_operator.reconcile.prober import Prober
from etcd_operator.reconcile.recovery import Recoverer
from etcd_operator.reconcile.upgrade import replace_member

Report = Callable[[str, str], None]
"""`(reason, sentence)` of an operation done, for an Event on the cluster."""


class NameTaken(RetryableError):
    """Somebody else's object has the name; `is_passing` when it goes away by itself."""

    def __init__(self, message: str, *, is_passing: bool) -> None:
        super().__init__(message)
        self.is_passing = is_passing


@dataclass(frozen=True, kw_only=True)
class Creator:
    """Creates objects for one cluster and recognises its own lost replies."""

    client: Client
    expectations: Expectations
    cluster: Key

    def create(self, resource: Resource, body: RawObject, cache: Informer[Any] | None) -> bool:
        """Make the object; false if an earlier attempt already had. Raises NameTaken."""
        metadata = msgspec.convert(body["metadata"], ObjectMeta)
        key = Key(metadata.namespace, metadata.name)
        try:
            written = self.client.create(resource, key.namespace, body, Written)
        except AlreadyExists:
            written = self._ours(resource, key, metadata)
            self.expectations.wrote(self.cluster, cache, key, written.metadata.resource_version)
            return False
        self.expectations.wrote(self.cluster, cache, key, written.metadata.resource_version)
        return True

    def _ours(self, resource: Resource, key: Key, wanted: ObjectMeta) -> Written:
        try:
            found = self.client.get(resource, key, Written)
        except NotFound as error:
            raise NameTaken(f"{resource.kind} {key.name} is just being removed", is_passing=True) from error
        if found.metadata.controller_uid == wanted.controller_uid and _is_marked(found.metadata, wanted):
            return found
        is_predecessor = {(o.kind, o.name) for o in found.metadata.owner_references} == {
            (o.kind, o.name) for o in wanted.owner_references
        }
        if found.metadata.deletion_timestamp is not None or (wanted.controller_uid and is_predecessor):
            raise NameTaken(
                f"waiting for the former {resource.kind} {key.name} to be removed", is_passing=True
            )
        raise NameTaken(
            f"{resource.kind} {key.name} belongs to somebody else: "
            "remove it, or give the cluster another name",
            is_passing=False,
        )


def _is_marked(found: ObjectMeta, wanted: ObjectMeta) -> bool:
    """What has no owner (a claim) is recognised by its labels."""
    return all(found.labels.get(name) == value for name, value in wanted.labels.items())


@dataclass(frozen=True, kw_only=True)
class Actor(Generic[Cluster]):
    """Acts on the clusters of one API group."""

    client: Client
    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    expectations: Expectations
    prober: Prober
    on_call: OnCall
    may_act: Callable[[], bool]

    def act(self, state: ClusterState, action: Action, report: Report) -> None:
        """Carry out one action other than `Remember`, which is a status write.

        Asked right before it: whether this process still leads. Raises Unavailable if not.
        """
        if not self.may_act():
            raise Unavailable("leadership of the operator is in doubt: not acting")
        match action:
            case AddLearner() | Promote() | MoveLeader() | RemoveMember():
                self._change(state, action, report)
            case DeleteMember():
                self._delete(state, action.name, report)
            case SealMember():
                self._seal(state, action)
            case ConfirmLoss() | ConfirmSilence() | SealSeed() | RetireMember() | DropSeed() | OpenSeed():
                self._recover(state, action, report)
            case ReplaceMember():
                self._replace(state, action)
            case PadLog():
                self._membership(state).append_nothing(action.entries)
                self.prober.invalidate(_key(state.desired))
            case _:
                self._make(state.desired, action, report)

    def _make(
        self,
        desired: DesiredCluster,
        action: CreateClientService | CreateMemberService | KeepBudget | CreateMember | Remember,
        report: Report,
    ) -> None:
        match action:
            case CreateClientService():
                body = self.dialect.client_service(desired)
                self._create(resources.SERVICES, body, desired, report, "ServiceCreated")
            case CreateMemberService():
                body = self.dialect.member_service(desired, action.name)
                self._create(resources.SERVICES, body, desired, report, "ServiceCreated")
            case KeepBudget():
                self._keep_budget(desired, self.dialect.budget(desired, action.min_available), report)
            case CreateMember():
                resource = resources.PEERS if desired.is_persistent else resources.PODS
                body = self.dialect.member(desired.at(action.version), action.name, action.start)
                self._create(resource, body, desired, report, f"{resource.kind.removeprefix('Etcd')}Created")
            case Remember():
                raise TypeError("Remember is written by the pass, as status")
            case _:
                assert_never(action)

    def _change(
        self, state: ClusterState, action: AddLearner | Promote | MoveLeader | RemoveMember, report: Report
    ) -> None:
        """Change etcd's list. Whatever comes of it, what was seen before is outdated."""
        key = _key(state.desired)
        membership = self._membership(state)
        try:
            match action:
                case AddLearner():
                    if membership.add_learner(self._peer_url(state.desired, action.name)):
                        report("MemberAdded", f"added {action.name} as a learner")
                case Promote():
                    if membership.promote(action.member_id):
                        report("MemberPromoted", f"{action.name} votes now")
                case MoveLeader():
                    membership.move_leader(action)
                    report("LeaderMoved", f"moved the leadership to {action.name}")
                case RemoveMember():
                    assert_others_stay(self.client, state, action.name)
                    if membership.remove(action.name, action.member_id):
                        report("MemberRemoved", f"removed {action.name}, ID {action.member_id}")
                case _:
                    assert_never(action)
        finally:
            self.prober.invalidate(key)

    def _recover(self, state: ClusterState, action: RecoveryAction, report: Report) -> None:
        key = _key(state.desired)

        def wrote(resource: Resource, written: Key, version: str) -> None:
            self.expectations.wrote(key, self._cache(resource), written, version)

        Recoverer(
            client=self.client,
            channels=self.prober.channels(key),
            on_call=self.on_call,
            state=state,
            member_at=self.dialect.member_at,
            wrote=wrote,
            report=report,
        ).act(action)

    def _replace(self, state: ClusterState, action: ReplaceMember) -> None:
        """Take a member away for a restart, after a live look that the others still agree on the list."""
        desired = state.desired
        if len(state.voters) > 1 and state.by_name[action.name].is_healthy:
            url_of = self._peer_url(desired, action.name)
            if not self._membership(state).lists(action.name, url_of):
                raise Conflict(f"{action.name} is no member any more: not upgrading it")

        def patch(resource: Resource, name: str, change: RawObject, kind: PatchKind) -> None:
            self._patch(resource, desired, name, change, kind=kind)

        try:
            replace_member(self.client, state, action, patch)
        finally:
            self.prober.invalidate(_key(desired))

    def _delete(self, state: ClusterState, name: str, report: Report) -> None:
        """Remove the objects of a member after making sure, live, that etcd does not list it."""
        desired = state.desired
        if self._membership(state).lists(name, self._peer_url(desired, name)):
            self.prober.invalidate(_key(desired))
            raise Conflict(f"{name} is a member again: not deleting it")
        member = state.by_name.get(name)
        if desired.is_persistent:
            self._delete_persistent(desired, name, member, report)
            return
        if member is not None and member.pod is not None and not member.pod.is_terminating:
            self._remove(resources.PODS, desired, name, member.pod.uid)
            report("PodRemoved", f"removed Pod {name}")
        service = self.caches.services.store.get(Key(desired.namespace, name))
        if service is not None and service.metadata.controller_uid == desired.uid:
            self._remove(resources.SERVICES, desired, name, service.metadata.uid)

    def _delete_persistent(
        self, desired: DesiredCluster, name: str, member: Member | None, report: Report
    ) -> None:
        if member is None:
            return
        if member.peer is not None and not member.peer.is_terminating:
            # The finalizer first: it makes the claim go before the last trace of the member.
            if not member.peer.is_for_cleanup:
                # With the uid: a peer that was made again meanwhile must not take its claim along some day.
                note = {"uid": member.peer.uid, "finalizers": [improbable.CLEANUP_FINALIZER]}
                self._patch(resources.PEERS, desired, name, {"metadata": note})
            self._remove(resources.PEERS, desired, name, member.peer.uid)
            report("PeerRemoved", f"removed EtcdPeer {name}")
        elif member.peer is None and member.claim is not None and not member.claim.is_terminating:
            self._remove(resources.CLAIMS, desired, name, member.claim.uid)
            report("PVCRemoved", f"removed PersistentVolumeClaim {name} of a removed member")

    def _remove(self, resource: Resource, desired: DesiredCluster, name: str, uid: str) -> None:
        with suppress(NotFound):
            self.client.delete(resource, Key(desired.namespace, name), uid=uid)

    def _membership(self, state: ClusterState) -> Membership:
        channels = self.prober.channels(_key(state.desired))
        return Membership(channels=channels, state=state, on_call=self.on_call)

    def _peer_url(self, desired: DesiredCluster, name: str) -> str:
        return url(self.dialect.member_host(desired, name), PEER_PORT)

    def _create(
        self, resource: Resource, body: RawObject, desired: DesiredCluster, report: Report, reason: str
    ) -> None:
        creator = Creator(client=self.client, expectations=self.expectations, cluster=_key(desired))
        if creator.create(resource, body, self._cache(resource)):
            report(reason, f"created {resource.kind} {body['metadata']['name']}")

    def _keep_budget(self, desired: DesiredCluster, body: RawObject, report: Report) -> None:
        """Make it, or replace what somebody made of it."""
        key = _key(desired)
        found = self.caches.budgets.store.get(key)
        if found is None or found.metadata.controller_uid != desired.uid:
            self._create(resources.BUDGETS, body, desired, report, "BudgetCreated")
            return
        patch: list[RawObject] = [
            {"op": "test", "path": "/metadata/uid", "value": found.metadata.uid},
            {"op": "add", "path": "/spec", "value": body["spec"]},
        ]
        with suppress(NotFound):  # deleted meanwhile: the watch will say so
            written = self.client.patch(resources.BUDGETS, key, patch, Written, kind=PatchKind.JSON)
            self.expectations.wrote(key, self.caches.budgets, key, written.metadata.resource_version)

    def _cache(self, resource: Resource) -> Informer[Any] | None:
        caches = self.caches
        by_resource: dict[Resource, Informer[Any] | None] = {
            resources.SERVICES: caches.services,
            resources.BUDGETS: caches.budgets,
            resources.PODS: caches.pods,
            resources.PEERS: caches.peers,
            resources.CLAIMS: caches.claims,
        }
        return by_resource[resource]

    def _seal(self, state: ClusterState, action: SealMember) -> None:
        """First the claim, if it is there, then the peer: a claim that is seen later is marked later."""
        desired = state.desired
        notes = {
            improbable.CLUSTER_ID_ANNOTATION: action.cluster_id,
            improbable.MEMBER_ID_ANNOTATION: action.member_id,
            improbable.SIZE_ANNOTATION: str(action.cluster_size),
            improbable.VERSION_ANNOTATION: state.by_name[action.name].asked_version,
        }
        bootstrap = peer_bootstrap(desired, action.name, Resuming(token=_token(desired)))
        claim = state.by_name[action.name].claim
        if claim is not None and (claim.cluster_id, claim.member_id) != (action.cluster_id, action.member_id):
            self._patch(resources.CLAIMS, desired, action.name, {"metadata": {"annotations": notes}})
        self._patch(
            resources.PEERS, desired, action.name, {"spec": {"bootstrap": msgspec.to_builtins(bootstrap)}}
        )

    def _patch(
        self,
        resource: Resource,
        desired: DesiredCluster,
        name: str,
        patch: RawObject,
        *,
        kind: PatchKind = PatchKind.MERGE,
    ) -> None:
        key = Key(desired.namespace, name)
        written = self.client.patch(resource, key, patch, Written, kind=kind)
        version = written.metadata.resource_version
        self.expectations.wrote(_key(desired), self._cache(resource), key, version)


def _key(desired: DesiredCluster) -> Key:
    return Key(desired.namespace, desired.name)


def _token(desired: DesiredCluster) -> str:
    bootstrap = desired.record.bootstrap
    return bootstrap.token if bootstrap is not None else desired.uid
