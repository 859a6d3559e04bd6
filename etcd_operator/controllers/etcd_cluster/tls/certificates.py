"""The certificates of members, and what the operator knows of a cluster's TLS in a pass."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from etcd_operator.api.cluster_spec import PLAIN
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    CreateAuthorities,
    KeepCertificates,
    PublishAuthority,
    TlsAction,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.state import NO_TLS, TlsFacts, Unseen
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests import tls
from etcd_operator.controllers.etcd_cluster.manifests.tls import Authorities, Named
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.controllers.etcd_cluster.observe.slots import OPEN, Access
from etcd_operator.controllers.etcd_cluster.tls.authorities import KEPT_SECONDS, AuthorityStore, facts
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Forbidden, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import ConfigMap, Secret

SILENT_SECONDS = 5.0
"""The same for a member that does not answer: without its Secret, its pod does not start."""

INVALID = "TLSInvalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """What a pass may know before it probes: how members are reached, and why not."""

    access: Access = OPEN
    facts: TlsFacts = NO_TLS
    unseen: Unseen | None = None  # without credentials, every member would look silent


UNSECURED = Secured()


@dataclass(frozen=True, slots=True)
class _Current:
    """An object as it should be."""

    leafs: tuple[Named, ...]  # that it has
    until: datetime  # when it is read again


@dataclass(eq=False, kw_only=True)
class Certificates:
    """Those of the members of one API group."""

    authorities: AuthorityStore
    dialect: Dialect[Any]
    clock: Clock
    writes: Writes
    zone: str  # of the names of Services
    # what is known of each Secret and of the ConfigMap (under no name)
    _current: dict[Key, dict[str, _Current]] = field(default_factory=dict)

    def secured(self, desired: DesiredCluster, endpoints: Mapping[str, str]) -> Secured:
        """endpoints: where each member serves clients. Raises the errors of `Client` that are retryable."""
        if desired.secured == PLAIN:
            return UNSECURED
        try:
            made = self.authorities.get(desired)
            credentials = self.authorities.credentials(desired) if desired.secured.client else None
        except TerminalError as error:
            reason = "Forbidden" if isinstance(error, Forbidden) else INVALID
            return Secured(unseen=Unseen(reason=reason, message=str(error)))
        found = facts(made)
        missing = self.authorities.missing(desired, found)
        if missing:
            return Secured(unseen=Unseen(reason=INVALID, message=missing))
        names = {at: self.dialect.member_host(desired, name) for name, at in endpoints.items()}
        return Secured(facts=found, access=Access(credentials=credentials, names=names))

    def facts(self, known: TlsFacts, desired: DesiredCluster, members: Iterable[Member]) -> TlsFacts:
        """With the members whose certificates are missing or due. Raises the errors of `Client`."""
        is_unknown = known == NO_TLS or desired.tls is None
        if is_unknown or desired.persisted.tls is None or not desired.persisted.has_begun:
            return known
        made, objects = self.authorities.recorded(desired), self.writes.of(desired.key)
        holders = {
            member.name: member.answer is None and member.refusal is None
            for member in members
            if (member.pod or member.peer) and not member.is_terminating
        }
        if tls.clients_of(desired):
            holders[tls.clients_of(desired)] = False
        outdated = tuple(
            name
            for name, is_silent in holders.items()
            if not self._is_current(desired, made, name, objects, is_silent=is_silent)
        )
        return replace(known, outdated=outdated, is_published=self._is_published(desired, made, objects))

    def _is_current(
        self, desired: DesiredCluster, made: Authorities, holder: str, objects: Objects, *, is_silent: bool
    ) -> bool:
        known = self._current.get(desired.key, {}).get(holder)
        early = timedelta(seconds=KEPT_SECONDS - SILENT_SECONDS if is_silent else 0.0)
        is_recent = known is not None and self.clock.now() < known.until - early
        if is_recent and known is not None and known.leafs == self._leafs(desired, made, holder):
            return True
        found = objects.find(resources.SECRETS, tls.secret_name(holder), Secret)
        return self._note(desired, made, holder, found)

    def _note(self, desired: DesiredCluster, made: Authorities, member: str, found: Secret | None) -> bool:
        """Whether the Secret of a member is as it should be; until when that is not asked again."""
        until, leafs = None, self._leafs(desired, made, member)
        if found is not None and found.metadata.controller_uid == desired.uid:
            until = tls.due_at(found.data, leafs, self.clock.now())
        known = self._current.setdefault(desired.key, {})
        if until is None:
            known.pop(member, None)
            return False
        known[member] = _Current(leafs, min(until, self._later()))
        return True

    def _later(self) -> datetime:
        return self.clock.now() + timedelta(seconds=KEPT_SECONDS)

    def _is_published(self, desired: DesiredCluster, made: Authorities, objects: Objects) -> bool:
        if not desired.secured.client:
            return True
        known = self._current.setdefault(desired.key, {})
        if "" in known and self.clock.now() < known[""].until:
            return True
        found = objects.find(resources.CONFIG_MAPS, tls.ca_config_map_name(desired.name), ConfigMap)
        body = tls.ca_config_map(desired, made)
        is_ours = found is not None and found.metadata.controller_uid == desired.uid
        if found is None or not is_ours or found.data.get("ca.crt") != body["data"]["ca.crt"]:
            known.pop("", None)
            return False
        known[""] = _Current((), self._later())
        return True

    def act(self, scope: Scope, action: TlsAction) -> None:
        """Write what is missing."""
        match action:
            case CreateAuthorities():
                self.authorities.create(scope.desired, scope.objects)
            case KeepCertificates():
                self.keep(scope, action.name)
            case PublishAuthority():
                self._publish(scope)
            case _:
                assert_never(action)

    def keep(self, scope: Scope, member: str) -> None:
        """A current Secret, with the CAs on record. Raises Conflict if they are gone."""
        desired = scope.desired
        if desired.secured == PLAIN:
            return
        made = self.authorities.recorded(desired)
        name = tls.secret_name(member)
        found = scope.objects.find(resources.SECRETS, name, Secret)
        if self._note(desired, made, member, found):
            return
        leafs = self._leafs(desired, made, member)
        body = tls.secret(desired, leafs, member, self.clock.now())
        if found is None or found.metadata.controller_uid != desired.uid:
            scope.create(resources.SECRETS, body, "SecretCreated")
            return
        data = {**dict.fromkeys(found.data), **body["data"]}
        scope.objects.merge(resources.SECRETS, found.metadata, {"data": data})
        scope.report("CertificatesRenewed", f"renewed the certificates of {member}")

    def _publish(self, scope: Scope) -> None:
        desired = scope.desired
        body = tls.ca_config_map(desired, self.authorities.recorded(desired))
        name = body["metadata"]["name"]
        found = scope.objects.find(resources.CONFIG_MAPS, name, ConfigMap)
        if found is None or found.metadata.controller_uid != desired.uid:
            scope.create(resources.CONFIG_MAPS, body, "ConfigMapCreated")
        else:
            scope.objects.merge(resources.CONFIG_MAPS, found.metadata, {"data": body["data"]})

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self._current.pop(key, None)
        self.authorities.forget(key, self.writes.of(key))

    def _leafs(self, desired: DesiredCluster, made: Authorities, member: str) -> tuple[Named, ...]:
        if member == tls.clients_of(desired):
            return tls.client_leafs(desired, made)
        host = self.dialect.member_host(desired, member).removesuffix(f".{desired.namespace}.svc")
        return tls.leafs(desired, made, member, tls.member_names(desired, (host, member), self.zone))
