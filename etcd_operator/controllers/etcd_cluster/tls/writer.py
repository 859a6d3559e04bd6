"""The Secrets and the ConfigMap with the certificates of a cluster: written, published, deleted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from etcd_operator.api.meta import RawObject
from etcd_operator.api.shared_keys import LOADED_ANNOTATION
from etcd_operator.api.tls import PLAIN
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    AlterAuthorities,
    CreateAuthorities,
    DropCertificates,
    KeepCertificates,
    PublishAuthority,
    RequestCertificates,
    TlsAction,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.facts import reads_bundle
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import SIDES, Side, SuppliedFacts, Use
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.serving import WITHOUT_TLS
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, Unseen
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests import tls
from etcd_operator.controllers.etcd_cluster.manifests.issued import CHANGES, NO_OFFERS
from etcd_operator.controllers.etcd_cluster.manifests.loaded import loaded_text
from etcd_operator.controllers.etcd_cluster.manifests.tls import secret_name
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.controllers.etcd_cluster.tls.authorities import AuthorityStore
from etcd_operator.controllers.etcd_cluster.tls.holdings import Holdings, sides_of
from etcd_operator.controllers.etcd_cluster.tls.issuers import NONE, Found, Issuers
from etcd_operator.controllers.shared.failures import reason_of
from etcd_operator.controllers.shared.manifests.secret import encoded, replacement
from etcd_operator.errors import Conflict, NotLeading, OperatorError, RetryableError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import ConfigMap, Secret
from etcd_operator.pki.description import Description
from etcd_operator.pki.errors import BadCertificate

UNWRITTEN_SECONDS = 30.0  # until it is tried again to write an object
BUNDLE = ""
"""In the place of a holder, for the bundle."""

REQUESTS = "cert-manager"
"""In the place of a holder, for what cert-manager is asked for."""


@dataclass(eq=False, kw_only=True)
class CertificateWriter:
    """Writes the certificates of the clusters of one API group, and what their pods record of them."""

    authorities: AuthorityStore
    dialect: Dialect[Any]
    clock: Clock
    holdings: Holdings
    issuers: Issuers
    # of each cluster, by holder (none: the bundle for clients), why that could not be written, and until when
    # it is not tried again
    _unwritten: dict[Key, dict[str, tuple[Unseen, float]]] = field(default_factory=dict)

    def act(self, scope: Scope, action: TlsAction) -> None:
        """Write what is missing."""
        match action:
            case CreateAuthorities():
                offers = self.issued(scope.desired).offers
                self.authorities.create(scope.desired, scope.objects, offers)
            case RequestCertificates():
                what, zone = "cert-manager cannot be asked for certificates", self._zone(scope.desired)
                self._try(scope, REQUESTS, what, lambda: self.issuers.request(scope, zone))
            case KeepCertificates():
                what = f"the certificates of {action.name} cannot be written"
                self._try(scope, action.name, what, lambda: self.keep(scope, action.name))
            case PublishAuthority():
                what = "the CAs cannot be published for clients"
                self._try(scope, BUNDLE, what, lambda: self._publish(scope))
            case AlterAuthorities():
                # No other change of a CA, as of one of the operator, waits for what cert-manager has.
                offers = self.issued(scope.desired).offers if action.change in CHANGES else NO_OFFERS
                self.authorities.alter(scope.desired, action, scope.objects, offers)
            case DropCertificates():
                self._drop(scope, *action.members)
            case _:
                assert_never(action)

    def _try(self, scope: Scope, holder: str, what: str, write: Callable[[], object]) -> None:
        """An object that cannot be written holds up nothing else. Raises Conflict and NotLeading."""
        failures = self._unwritten.setdefault(scope.desired.key, {})
        try:
            write()
        except (Conflict, NotLeading):
            raise
        except OperatorError as error:
            failure = Unseen(reason=reason_of(error), message=f"{what}: {error}")
            failures[holder] = failure, self.clock.monotonic() + UNWRITTEN_SECONDS
        else:
            failures.pop(holder, None)

    def keep(self, scope: Scope, member: str) -> RawObject:
        """Write the Secret of a member, or of clients, if it is not current; the annotation of its next pod.

        Raises Conflict without the CAs on record, BadCertificate, ClockSkew, and the errors of `Objects`.
        """
        desired = scope.desired
        is_plain = desired.secured == PLAIN
        annotation = {} if is_plain else {LOADED_ANNOTATION: loaded_text(self._trusted(desired))}
        if not sides_of(desired):
            return annotation
        made = self.authorities.recorded(desired)
        leafs = self.holdings.leafs(desired, made, member)
        found = self.holdings.found(member, scope.objects)
        if tls.is_current(made, self.holdings.note(desired, member, leafs, found), self.clock.now()):
            return annotation
        self.holdings.outdate(desired.key, member)
        body = tls.secret(desired, leafs, member, self.authorities.issuing_time())
        if found is None or found.metadata.controller_uid != desired.uid:
            scope.create(resources.SECRETS, body, "SecretCreated")
            return annotation
        scope.objects.merge(resources.SECRETS, found.metadata, replacement(found.data, body))
        scope.report("CertificatesRenewed", f"renewed the certificates of {member}")
        return annotation

    def _drop(self, scope: Scope, *members: str) -> None:
        """Delete the Secrets of members, and of clients. The ConfigMap is left: it has no secrets."""
        desired = scope.desired
        for name in (*map(secret_name, members), tls.shared_secret(desired.name)):
            scope.objects.remove_of(desired.uid, resources.SECRETS, name)
        self.holdings.forget(desired.key)

    def _publish(self, scope: Scope) -> None:
        desired, objects = scope.desired, scope.objects
        made = self.authorities.recorded(desired)
        body = tls.ca_config_map(desired, made)
        name = body["metadata"]["name"]
        self.holdings.outdate(desired.key)
        found = objects.find(resources.CONFIG_MAPS, name, ConfigMap)
        if found is None or found.metadata.controller_uid != desired.uid:
            scope.create(resources.CONFIG_MAPS, body, "ConfigMapCreated")
        else:
            objects.merge(resources.CONFIG_MAPS, found.metadata, {"data": body["data"]})
        holder = tls.clients_of(desired)
        secret = objects.find(resources.SECRETS, secret_name(holder), Secret) if holder else None
        if secret is not None and secret.metadata.controller_uid == desired.uid:
            self.holdings.outdate(desired.key, holder)
            data = encoded({"ca.crt": made.client.bundle})
            objects.merge(resources.SECRETS, secret.metadata, {"data": data})

    def failures(self, desired: DesiredCluster) -> dict[str, Unseen]:
        """By holder, why its Secret could not be written just now."""
        holders = self.holdings.holders(desired.key)
        found = {holder: self._failure(desired, holder) for holder in holders}
        return {holder: failure for holder, failure in found.items() if failure is not None}

    def unpublished(self, desired: DesiredCluster) -> Unseen | None:
        """Why the bundle for clients could not be written just now."""
        return self._failure(desired, BUNDLE)

    def unrequested(self, desired: DesiredCluster) -> Unseen | None:
        """Why cert-manager could not be asked for certificates just now."""
        return self._failure(desired, REQUESTS)

    def _failure(self, desired: DesiredCluster, holder: str) -> Unseen | None:
        known = self._unwritten.get(desired.key, {}).get(holder)
        return known[0] if known is not None and self.clock.monotonic() < known[1] else None

    def loaded(self, state: ClusterState, name: str) -> RawObject:
        """The annotation with the CAs that a member's etcd is about to load when it starts again in its pod.

        Of a side that the member uses, only if a handshake has shown that the pod has the files. Clients whom
        it serves without TLS see none, and peers to which it has no certificate: it cannot have other CAs for
        them, because none is changed while nothing uses it. Peers for whom it only listens without TLS see
        none either, see `reads_bundle`. Nothing shows what a pod has of Secrets of the user, but volumes
        follow these in time. Raises as `AuthorityStore.recorded`.
        """
        if state.desired.secured == PLAIN:
            return {}
        member = state.by_name.get(name)
        pod = member.pod if member is not None else None
        known = set(SIDES) if name in state.tls.proven else set()
        if pod is not None and pod.serving == WITHOUT_TLS:
            known.add("client")
        dialing = dict(state.tls.sides).get("peer") if member is not None and member.peers == "Dial" else None
        is_read = dialing is not None and reads_bundle(dialing, name)
        if is_read or (member is not None and member.peers == "Disabled"):
            known.add("peer")
        followed = {use: each.cas for use, each in state.tls.supplied if each.is_settled}
        loads = {side: cas for side, cas in self._issued(state.desired).items() if side in known}
        loads |= {side: followed[side] for side in SIDES if side in followed}
        if not loads:
            return {}
        return {LOADED_ANNOTATION: loaded_text(loads, pod.loaded if pod is not None else "")}

    def issued(self, desired: DesiredCluster) -> Found:
        """What cert-manager has issued. Raises as `Issuers.found`."""
        if desired.secured.peer_issuer is None and desired.secured.client_issuer is None:
            return NONE  # the zone of names need not be read
        return self.issuers.found(desired, self._zone(desired))

    def _zone(self, desired: DesiredCluster) -> str:
        """The domain of names in certificates. Raises BadCertificate, and the errors of `Client`."""
        made = self.authorities.get(desired)
        return made.zone if made is not None else self.authorities.zone

    def supplied(self, desired: DesiredCluster) -> Mapping[Use, SuppliedFacts]:
        """What the Secrets of the user have. Raises as `SuppliedSecrets.of`."""
        return self.authorities.supplied.of(desired, self.dialect.member_host(desired, "*"))

    def _issued(self, desired: DesiredCluster) -> dict[Side, tuple[Description, ...]]:
        """The CAs of the operator that a member loads now. Raises as `AuthorityStore.recorded`."""
        issuing = sides_of(desired)
        made = self.authorities.recorded(desired) if issuing else None
        return {side: made.of(side).record.trusted for side in issuing if made is not None}

    def _trusted(self, desired: DesiredCluster) -> dict[Side, tuple[Description, ...]]:
        """All CAs that the next pod of a member loads, as far as is known. Raises as `_issued`."""
        try:
            supplied = self.supplied(desired)
        except (BadCertificate, RetryableError):
            supplied = {}  # no repair waits for a Secret of the user
        trusted = {side: supplied[side].cas for side in SIDES if side in supplied}
        return {**trusted, **self._issued(desired)}

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self.issuers.forget(key)
        self._unwritten.pop(key, None)
