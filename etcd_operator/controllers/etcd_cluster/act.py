"""Carries out actions. Each can be interrupted after any write and run again.

How objects are written is in `shared.objects`, where the kinds of member differ in `etcd_cluster.members`,
changes of etcd's list in `etcd_cluster.membership`, the acts of a recovery in `recovery.acts`. What acts
confirm live is in `etcd_cluster.live_checks`, and of a recovery in `recovery.proofs`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, assert_never

from etcd_operator.api.meta import RawObject
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    AddLearner,
    AppendEntry,
    CommonAction,
    ConfirmNoAuthentication,
    CreateClientService,
    CreateMember,
    DeleteMember,
    DisarmCorrupt,
    KeepBudget,
    KindAction,
    MembershipAction,
    MoveLeader,
    PadLog,
    Promote,
    Remember,
    RemoveCorrupt,
    RemoveExternal,
    RemoveMember,
    ReplaceMember,
    RestoreLabels,
    TakeBack,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import TlsAction
from etcd_operator.controllers.etcd_cluster.decide.facts.peering import started
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.orphans import Orphan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import RecoveryAction, TrySeedExistingOnly
from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping, Joining, Resuming
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect, client_endpoints, peer_url
from etcd_operator.controllers.etcd_cluster.live_checks import (
    assert_bootstraps,
    assert_stays,
    assert_still_there,
    pod_of,
)
from etcd_operator.controllers.etcd_cluster.manifests import budget
from etcd_operator.controllers.etcd_cluster.members.protocol import NewMembers, Scope
from etcd_operator.controllers.etcd_cluster.membership import Membership
from etcd_operator.controllers.etcd_cluster.observe.labels import assert_gone_as_seen
from etcd_operator.controllers.etcd_cluster.observe.prober import Prober
from etcd_operator.controllers.etcd_cluster.recovery.acts import Recoverer
from etcd_operator.controllers.etcd_cluster.recovery.proofs import RecoveryProofs
from etcd_operator.controllers.etcd_cluster.recovery.readers import Readers, located
from etcd_operator.controllers.etcd_cluster.services import create_services
from etcd_operator.controllers.etcd_cluster.tls.writer import CertificateWriter
from etcd_operator.controllers.shared.caches import Caches, Cluster
from etcd_operator.controllers.shared.manifests.owner import owned_by
from etcd_operator.controllers.shared.objects import CHANGED, Overridden, RecordEvent
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Conflict, NotFound, OperatorError
from etcd_operator.etcd.client import OnCall
from etcd_operator.kube import resources
from etcd_operator.kube.views import Budget

_OWNED = (resources.PODS, resources.PEERS, resources.SERVICES, resources.BUDGETS, resources.NETWORK_POLICIES)
ORPHANED = {each.kind: each for each in _OWNED}
"""The objects of members, and of the cluster, that the resource owns itself, by kind; EtcdPeers own the
ReplicaSets."""


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
    readers: Readers
    leads_for: Callable[[float], bool]
    certificates: CertificateWriter

    def act(self, state: ClusterState, action: Action, report: RecordEvent) -> None:
        """Carry out one action other than `Remember`, which is a status write.

        Raises NotLeading if this process does not lead right before it.
        """
        objects = self.writes.of(state.desired.key)
        objects.require_leadership()
        scope = Scope(objects=objects, state=state, report=report, now=self.clock.now())
        if isinstance(action, MembershipAction):
            self._change(scope, action)
        elif isinstance(action, RecoveryAction):
            self._recover(scope, action)
        elif isinstance(action, KindAction):
            self.members(scope).act(action)
        elif isinstance(action, TlsAction):
            self.certificates.act(scope, action)
        else:
            self._write(scope, action)

    def _write(self, scope: Scope, action: CommonAction) -> None:
        desired = scope.desired
        match action:
            case CreateClientService():
                create_services(scope, self.caches.services.store.get, *self.dialect.services(desired))
            case RestoreLabels():
                labels = self.dialect.member_labels(desired, action.pod.member)
                scope.objects.label(resources.PODS, action.pod, labels)
                scope.report("LabelsRestored", f"restored the labels of Pod {action.pod.name}")
            case TakeBack():
                _take_back(scope, action.orphan)
            case KeepBudget():
                self._keep_budget(scope, self.dialect.budget(desired, action.min_available))
            case CreateMember():
                self._create(scope, action)
            case ReplaceMember():
                self._replace(scope, action)
            case DeleteMember():
                self._delete(scope, action.name)
            case PadLog() | AppendEntry() | ConfirmNoAuthentication():
                self._ask(scope, action)
            case Remember():
                raise TypeError("Remember is written by the pass, as status")
            case _:
                assert_never(action)

    def _ask(self, scope: Scope, action: PadLog | AppendEntry | ConfirmNoAuthentication) -> None:
        membership = self._membership(scope.state)
        match action:
            case PadLog():
                membership.append_nothing(action.entries)
            case AppendEntry():
                with suppress(OperatorError):
                    membership.append_entry()
            case ConfirmNoAuthentication():
                membership.assert_no_authentication()
        self.prober.invalidate(scope.desired.key)

    def _create(self, scope: Scope, action: CreateMember) -> None:
        if isinstance(action.start, Bootstrapping):
            assert_bootstraps(scope, self.caches.resource)
        start = located(scope, action.start)
        annotations = self.certificates.keep(scope, action.name)  # its pod does not start without them
        is_resuming = isinstance(start, Resuming | Joining)
        desired = started(scope.state, action.name) if is_resuming else scope.desired
        body = self.dialect.member(desired.at(action.version), action.name, start)
        if annotations:
            annotations = {**body["metadata"].get("annotations", {}), **annotations}
            body = {**body, "metadata": {**body["metadata"], "annotations": annotations}}
        self.members(scope).create(body)

    def _change(self, scope: Scope, action: MembershipAction) -> None:
        """Change etcd's member list. Whatever the result, earlier observations are outdated."""
        removed: frozenset[str] = frozenset()
        membership, report = self._membership(scope.state), scope.report
        try:
            match action:
                case AddLearner():
                    if membership.add_learner(self._peer_url(scope, action.name)):
                        report("MemberAdded", f"added member {action.name} as a learner")
                case Promote():
                    assert_stays(scope, scope.member(action.name), pod_of)
                    if membership.promote(action.member_id):
                        report("MemberPromoted", f"promoted {action.name} to a voter")
                case MoveLeader():
                    membership.move_leader(action)
                    report("LeaderMoved", f"moved leadership to {action.name}")
                case DisarmCorrupt():
                    membership.disarm_corrupt(action.member_id)
                    report("AlarmDisarmed", f"disarmed the alarm CORRUPT of {action.member_id}")
                case RemoveMember() | RemoveCorrupt() | RemoveExternal():
                    self._remove(scope, membership, action)
                    removed = frozenset(client_endpoints([_member_of(scope, action)]).values())
                case _:
                    assert_never(action)
        finally:
            self.prober.invalidate(scope.desired.key, removed=removed)

    def _remove(
        self, scope: Scope, membership: Membership, action: RemoveMember | RemoveCorrupt | RemoveExternal
    ) -> None:
        """Take a member out of etcd's list, after what the plan rests on is confirmed live."""
        if isinstance(action, RemoveCorrupt):
            membership.assert_corrupt(action.member_id)
        if not isinstance(action, RemoveExternal):
            labels = self.dialect.member_labels(scope.desired, action.name)
            assert_gone_as_seen(scope, self.members(scope), action.name, labels)
        assert_still_there(scope, action.name, scope.state.kind.storage_of)
        if membership.remove(action.name, action.member_id, by_ours=isinstance(action, RemoveExternal)):
            scope.report("MemberRemoved", f"removed member {action.name}, ID {action.member_id}")

    def _recover(self, scope: Scope, action: RecoveryAction) -> None:
        if isinstance(action, TrySeedExistingOnly):
            scope = replace(scope, objects=replace(scope.objects, is_dry_run=True))
        proofs = RecoveryProofs(
            scope=scope,
            channels=self.prober.channels(scope.desired.key),
            on_call=self.on_call,
            dialect=self.dialect,
            readers=self.readers,
        )
        Recoverer(scope=scope, members=self.members(scope), proofs=proofs).act(action)

    def _replace(self, scope: Scope, action: ReplaceMember) -> None:
        """Stop a member for a restart, after a live read: the others run, and list it."""
        state, name = scope.state, action.name
        member, membership = state.by_name[name], self._membership(state)
        may_serve = member.is_healthy or (state.has_quorum and member.is_running)
        if len(state.voters) > 1 and may_serve:
            if not membership.still_lists(member):
                raise Conflict(f"{name} is no longer a member: not upgrading it")
            assert_still_there(scope, name, pod_of)
        try:
            former = membership.readdress(member, self._peer_url(scope, name))
            if former:
                scope.report("MemberUpdated", f"changed the peer URL of {name}")
            else:
                scope = replace(scope, state=replace(state, desired=started(state, name)))
            self._stop(scope, action, lambda: membership.put_back(member, former) if former else None)
        finally:
            self.prober.invalidate(scope.desired.key)

    def _stop(self, scope: Scope, action: ReplaceMember, undo: Callable[[], None]) -> None:
        try:
            self.members(scope).replace(action, self.certificates.loaded(scope.state, action.name))
        except OperatorError:
            undo()
            raise

    def _delete(self, scope: Scope, name: str) -> None:
        """Remove the objects of a member after making sure, live, that etcd does not list it."""
        if self._membership(scope.state).lists(name, self._peer_url(scope, name)):
            self.prober.invalidate(scope.desired.key)
            raise Conflict(f"{name} is a member again: not deleting it")
        self.members(scope).remove(name)

    def _membership(self, state: ClusterState) -> Membership:
        channels = self.prober.channels(state.desired.key)
        return Membership(channels=channels, state=state, on_call=self.on_call, leads_for=self.leads_for)

    def _peer_url(self, scope: Scope, name: str) -> str:
        return peer_url(self.dialect, scope.desired, name)

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


def _take_back(scope: Scope, orphan: Orphan) -> None:
    """Raises Conflict if the object has changed since it was observed: it may have got another owner."""
    desired = scope.desired
    owner = owned_by(desired.api_version, "EtcdCluster", name=desired.name, uid=desired.uid)
    scope.objects.own(ORPHANED[orphan.kind], orphan, owner, version=orphan.version)
    scope.report("OwnerRestored", f"took over {orphan.kind} {orphan.name}, which had no owner")


def _member_of(scope: Scope, action: RemoveMember | RemoveCorrupt | RemoveExternal) -> Member:
    external = {member.name: member for member in scope.state.external}
    return external.get(action.name) or scope.member(action.name)
