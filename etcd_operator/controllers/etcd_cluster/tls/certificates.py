"""The certificates of members, and what the operator knows of a cluster's TLS in a pass."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from etcd_operator.api.cluster_spec import PLAIN
from etcd_operator.api.meta import RawObject
from etcd_operator.api.shared_keys import LOADED_ANNOTATION
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AlterAuthorities,
    CreateAuthorities,
    DropCertificates,
    KeepCertificates,
    PublishAuthority,
    TlsAction,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    SIDES,
    ClientLeaf,
    Side,
    Situation,
    Use,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, members_of
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.state import (
    NO_TLS,
    ClusterState,
    TlsFacts,
    Unseen,
)
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests import tls
from etcd_operator.controllers.etcd_cluster.manifests.authorities import (
    Authorities,
    requested,
)
from etcd_operator.controllers.etcd_cluster.manifests.loaded import loaded_text
from etcd_operator.controllers.etcd_cluster.manifests.tls import secret_name
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.controllers.etcd_cluster.observe.slots import Access
from etcd_operator.controllers.etcd_cluster.tls.authorities import AuthorityStore, facts
from etcd_operator.controllers.etcd_cluster.tls.handshakes import Handshakes, side_shown
from etcd_operator.controllers.etcd_cluster.tls.holdings import Holdings, sides_of
from etcd_operator.controllers.etcd_cluster.tls.secured import UNSECURED, Secured
from etcd_operator.controllers.etcd_cluster.tls.seen import Seen, made_with_tls
from etcd_operator.controllers.etcd_cluster.tls.supplied import facts_of, unloaded
from etcd_operator.controllers.shared.failures import reason_of
from etcd_operator.controllers.shared.manifests.secret import encoded, replacement
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Conflict, Forbidden, NotLeading, OperatorError, RetryableError, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.views import ConfigMap, Secret
from etcd_operator.pki.description import Description
from etcd_operator.pki.errors import BadCertificate, ClockSkew
from etcd_operator.pki.secrets import Supplied

INVALID, UNREAD = "TLSInvalid", "TLSUnreadable"
UNWRITTEN_SECONDS = 30.0  # until it is tried again to write a Secret


@dataclass(eq=False, kw_only=True)
class Certificates:
    """The certificates of the clusters of one API group, and what each pass knows of them."""

    authorities: AuthorityStore
    dialect: Dialect[Any]
    clock: Clock
    writes: Writes
    holdings: Holdings
    handshakes: Handshakes
    # by Secret: why it could not be written, and until when that is not tried again
    _unwritten: dict[Key, tuple[Unseen, float]] = field(default_factory=dict)

    def secured(
        self, desired: DesiredCluster, endpoints: Mapping[str, str], members: Iterable[Member]
    ) -> Secured:
        """How members are reached. endpoints: where each member serves clients, as `host:port` by name.

        Raises the errors of `Client` that are retryable.
        """
        if desired.secured == PLAIN and not sides_of(desired):
            having = made_with_tls(members) if desired.persisted.has_begun else []
            return self._unrecorded(desired, having) if having else self._unused(desired)
        try:
            made = self._authorities(desired) if sides_of(desired) else None
            supplied = {} if desired.persisted.has_begun else self._supplied(desired)
            credentials = self.authorities.credentials(desired) if desired.secured.is_dialed else None
        except TerminalError as error:
            reason = _reason(error, INVALID)
            return Secured(unseen=Unseen(reason=reason, message=str(error), is_asked=False))
        known = facts(made) if sides_of(desired) else self._unused(desired).facts
        found = replace(known, supplied=facts_of(supplied, self.clock.now()))
        missing = self.authorities.missing(desired, made)
        if missing:
            return Secured(unseen=Unseen(reason=INVALID, message=missing, is_asked=False))
        names = {at: self.dialect.member_host(desired, name) for name, at in endpoints.items()}
        return Secured(facts=found, access=Access(credentials=credentials, names=names))

    def _authorities(self, desired: DesiredCluster) -> Authorities | None:
        get = self.authorities.get if desired.persisted.has_begun else self.authorities.get_live
        made = get(desired)
        if made is None and desired.persisted.has_begun and not desired.is_deleting:
            made = self.authorities.restore(desired, self.writes.of(desired.key))
        return made

    def _supplied(self, desired: DesiredCluster) -> Mapping[Use, Supplied]:
        return self.authorities.supplied.of(desired, self.dialect.member_host(desired, "*"))

    def _unused(self, desired: DesiredCluster) -> Secured:
        """For a cluster without TLS, to which it may be added: its CAs may be there from an earlier time."""
        _, issues_clients = members_of(desired.tls).issued
        if not issues_clients:
            return UNSECURED
        try:
            return Secured(facts=facts(self.authorities.get_live(desired)))
        except OperatorError as error:
            unkept = Unseen(reason=_reason(error, UNREAD), message=str(error))
            return Secured(facts=replace(NO_TLS, unkept=unkept))

    def _unrecorded(self, desired: DesiredCluster, names: list[str]) -> Secured:
        """For a cluster whose record of TLS is lost. No member is asked: that would be without TLS."""
        message = (
            f"{', '.join(names)} were made with TLS, and the status does not record it: an operator without "
            "TLS has written it. Nothing is changed, and no member is asked; see docs/tls.md"
        )
        unseen = Unseen(reason=INVALID, message=message, is_asked=False)
        try:
            made = self.authorities.get(desired) if desired.tls is not None else None
            found = [self.holdings.found(name, self.writes.of(desired.key)) for name in names]
        except TerminalError as error:
            return Secured(unseen=replace(unseen, message=f"{message}: {error}"))
        own = [
            each.data for each in found if each is not None and each.metadata.controller_uid == desired.uid
        ]
        has_own = desired.tls is None or not members_of(desired.tls).is_supplied
        is_theirs = has_own and bool(own) and made is not None and all(tls.is_issued(d, made) for d in own)
        known = replace(facts(made), is_unrecorded=True) if is_theirs else NO_TLS
        return Secured(facts=known, unseen=unseen)

    def facts(self, known: TlsFacts, desired: DesiredCluster, members: Iterable[Member]) -> TlsFacts:
        """`known`, with what is observed of each side, or why that is unknown. Raises nothing of `Client`."""
        if desired.problem or desired.persisted.tls is None or not desired.persisted.has_begun:
            return known
        found = known
        if known != NO_TLS and sides_of(desired):
            try:
                found = self._followed(known, desired, members)
            except (RetryableError, TerminalError) as error:
                found = replace(known, unkept=Unseen(reason=_reason(error, UNREAD), message=str(error)))
        try:
            supplied = self._supplied(desired)
            return replace(
                found, supplied=facts_of(supplied, self.clock.now()), unloaded=unloaded(supplied, members)
            )
        except (RetryableError, TerminalError) as error:
            invalid = INVALID if isinstance(error, BadCertificate) else UNREAD
            unkept = Unseen(reason=_reason(error, invalid), message=str(error))
            return replace(found, unkept=found.unkept or unkept)

    def _followed(self, known: TlsFacts, desired: DesiredCluster, members: Iterable[Member]) -> TlsFacts:
        made, objects = self.authorities.recorded(desired), self.writes.of(desired.key)
        there = [member for member in members if (member.pod or member.peer) and not member.is_terminating]
        seen = tuple(self._seen(desired, made, member, objects) for member in there)
        sides = ((side, self._situation(desired, made, side, seen, objects)) for side in sides_of(desired))
        return replace(
            known,
            sides=tuple(sides),
            unkept=next(iter(self._failures(desired).values()), None),
            proven=frozenset(each.member.name for each in seen if each.is_proven),
            refusals=tuple((each.member.name, each.refusal) for each in seen if each.refusal),
        )

    def _seen(self, desired: DesiredCluster, made: Authorities, member: Member, objects: Objects) -> Seen:
        held = self.holdings.of(desired, made, member.name, objects, is_starting=not member.is_running)
        side = side_shown(desired, member)
        if side is None:
            return Seen(member, held, side)
        expected, found = held[side].files, self.handshakes.last(desired, member)
        is_proven = (
            expected is not None and found.leaf is not None and found.leaf.serial == expected.leaf.serial
        )
        credentials = self.authorities.credentials(desired, side)
        if credentials is not None:
            host = self.dialect.member_host(desired, member.name)
            self.handshakes.ask(desired, member, host, credentials, is_known=is_proven)
        return Seen(member, held, side, found, is_proven=is_proven)

    def _situation(
        self,
        desired: DesiredCluster,
        made: Authorities,
        side: Side,
        seen: tuple[Seen, ...],
        objects: Objects,
    ) -> Situation:
        found = Situation(
            record=made.of(side).record,
            members=tuple(each.of(side) for each in seen),
            now=self.clock.now(),
            request=requested(desired, side),
            unwritten=frozenset(self._failures(desired)),
            offset=self.authorities.client.clock_offset(),
        )
        client = desired.tls.client if desired.tls is not None else None
        if side == "peer" or client is None:
            return found
        published = self.holdings.published(desired, objects)
        clients: tuple[ClientLeaf, ...] = ()
        holder = tls.clients_of(desired)
        if holder:
            held = self.holdings.of(desired, made, holder, objects, is_starting=False)["client"]
            is_usable = held.files is not None and not held.is_renamed
            leaf = held.files.leaf if held.files is not None and is_usable else None
            clients = (ClientLeaf(name=holder, leaf=leaf),)
            if held.files is not None and published == made.client.record.trusted:
                published = held.files.bundle  # what is beside the leaf follows last
        return replace(found, clients=clients, published=published, grace=tls.grace(client))

    def _failures(self, desired: DesiredCluster) -> dict[str, Unseen]:
        """By holder, why its Secret could not be written just now."""
        now, namespace = self.clock.monotonic(), desired.namespace
        holders = self.holdings.holders(desired.key)
        found = {holder: self._unwritten.get(Key(namespace, holder)) for holder in holders}
        return {holder: each[0] for holder, each in found.items() if each is not None and now < each[1]}

    def loaded(self, state: ClusterState, name: str) -> RawObject:
        """The annotation with the CAs that a member's etcd is about to load when it starts again in its pod.

        Empty if no handshake has shown that the pod has them. A pod without TLS, which shows nothing, cannot
        have others: no CA is changed while nothing uses it. Nothing shows what a pod has of Secrets of the
        user. Raises as `AuthorityStore.recorded`.
        """
        desired, member = state.desired, state.by_name.get(name)
        is_plain = member is not None and side_shown(desired, member) is None
        shows_nothing = is_plain and not desired.secured.is_supplied
        if desired.secured == PLAIN or not (name in state.tls.proven or shows_nothing):
            return {}
        pod = member.pod if member is not None and desired.secured.is_supplied else None
        return {LOADED_ANNOTATION: loaded_text(self._issued(desired), pod.loaded if pod is not None else "")}

    def _issued(self, desired: DesiredCluster) -> dict[Side, tuple[Description, ...]]:
        """The CAs of the operator that a member loads now. Raises as `AuthorityStore.recorded`."""
        issuing = sides_of(desired)
        made = self.authorities.recorded(desired) if issuing else None
        return {side: made.of(side).record.trusted for side in issuing if made is not None}

    def _trusted(self, desired: DesiredCluster) -> dict[Side, tuple[Description, ...]]:
        """All CAs that the next pod of a member loads, as far as is known. Raises as `_issued`."""
        try:
            supplied = self._supplied(desired)
        except (BadCertificate, RetryableError):
            supplied = {}  # no repair waits for a Secret of the user
        trusted = {side: supplied[side].cas for side in SIDES if side in supplied}
        return {**trusted, **self._issued(desired)}

    def act(self, scope: Scope, action: TlsAction) -> None:
        """Write what is missing."""
        match action:
            case CreateAuthorities():
                self.authorities.create(scope.desired, scope.objects)
            case KeepCertificates():
                self._try_to_keep(scope, action.name)
            case PublishAuthority():
                self._publish(scope)
            case AlterAuthorities():
                self.authorities.alter(scope.desired, action, scope.objects)
            case DropCertificates():
                self._drop(scope, *action.members)
            case _:
                assert_never(action)

    def _try_to_keep(self, scope: Scope, holder: str) -> None:
        """A Secret that cannot be written holds up nothing else. Raises Conflict and NotLeading."""
        key = Key(scope.desired.namespace, holder)
        try:
            self.keep(scope, holder)
        except (Conflict, NotLeading):
            raise
        except OperatorError as error:
            message = f"the certificates of {holder} cannot be written: {error}"
            failure = Unseen(reason=reason_of(error), message=message)
            self._unwritten[key] = failure, self.clock.monotonic() + UNWRITTEN_SECONDS
        else:
            self._unwritten.pop(key, None)

    def keep(self, scope: Scope, member: str) -> RawObject:
        """Write the Secret of a member, or of clients, if it is not current; the annotation of its next pod.

        Raises Conflict without the CAs on record, BadCertificate, ClockSkew, and the errors of `Objects`.
        """
        desired = scope.desired
        if desired.secured == PLAIN and not sides_of(desired):
            return {}
        annotation = {LOADED_ANNOTATION: loaded_text(self._trusted(desired))}
        if desired.secured == PLAIN:
            annotation = {}
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

    def forget(self, key: Key) -> bool:
        """The cluster is deleted. True if its CAs are left, because members still use them."""
        for holder in self.holdings.forget(key):
            self._unwritten.pop(Key(key.namespace, holder), None)
            self.handshakes.forget(Key(key.namespace, holder))
        return self.authorities.forget(key, self.writes.of(key))


def _reason(error: OperatorError, otherwise: str) -> str:
    return reason_of(error) if isinstance(error, (Forbidden, ClockSkew)) else otherwise
