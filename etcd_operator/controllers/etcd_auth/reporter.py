"""Statuses of EtcdRoles and EtcdUsers, and Events about what was changed in etcd, and by whom it had been."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from etcd_operator.api.meta import ObjectMeta, Value, condition
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_auth.caches import AuthCaches
from etcd_operator.controllers.etcd_auth.decide import report
from etcd_operator.controllers.etcd_auth.decide.enabling import AuthStep
from etcd_operator.controllers.etcd_auth.decide.state import AuthPlan, Change, described, role_of, user_of
from etcd_operator.controllers.etcd_auth.declared import DeclaredRole, DeclaredUser
from etcd_operator.controllers.shared.auth_reports import ENABLED, AuthReports
from etcd_operator.controllers.shared.decide.clusters import ClusterResource
from etcd_operator.controllers.shared.failures import IndependentWrites
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.events import EventType, Recorder, Reference
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written

CHANGED, CORRECTED, REMOVED, UNDECLARED = "Applied", "DriftCorrected", "Revoked", "UndeclaredUsers"
ENABLING, DISABLED = "EnablingAuthentication", "AuthenticationDisabled"
"""Reasons of Events."""

NEEDED = "requests need a user"
NOT_NEEDED = "requests need no user: whoever is accepted as a client may do everything"


@dataclass(eq=False, kw_only=True)
class Reporter:
    """Only passes over a key call it with that key."""

    caches: AuthCaches
    recorder: Recorder
    clock: Clock
    reports: AuthReports
    _undeclared: dict[Key, tuple[str, ...]] = field(default_factory=dict)

    def changed(
        self,
        cluster: ClusterResource,
        plan: AuthPlan,
        roles: Iterable[DeclaredRole],
        users: Iterable[DeclaredUser],
    ) -> None:
        """Events about a plan that was carried out."""
        of_roles, of_users = _by(role_of, plan.changes), _by(user_of, plan.changes)
        for role in roles:
            changes = of_roles.get(role.name, [])
            was_ready = report.was_ready(role.role.status.conditions, role.role.metadata.generation)
            self._event(Reference.to(resources.ROLES, role.role.metadata), changes, was_ready=was_ready)
        for user in users:
            changes, about = of_users.get(user.name, []), Reference.to(resources.USERS, user.user.metadata)
            # A rotation is no drift: it makes another user.
            is_rotating = user.connection is not None and bool(user.connection.rotation.following)
            self._event(about, changes, was_ready=user.was_ready and not is_rotating)
        self._on_cluster(cluster, plan, {role.name for role in roles})

    def forget(self, key: Key) -> None:
        """The cluster is gone."""
        self._undeclared.pop(key, None)
        self.reports.forget(key)

    def enabling(self, cluster: ClusterResource, users: list[str]) -> None:
        """Before authentication is enabled: who will be served. etcd does not show who is connected."""
        name = cluster.metadata.name
        served = f"only {', '.join(users[:10])} {'and others ' * (len(users) > 10)}will be served"
        message = (
            f"requests are about to need a user: {served if users else 'no client will be served'}; the "
            f"certificate of Secret {name}-client-tls is that of no user, and clients with a password that "
            "have connected with it must connect again"
        )
        self._record(cluster, "Warning", ENABLING, message)

    def switched(
        self, cluster: ClusterResource, taken: Iterable[AuthStep], held: str, *, was_enabled: bool
    ) -> None:
        """Events about steps that were taken; and the condition, where authentication is the operator's."""
        is_enabled = AuthStep.ENABLE in taken or (was_enabled and AuthStep.DISABLE not in taken)
        message = NEEDED if is_enabled else NOT_NEEDED
        if is_enabled != was_enabled:
            kind: EventType = "Normal" if is_enabled else "Warning"
            self._record(cluster, kind, ENABLED if is_enabled else DISABLED, message)
        if cluster.status.auth is None:
            return
        made = condition(
            ENABLED,
            holds=is_enabled,
            reason="Held" if held else "Enabled" if is_enabled else "Disabled",
            message=held or message,
            generation=cluster.metadata.generation,
        )
        self.reports.hand_over(cluster, self._resource(cluster.metadata.key), made)

    def _record(self, cluster: ClusterResource, kind: EventType, reason: str, message: str) -> None:
        about = Reference.to(self._resource(cluster.metadata.key), cluster.metadata)
        self.recorder.record(about, kind, reason, message)

    def _on_cluster(self, cluster: ClusterResource, plan: AuthPlan, declared: set[str]) -> None:
        key = cluster.metadata.key
        rest = [each for each in plan.changes if not user_of(each) and role_of(each) not in declared]
        if words := described(rest):
            self._record(cluster, "Normal", REMOVED, words)
        undeclared = (*plan.undeclared_users, *(f"role {name}" for name in plan.undeclared_roles))
        if undeclared and self._undeclared.get(key) != undeclared:
            names = ", ".join(undeclared[:10])
            message = f"etcd has users or roles that no EtcdUser or EtcdRole declares: {names}"
            self._record(cluster, "Warning", UNDECLARED, message)
        self._undeclared[key] = undeclared

    def _resource(self, key: Key) -> Resource:
        found = self.caches.cluster(key)
        return found[1].resource if found is not None else resources.IMPROBABLE_CLUSTERS

    def _event(self, about: Reference, changes: list[Change], *, was_ready: bool) -> None:
        words = described(changes)
        if not words:
            return
        kind: EventType = "Warning" if was_ready else "Normal"
        message = f"etcd was changed by somebody else: {words}" if was_ready else words
        self.recorder.record(about, kind, CORRECTED if was_ready else CHANGED, message)

    def write(
        self,
        objects: Objects,
        plan: AuthPlan,
        roles: Iterable[DeclaredRole],
        users: Iterable[DeclaredUser],
        now: datetime,
    ) -> None:
        """The statuses that are new. Raises the first error of `Client`, once all are tried."""
        text = timestamp(now)
        writes = IndependentWrites(self.clock)

        def make(resource: Resource, metadata: ObjectMeta, before: Value, wanted: Value) -> None:
            if wanted != before:
                writes.make(partial(_write, objects, resource, metadata, wanted))

        for role in roles:
            make(resources.ROLES, role.role.metadata, role.role.status, role.status(plan, text))
        for user in (each for each in users if not each.is_later):
            make(resources.USERS, user.user.metadata, user.user.status, user.status(plan, text))
        writes.end()


def _by(name_of: Callable[[Change], str], changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Changes by what they are about: there may be thousands."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(name_of(change), []).append(change)
    return found


def _write(objects: Objects, resource: Resource, metadata: ObjectMeta, status: Value) -> None:
    objects.write_status(resource, metadata, status, Written)
