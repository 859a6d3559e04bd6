"""Carries actions out. Each can be cut off after any write and run again.

How objects are written stands in `reconcile.objects`, changes of etcd's list in
`reconcile.membership`, the acts of a recovery in `reconcile.recovery`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, assert_never

import msgspec

from etcd_operator.api import improbable
from etcd_operator.api.meta import RawObject
from etcd_operator.clock import Clock
from etcd_operator.core.actions import (
    Action,
    AddLearner,
    AnnotateVoters,
    ClearMissing,
    ConfirmLoss,
    ConfirmSilence,
    CreateClientService,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    DisarmCorrupt,
    DropPod,
    DropSeed,
    KeepBudget,
    MoveLeader,
    OpenSeed,
    PadLog,
    Promote,
    RecoveryAction,
    RemakePod,
    Remember,
    RemoveCorrupt,
    RemoveMember,
    ReplaceMember,
    RestoreLabels,
    RetireMember,
    SetExistingOnly,
    SetSeedExistingOnly,
)
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.kinds.persistent import PERSISTENT
from etcd_operator.core.members import ClaimFacts, Member
from etcd_operator.core.starts import Resuming
from etcd_operator.core.state import ClusterState
from etcd_operator.dialects.base import Dialect
from etcd_operator.errors import Conflict, NotFound, NotLeading
from etcd_operator.etcd.client import OnCall
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Budget
from etcd_operator.reconcile.caches import Caches, Cluster
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.labels import assert_gone_as_seen
from etcd_operator.reconcile.member_storage import assert_others_run, assert_others_stay
from etcd_operator.reconcile.membership import Membership
from etcd_operator.reconcile.objects import CHANGED, Objects, Overridden, Report
from etcd_operator.reconcile.prober import Prober
from etcd_operator.reconcile.recovery import Recoverer
from etcd_operator.reconcile.remount import Remount
from etcd_operator.reconcile.removal import Removal
from etcd_operator.reconcile.upgrade import replace_member
from etcd_operator.render import budget
from etcd_operator.render.persistent import peer_bootstrap
from etcd_operator.render.urls import CLIENT_PORT, PEER_PORT, endpoint, url


@dataclass(frozen=True, kw_only=True)
class Actor(Generic[Cluster]):
    """Acts on the clusters of one API group."""

    client: Client
    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    expectations: Expectations
    prober: Prober
    on_call: OnCall
    clock: Clock
    may_act: Callable[[], bool]
    leads_for: Callable[[float], bool]

    def act(self, state: ClusterState, action: Action, report: Report) -> None:
        """Carry out one action other than `Remember`, which is a status write.

        Asked right before it: whether this process still leads. Raises NotLeading if not.
        """
        if not self.may_act():
            raise NotLeading("leadership of the operator is in doubt: not acting")
        match action:
            case AddLearner() | Promote() | MoveLeader() | RemoveMember() | RemoveCorrupt() | DisarmCorrupt():
                self._change(state, action, report)
            case DeleteMember():
                self._delete(state, action.name, report)
            case DropPod():
                self._drop(state, action.name, report)
            case SetExistingOnly() | AnnotateVoters():
                self._write_down(state, action)
            case RemakePod() | ClearMissing():
                remount = Remount(objects=self._objects(state.desired), state=state, report=report)
                remount.act(action, now=self.clock.now())
            case (
                ConfirmLoss()
                | ConfirmSilence()
                | SetSeedExistingOnly()
                | RetireMember()
                | DropSeed()
                | OpenSeed()
            ):
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
        action: CreateClientService
        | CreateMemberService
        | RestoreLabels
        | KeepBudget
        | CreateMember
        | Remember,
        report: Report,
    ) -> None:
        match action:
            case CreateClientService():
                body = self.dialect.client_service(desired)
                self._create(resources.SERVICES, body, desired, report, "ServiceCreated")
            case CreateMemberService():
                body = self.dialect.member_service(desired, action.name)
                self._create(resources.SERVICES, body, desired, report, "ServiceCreated")
            case RestoreLabels():
                note = {"uid": action.uid, "labels": self.dialect.member_labels(desired, action.name)}
                self._objects(desired).patch(resources.PODS, action.pod, {"metadata": note})
                report("LabelsRestored", f"gave Pod {action.pod} the labels back by which it is known")
            case KeepBudget():
                self._keep_budget(desired, self.dialect.budget(desired, action.min_available), report)
            case CreateMember():
                resource = resources.PEERS if desired.kind is PERSISTENT else resources.PODS
                body = self.dialect.member(desired.at(action.version), action.name, action.start)
                self._create(resource, body, desired, report, f"{resource.kind.removeprefix('Etcd')}Created")
            case Remember():
                raise TypeError("Remember is written by the pass, as status")
            case _:
                assert_never(action)

    def _change(
        self,
        state: ClusterState,
        action: AddLearner | Promote | MoveLeader | RemoveMember | RemoveCorrupt | DisarmCorrupt,
        report: Report,
    ) -> None:
        """Change etcd's list. Whatever comes of it, what was seen before is outdated."""
        removed: frozenset[str] = frozenset()
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
                case DisarmCorrupt():
                    membership.disarm_corrupt(action.member_id)
                    report("AlarmDisarmed", f"disarmed the alarm CORRUPT of {action.member_id}")
                case RemoveMember() | RemoveCorrupt():
                    if isinstance(action, RemoveCorrupt):
                        membership.assert_corrupt(action.member_id)
                    labels = self.dialect.member_labels(state.desired, action.name)
                    assert_gone_as_seen(self._objects(state.desired), state, action.name, labels)
                    assert_others_stay(self.client, state, action.name)
                    if membership.remove(action.name, action.member_id):
                        report("MemberRemoved", f"removed {action.name}, ID {action.member_id}")
                    removed = _endpoints(state.by_name.get(action.name))
                case _:
                    assert_never(action)
        finally:
            self.prober.invalidate(_key(state.desired), removed=removed)

    def _recover(self, state: ClusterState, action: RecoveryAction, report: Report) -> None:
        Recoverer(
            objects=self._objects(state.desired),
            channels=self.prober.channels(_key(state.desired)),
            on_call=self.on_call,
            state=state,
            member_at=self.dialect.member_at,
            now=self.clock.now(),
            report=report,
        ).act(action)

    def _replace(self, state: ClusterState, action: ReplaceMember) -> None:
        """Take a member away for a restart, after a live look: the others are there and agree on the list."""
        desired = state.desired
        if len(state.voters) > 1 and state.by_name[action.name].is_healthy:
            url_of = self._peer_url(desired, action.name)
            if not self._membership(state).lists(action.name, url_of):
                raise Conflict(f"{action.name} is no member any more: not upgrading it")
            assert_others_run(self.client, state, action.name)
        try:
            replace_member(self._objects(desired), state, action)
        finally:
            self.prober.invalidate(_key(desired))

    def _delete(self, state: ClusterState, name: str, report: Report) -> None:
        """Remove the objects of a member after making sure, live, that etcd does not list it."""
        if self._membership(state).lists(name, self._peer_url(state.desired, name)):
            self.prober.invalidate(_key(state.desired))
            raise Conflict(f"{name} is a member again: not deleting it")
        objects = self._objects(state.desired)
        Removal(objects=objects, state=state, report=report, whose="").remove(name)

    def _drop(self, state: ClusterState, name: str, report: Report) -> None:
        """Only the pod that was seen: one that has ended for good never runs again."""
        pod = state.by_name[name].pod
        if pod is not None and pod.is_finished:
            self._objects(state.desired).remove(resources.PODS, pod.name, pod.uid)
            report("PodRemoved", f"removed Pod {name}, which had failed")

    def _membership(self, state: ClusterState) -> Membership:
        channels = self.prober.channels(_key(state.desired))
        return Membership(channels=channels, state=state, on_call=self.on_call, leads_for=self.leads_for)

    def _peer_url(self, desired: DesiredCluster, name: str) -> str:
        return url(self.dialect.member_host(desired, name), PEER_PORT)

    def _objects(self, desired: DesiredCluster) -> Objects:
        wrote = self.expectations.noting(_key(desired), self.caches.of_resource)
        return Objects(client=self.client, namespace=desired.namespace, wrote=wrote)

    def _create(
        self, resource: Resource, body: RawObject, desired: DesiredCluster, report: Report, reason: str
    ) -> None:
        if self._objects(desired).create(resource, body):
            report(reason, f"created {resource.kind} {body['metadata']['name']}")

    def _keep_budget(self, desired: DesiredCluster, body: RawObject, report: Report) -> None:
        """Make it, or put right what somebody made of it. Raises Overridden."""
        found = self.caches.budgets.store.get(_key(desired))
        if found is None or found.metadata.controller_uid != desired.uid:
            self._create(resources.BUDGETS, body, desired, report, "BudgetCreated")
            return
        changes = budget.changes(found.spec, body)
        try:
            stored = self._objects(desired).edited(
                resources.BUDGETS, desired.name, found.metadata.uid, changes, Budget
            )
        except NotFound:
            return  # deleted meanwhile: the watch will say so
        if not budget.is_as_asked(stored.spec, body):
            raise Overridden(f"PodDisruptionBudget {desired.name} is not stored as asked for: {CHANGED}")

    def _write_down(self, state: ClusterState, action: SetExistingOnly | AnnotateVoters) -> None:
        """First the claim, if it is there, then the peer: a claim that is seen later is marked later."""
        desired, claim = state.desired, state.by_name[action.name].claim
        objects = self._objects(desired)
        if claim is not None and (notes := _notes(state, action, claim)):
            change = {"metadata": {"uid": claim.uid, "annotations": notes}}
            objects.patch(resources.CLAIMS, action.name, change)
        if isinstance(action, SetExistingOnly):
            bootstrap = peer_bootstrap(desired, action.name, Resuming(token=desired.token))
            # What is left out of a merge stays, and with a survivor no peer counts as sealed.
            spec = {"bootstrap": {"survivor": None, **msgspec.to_builtins(bootstrap)}}
            objects.patch(resources.PEERS, action.name, {"spec": spec})


def _notes(
    state: ClusterState, action: SetExistingOnly | AnnotateVoters, claim: ClaimFacts
) -> dict[str, str | None]:
    """The annotations that a claim is given, without what earlier versions wrote; empty for none."""
    voters: dict[str, str | None] = {
        improbable.VOTERS_ANNOTATION: ",".join(action.voters),
        improbable.VOTERS_REVISION_ANNOTATION: str(action.revision),
        improbable.SIZE_ANNOTATION: None,
    }
    if isinstance(action, AnnotateVoters):
        return voters
    if (claim.cluster_id, claim.member_id) == (action.cluster_id, action.member_id):
        return {}
    return {
        improbable.CLUSTER_ID_ANNOTATION: action.cluster_id,
        improbable.MEMBER_ID_ANNOTATION: action.member_id,
        improbable.VERSION_ANNOTATION: state.by_name[action.name].requested_version,
        **voters,
    }


def _key(desired: DesiredCluster) -> Key:
    return Key(desired.namespace, desired.name)


def _endpoints(member: Member | None) -> frozenset[str]:
    pod = member.pod if member is not None else None
    return frozenset({endpoint(pod.ip, CLIENT_PORT)} if pod is not None and pod.ip else ())
