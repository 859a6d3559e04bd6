"""Carries out actions. Each can be interrupted after any write and run again.

How objects are written is in `reconcile.objects`, where the kinds of member differ in `reconcile.members`,
changes of etcd's list in `reconcile.membership`, the acts of a recovery in `reconcile.recovery`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, assert_never

from etcd_operator.api.meta import ObjectMeta, RawObject
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
from etcd_operator.core.state import ClusterState
from etcd_operator.dialects.base import Dialect
from etcd_operator.errors import Conflict, NotFound, NotLeading
from etcd_operator.etcd.client import OnCall
from etcd_operator.kube import resources
from etcd_operator.kube.views import Budget
from etcd_operator.reconcile.addresses import client_endpoints, peer_url
from etcd_operator.reconcile.caches import Caches, Cluster
from etcd_operator.reconcile.labels import assert_gone_as_seen
from etcd_operator.reconcile.member_storage import assert_others_are_kept, assert_others_run
from etcd_operator.reconcile.members.protocol import NewMembers, Scope
from etcd_operator.reconcile.membership import Membership
from etcd_operator.reconcile.objects import CHANGED, Overridden, Report
from etcd_operator.reconcile.prober import Prober
from etcd_operator.reconcile.recovery import Recoverer
from etcd_operator.reconcile.writes import Writes
from etcd_operator.render import budget


@dataclass(frozen=True, kw_only=True)
class Actor(Generic[Cluster]):
    """Acts on the clusters of one API group."""

    writes: Writes
    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    members: NewMembers
    prober: Prober
    on_call: OnCall
    clock: Clock
    may_act: Callable[[], bool]
    leads_for: Callable[[float], bool]

    def act(self, state: ClusterState, action: Action, report: Report) -> None:
        """Carry out one action other than `Remember`, which is a status write.

        Raises NotLeading if this process does not lead right before it.
        """
        if not self.may_act():
            raise NotLeading("the operator may no longer be the leader: not acting")
        match action:
            case AddLearner() | Promote() | MoveLeader() | RemoveMember() | RemoveCorrupt() | DisarmCorrupt():
                self._change(state, action, report)
            case DeleteMember():
                self._delete(state, action.name, report)
            case DropPod() | SetExistingOnly() | AnnotateVoters() | RemakePod() | ClearMissing():
                self.members(self._scope(state, report)).act(action)
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
                self._replace(state, action, report)
            case PadLog():
                self._membership(state).append_nothing(action.entries)
                self.prober.invalidate(state.desired.key)
            case _:
                self._make(self._scope(state, report), action)

    def _make(
        self,
        scope: Scope,
        action: CreateClientService
        | CreateMemberService
        | RestoreLabels
        | KeepBudget
        | CreateMember
        | Remember,
    ) -> None:
        desired = scope.desired
        match action:
            case CreateClientService():
                body = self.dialect.client_service(desired)
                scope.create(resources.SERVICES, body, "ServiceCreated")
            case CreateMemberService():
                body = self.dialect.member_service(desired, action.name)
                scope.create(resources.SERVICES, body, "ServiceCreated")
            case RestoreLabels():
                pod = ObjectMeta(name=action.pod, uid=action.uid)
                scope.objects.label(resources.PODS, pod, self.dialect.member_labels(desired, action.name))
                scope.report("LabelsRestored", f"restored the labels of Pod {action.pod}")
            case KeepBudget():
                self._keep_budget(scope, self.dialect.budget(desired, action.min_available))
            case CreateMember():
                body = self.dialect.member(desired.at(action.version), action.name, action.start)
                self.members(scope).create(body)
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
        """Change etcd's member list. Whatever the result, earlier observations are outdated."""
        removed: frozenset[str] = frozenset()
        membership = self._membership(state)
        try:
            match action:
                case AddLearner():
                    if membership.add_learner(self._peer_url(state.desired, action.name)):
                        report("MemberAdded", f"added member {action.name} as a learner")
                case Promote():
                    if membership.promote(action.member_id):
                        report("MemberPromoted", f"promoted {action.name} to a voter")
                case MoveLeader():
                    membership.move_leader(action)
                    report("LeaderMoved", f"moved leadership to {action.name}")
                case DisarmCorrupt():
                    membership.disarm_corrupt(action.member_id)
                    report("AlarmDisarmed", f"disarmed the alarm CORRUPT of {action.member_id}")
                case RemoveMember() | RemoveCorrupt():
                    if isinstance(action, RemoveCorrupt):
                        membership.assert_corrupt(action.member_id)
                    labels = self.dialect.member_labels(state.desired, action.name)
                    scope = self._scope(state, report)
                    assert_gone_as_seen(scope, self.members(scope), action.name, labels)
                    assert_others_are_kept(scope, action.name)
                    if membership.remove(action.name, action.member_id):
                        report("MemberRemoved", f"removed member {action.name}, ID {action.member_id}")
                    removed = frozenset(client_endpoints([scope.member(action.name)]).values())
                case _:
                    assert_never(action)
        finally:
            self.prober.invalidate(state.desired.key, removed=removed)

    def _recover(self, state: ClusterState, action: RecoveryAction, report: Report) -> None:
        scope = self._scope(state, report)
        Recoverer(
            scope=scope,
            members=self.members(scope),
            channels=self.prober.channels(state.desired.key),
            on_call=self.on_call,
            member_at=self.dialect.member_at,
        ).act(action)

    def _replace(self, state: ClusterState, action: ReplaceMember, report: Report) -> None:
        """Stop a member for a restart, after a live read: the others run, and list it."""
        desired, scope = state.desired, self._scope(state, report)
        if len(state.voters) > 1 and state.by_name[action.name].is_healthy:
            if not self._membership(state).lists(action.name, self._peer_url(desired, action.name)):
                raise Conflict(f"{action.name} is no longer a member: not upgrading it")
            assert_others_run(scope, action.name)
        try:
            self.members(scope).replace(action)
        finally:
            self.prober.invalidate(desired.key)

    def _delete(self, state: ClusterState, name: str, report: Report) -> None:
        """Remove the objects of a member after making sure, live, that etcd does not list it."""
        if self._membership(state).lists(name, self._peer_url(state.desired, name)):
            self.prober.invalidate(state.desired.key)
            raise Conflict(f"{name} is a member again: not deleting it")
        self.members(self._scope(state, report)).remove(name)

    def _membership(self, state: ClusterState) -> Membership:
        channels = self.prober.channels(state.desired.key)
        return Membership(channels=channels, state=state, on_call=self.on_call, leads_for=self.leads_for)

    def _peer_url(self, desired: DesiredCluster, name: str) -> str:
        return peer_url(self.dialect, desired, name)

    def _scope(self, state: ClusterState, report: Report) -> Scope:
        objects = self.writes.of(state.desired.key)
        return Scope(objects=objects, state=state, report=report, now=self.clock.now())

    def _keep_budget(self, scope: Scope, body: RawObject) -> None:
        """Create it, or restore what somebody changed. Raises Overridden."""
        desired = scope.desired
        found = self.caches.budgets.store.get(desired.key)
        if found is None or found.metadata.controller_uid != desired.uid:
            scope.create(resources.BUDGETS, body, "BudgetCreated")
            return
        changes = budget.changes(found.spec, body)
        try:
            stored = scope.objects.change(resources.BUDGETS, found.metadata, *changes, kind=Budget)
        except NotFound:
            return  # deleted meanwhile: the watch will report it
        if not budget.is_as_desired(stored.spec, body):
            raise Overridden(f"PodDisruptionBudget {desired.name} is not stored as requested: {CHANGED}")
