"""One pass over the roles and users of one cluster: Secrets, then etcd, then what became of it.

What etcd has is read only if something may have changed: an object, the time, or `auth_revision` on a metrics
page, which grows with each change of users and roles. Otherwise a pass reads one such page, and ends.

A pass may end after any write, and be repeated: all that the operator has to know is in etcd and in the
connection Secrets.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.persisted import AuthRecord
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_auth import etcd
from etcd_operator.controllers.etcd_auth.access import ClientAuthority, Reach
from etcd_operator.controllers.etcd_auth.caches import AuthCaches, asks_for_certificates, is_served
from etcd_operator.controllers.etcd_auth.decide import report
from etcd_operator.controllers.etcd_auth.decide.enabling import AuthStep, AuthSwitch
from etcd_operator.controllers.etcd_auth.decide.names import ROOT
from etcd_operator.controllers.etcd_auth.decide.plan import plan
from etcd_operator.controllers.etcd_auth.decide.report import Verdict
from etcd_operator.controllers.etcd_auth.decide.state import (
    AuthPlan,
    AuthState,
    Change,
    DeleteRole,
    DeleteUser,
    SetPassword,
)
from etcd_operator.controllers.etcd_auth.declared import (
    Declared,
    DeclaredRole,
    DeclaredUser,
    connect_all,
    declared_role,
    declared_user,
    failure_of,
    held_users,
    not_ready,
    requested,
)
from etcd_operator.controllers.etcd_auth.memory import SECRETS_CHECKED, Memory, Settled
from etcd_operator.controllers.etcd_auth.reporter import Reporter
from etcd_operator.controllers.etcd_auth.switch import switch
from etcd_operator.controllers.etcd_auth.turns import Turns
from etcd_operator.controllers.shared.decide.clusters import ClusterResource
from etcd_operator.controllers.shared.decide.holds import BEHIND
from etcd_operator.controllers.shared.failures import Failures, is_waited_for
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.engine.controller import Result
from etcd_operator.errors import NotLeading, OperatorError, Unavailable
from etcd_operator.etcd.client import OnCall
from etcd_operator.etcd.errors import AuthRequired, PermissionDenied
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource

POLL = 30.0
"""Seconds between two looks at a metrics page."""

UNDECLARED_POLL = 300.0
"""The same where nothing is declared, and no page can be read: there may be users to remove."""

HELD = timedelta(seconds=30)
"""After so long something is tried again that another one has to resolve, without an event."""


@dataclass(eq=False, kw_only=True)
class AuthReconciler:
    """Makes users and roles those that are declared. Only passes over a key use what is known of it."""

    caches: AuthCaches
    writes: Writes
    failures: Failures
    reporter: Reporter
    clock: Clock
    on_call: OnCall
    reach: Reach
    turns: Turns
    memory: Memory = field(default_factory=Memory)

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server and of etcd that are worth another try."""
        return self.writes.pass_over(key, lambda objects: self._pass(key, objects))

    def _pass(self, key: Key, objects: Objects) -> Result:
        found = self.caches.cluster(key)
        made = _Pass(
            reconciler=self,
            key=key,
            objects=objects,
            roles=[declared_role(each) for each in self.caches.roles_of(key)],
            users=[declared_user(each) for each in self.caches.users_of(key)],
            record=found[0].status.auth if found is not None else None,
            now=self.clock.now(),
        )
        if found is None or found[0].metadata.is_deleting:
            self.memory.unsettle(key)
            self.turns.forget(key)
            self.failures.passed(key)
            self.reporter.forget(key)
            made.report_all(report.no_cluster(key.name))
            return Result()
        cluster, caches = found
        if not cluster.status.cluster_id:
            made.report_all(report.waiting("the cluster has not been created yet"))
            return Result(requeue_after=POLL if made.declared else None)
        recorded = cluster.status.tls
        if recorded is not None and (recorded.client_secret or recorded.client_issuer) is not None:
            made.report_all(report.issues_no_certificates())
            return Result()
        members = self.caches.members(cluster.metadata, caches)
        try:
            return made.over(cluster, caches.resource, members)
        except (AuthRequired, PermissionDenied):
            made.report_all(report.refused())
            return Result(requeue_after=POLL if made.declared else None)
        except NotLeading:
            raise
        except OperatorError as error:
            message = self.failures.failed(key, error)
            if message and error is not failure_of(made.users):
                made.report_all(report.waiting(message))
            if is_waited_for(error) or not is_served(cluster):
                return Result(requeue_after=POLL)
            raise


@dataclass(kw_only=True)
class _Pass:
    """One cluster, as it is seen in one pass."""

    reconciler: AuthReconciler
    key: Key
    objects: Objects
    roles: list[DeclaredRole]
    users: list[DeclaredUser]
    record: AuthRecord | None
    now: datetime

    @property
    def declared(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.roles or self.users or self.record)

    @property
    def _may_remove(self) -> bool:
        """Whether nothing exists of which not even the cluster is known."""
        return not self.reconciler.caches.has_unreadable(self.key.namespace)

    def over(self, cluster: ClusterResource, kind: Resource, members: Mapping[str, str]) -> Result:
        """A cluster that has served. Raises the errors of `Client` and `AuthClient`."""
        declared = (requested(each) for each in self._metadata())
        # Restored data may have the same revision, and authentication in another state.
        data = cluster.metadata.uid, cluster.status.cluster_id
        inputs = (*data, cluster.status.tls, self._may_remove, self.record, *declared)
        revision = etcd.revision(members)
        known = self.reconciler.memory.still_settled(self.key, inputs, revision, self.now)
        if known is not None:
            return self._rest(known)
        if not self.declared and (revision is None or revision <= 1):
            # It never had a user or a role; or no page can be read yet, so that this is not known.
            return Result(requeue_after=UNDECLARED_POLL if revision is None else None)
        if not is_served(cluster):
            raise Unavailable("no quorum answers: etcd answers no question about users")
        settled_at = self.reconciler.memory.unsettle(self.key)
        access = self.reconciler.reach(cluster, kind, members)
        with closing(access.channels) as channels:
            turn = self.reconciler.turns.begin(self.key, self.users, inputs, revision, settled_at)
            connect_all(turn.users, self.key, access.authority, self.objects, self.now, turn.is_over)
            found = etcd.read(channels, members, cluster.status.cluster_id, self.reconciler.on_call)
            self._check_passwords(found, turn.proven)
            made = self._plan(cluster.metadata, found)
            if made is None:
                return Result(requeue_after=BEHIND)
            passwords = {name: value for user in self.users for name, value in user.passwords.items()}
            etcd.carry_out(found.client, made.changes, passwords, self.objects.require_leadership)
            for user in self.users:
                user.publish(self.objects)
            has_changed = self._switch(cluster, found, made, access.authority) or bool(made.changes)
            revision = found.client.auth_status().revision if has_changed else found.status.revision
        if not self.declared:
            made = replace(made, undeclared_users=(), undeclared_roles=())  # nobody has asked for users
        news = tuple(each for each in made.changes if _is_news(each, found))
        self.reconciler.reporter.changed(cluster, replace(made, changes=news), self.roles, self.users)
        self._report(made)
        failure = failure_of(self.users)
        is_left = self.reconciler.turns.end(self.key, turn, revision) or failure is not None
        settled = Settled(inputs=inputs, revision=revision, until=self.now if is_left else self._until())
        self.reconciler.memory.settle(self.key, settled)
        if failure is not None:
            raise failure
        self.reconciler.failures.passed(self.key)
        return self._rest(settled)

    def _rest(self, settled: Settled) -> Result:
        if not self.declared and self._may_remove:
            return Result()
        left = POLL if settled.until is None else (settled.until - self.now).total_seconds()
        return Result(requeue_after=max(0.01, min(POLL, left)))

    def _check_passwords(self, found: etcd.Found, settled_at: int | None) -> None:
        """While etcd requires no user, it checks no password: any change may have been one of a password."""
        for user in self.users:
            if user.connection is None or user.is_held:
                continue
            is_doubtful = user.connection.is_new or settled_at != found.status.revision
            for name, password in user.connection.passwords.items():
                if name not in found.store.users:
                    continue
                if found.status.is_enabled:
                    is_doubtful = not etcd.has_password(found.client, name, password)
                if is_doubtful:
                    user.unproven.add(name)

    def _plan(self, cluster: ObjectMeta, found: etcd.Found) -> AuthPlan | None:
        """What to change; None if caches are behind what exists."""
        state = AuthState(
            uid=cluster.uid,
            store=found.store,
            roles=tuple(each for role in self.roles for each in role.desired()),
            users=tuple(each for user in self.users for each in user.desired()),
            held_roles=frozenset(role.name for role in self.roles if role.spec is None),
            held_users=held_users(self.users),
            may_remove=self._may_remove,
        )
        made = plan(state)
        removes = any(isinstance(each, (DeleteUser, DeleteRole)) for each in made.changes)
        if removes and not self.reconciler.caches.are_all(self._metadata(), self.objects):
            return None
        return made

    def _switch(
        self, cluster: ClusterResource, found: etcd.Found, made: AuthPlan, authority: ClientAuthority | None
    ) -> bool:
        """Whether users are required, once there are some; whether anything was changed."""
        awaited = list(not_ready(self.roles, self.users, made))
        if not self._may_remove:
            awaited.append("an EtcdRole or EtcdUser that cannot be read")
        state = AuthSwitch(
            wanted=self.record.enabled if self.record is not None else None,
            is_enabled=found.status.is_enabled,
            requires_certificates=asks_for_certificates(cluster),
            root_roles=found.store.users.get(ROOT),
            not_ready=tuple(awaited),
        )
        names = [each.name for user in self.users for each in user.desired() if not each.is_retiring]

        def before(step: AuthStep) -> None:
            self.objects.require_leadership()
            if step is AuthStep.ENABLE:
                self.reconciler.reporter.enabling(cluster, sorted({*names, *made.undeclared_users}))

        taken, held = switch(found.client, state, before)
        self.reconciler.reporter.switched(cluster, taken, held, was_enabled=found.status.is_enabled)
        if state.wanted and authority is not None and not held:
            self.objects.remove_of(cluster.metadata.uid, resources.SECRETS, authority.shared)
        return bool(taken)

    def _until(self) -> datetime | None:
        """When time alone changes something."""
        rotations = [each.connection.rotation for each in self.users if each.connection and not each.is_held]
        moments = [each for made in rotations for each in (made.until, made.due) if each is not None]
        if rotations or any(user.is_later for user in self.users):
            moments.append(self.now + SECRETS_CHECKED)
        if any(user.spec is not None and user.is_held and not user.is_later for user in self.users):
            moments.append(self.now + HELD)
        return min(moments, default=None)

    def report_all(self, verdict: Verdict) -> None:
        """The same for all that are valid."""
        declared: list[Declared] = [*self.roles, *self.users]
        for each in declared:
            each.verdict = each.verdict or verdict
        self._report(AuthPlan())

    def _report(self, made: AuthPlan) -> None:
        self.reconciler.reporter.write(self.objects, made, self.roles, self.users, self.now)

    def _metadata(self) -> list[ObjectMeta]:
        return [*(each.role.metadata for each in self.roles), *(each.user.metadata for each in self.users)]


def _is_news(change: Change, found: etcd.Found) -> bool:
    """Whether it is reported: not that a password is set which nobody may have changed."""
    return found.status.is_enabled or not isinstance(change, SetPassword)
