"""What the operator knows of a cluster's TLS in a pass: its CAs, and the certificates of members."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from etcd_operator.api.tls import PLAIN
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import ClientLeaf, Side, Situation
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, members_of
from etcd_operator.controllers.etcd_cluster.decide.first_start import CREATING
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.state import NO_TLS, TlsFacts, Unseen
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests import tls
from etcd_operator.controllers.etcd_cluster.manifests.authorities import (
    Authorities,
    ca_lasts,
    keeps,
    requested,
)
from etcd_operator.controllers.etcd_cluster.manifests.issued import OPERATOR, Offer
from etcd_operator.controllers.etcd_cluster.observe.slots import Access
from etcd_operator.controllers.etcd_cluster.tls.authorities import AuthorityStore
from etcd_operator.controllers.etcd_cluster.tls.handshakes import Handshakes, asked_side, uses_peers
from etcd_operator.controllers.etcd_cluster.tls.holdings import Holdings, sides_of
from etcd_operator.controllers.etcd_cluster.tls.secured import UNSECURED, Secured, facts
from etcd_operator.controllers.etcd_cluster.tls.seen import Seen, made_with_tls, may_lag
from etcd_operator.controllers.etcd_cluster.tls.supplied import unloaded
from etcd_operator.controllers.etcd_cluster.tls.writer import CertificateWriter
from etcd_operator.controllers.shared.decide.holds import TLS_INVALID
from etcd_operator.controllers.shared.failures import reason_of
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.errors import Forbidden, OperatorError, RetryableError, TerminalError
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.pki.errors import BadCertificate, ClockSkew

UNREAD = "TLSUnreadable"


@dataclass(eq=False, kw_only=True)
class Certificates:
    """What passes know of the certificates of the clusters of one API group."""

    authorities: AuthorityStore
    dialect: Dialect[Any]
    clock: Clock
    writes: Writes
    holdings: Holdings
    handshakes: Handshakes
    writer: CertificateWriter

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
            expired = self._expired(desired, made)
            if expired is not None:
                return Secured(facts=facts(made), unseen=expired)
            issuing = NO_TLS if desired.persisted.has_begun else self._issuing(desired, NO_TLS)
            supplied = {} if desired.persisted.has_begun else self.writer.supplied(desired)
            credentials = self.authorities.credentials(desired) if desired.secured.is_dialed else None
        except TerminalError as error:
            reason = _reason(error, TLS_INVALID)
            return Secured(unseen=Unseen(reason=reason, message=str(error), is_asked=False))
        known = facts(made) if sides_of(desired) else self._unused(desired).facts
        found = replace(
            known,
            supplied=tuple(supplied.items()),
            is_unrequested=issuing.is_unrequested,
            unissued=issuing.unissued,
        )
        missing = self.authorities.missing(desired, made)
        if missing:
            return Secured(unseen=Unseen(reason=TLS_INVALID, message=missing, is_asked=False))
        names = {at: self.dialect.member_host(desired, name) for name, at in endpoints.items()}
        return Secured(facts=found, access=Access(credentials=credentials, names=names))

    def _authorities(self, desired: DesiredCluster) -> Authorities | None:
        get = self.authorities.get if desired.persisted.has_begun else self.authorities.get_live
        made = get(desired)
        if made is None and desired.persisted.has_begun and not desired.is_deleting:
            made = self.authorities.restore(desired, self.writes.of(desired.key))
        return made

    def _issuing(self, desired: DesiredCluster, known: TlsFacts) -> TlsFacts:
        """With what cert-manager is to be asked for, and why it has not issued that. Raises as `issued`."""
        found, failed = self.writer.issued(desired), self.writer.unrequested(desired)
        reason = CREATING if found.is_pending else TLS_INVALID
        unissued = Unseen(reason=reason, message=found.problem) if found.problem else None
        is_unrequested = found.is_unrequested and failed is None
        return replace(known, is_unrequested=is_unrequested, unissued=failed or unissued)

    def _offers(self, desired: DesiredCluster, side: Side) -> tuple[Offer, ...]:
        """What cert-manager has issued for a side; nothing while that cannot be read."""
        try:
            return self.writer.issued(desired).offers.get(side, ())
        except (RetryableError, TerminalError):
            return ()

    def _expired(self, desired: DesiredCluster, made: Authorities | None) -> Unseen | None:
        """Why no member is asked: what cert-manager has issued for clients has expired. All would look lost.

        Once there is something else, `rules.certificates.renew` takes that.
        """
        if made is None or not desired.persisted.has_begun:
            return None
        first = next(iter(made.client.record.expired(self.clock.now())), None)
        if first is None:
            return None
        whose = "the operator connects to members" if first.file == OPERATOR else "members serve clients"
        end = timestamp(min(first.leaf.not_after, first.ca.not_after))
        message = (
            f"the certificate with which {whose} expired at {end}: no member is asked until cert-manager has "
            f"issued another one: {self._problem(desired)}"
        )
        return Unseen(reason=TLS_INVALID, message=message, is_asked=False)

    def _problem(self, desired: DesiredCluster) -> str:
        try:
            return self.writer.issued(desired).problem
        except (RetryableError, TerminalError) as error:
            return str(error)

    def _unused(self, desired: DesiredCluster) -> Secured:
        """For a cluster without TLS, to which it may be added: its CAs may be there from an earlier time."""
        if not any(members_of(desired.tls).issued):
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
        unseen = Unseen(reason=TLS_INVALID, message=message, is_asked=False)
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
            supplied = self.writer.supplied(desired)
            found = replace(found, supplied=tuple(supplied.items()), unloaded=unloaded(supplied, members))
        except (RetryableError, TerminalError) as error:
            found = replace(found, unkept=found.unkept or _unread(error))
        try:
            return self._issuing(desired, found)
        except (RetryableError, TerminalError) as error:
            return replace(found, unissued=_unread(error))  # members have what is on record all the same

    def _followed(self, known: TlsFacts, desired: DesiredCluster, members: Iterable[Member]) -> TlsFacts:
        made, objects = self.authorities.recorded(desired), self.writes.of(desired.key)
        there = [member for member in members if (member.pod or member.peer) and not member.is_terminating]
        seen = tuple(self._seen(desired, made, member, objects) for member in there)
        sides = ((side, self._situation(desired, made, side, seen, objects)) for side in sides_of(desired))
        return replace(
            known,
            sides=tuple(sides),
            unkept=next(iter(self.writer.failures(desired).values()), self.writer.unpublished(desired)),
            proven=frozenset(each.member.name for each in seen if each.is_proven),
            has_unused=self.holdings.has_unused(desired, objects),
            refusals=tuple((each.member.name, each.refusal) for each in seen if each.refusal),
        )

    def _seen(self, desired: DesiredCluster, made: Authorities, member: Member, objects: Objects) -> Seen:
        held = self.holdings.of(desired, made, member.name, objects, is_starting=not member.is_running)
        side = asked_side(desired, member)
        is_used = uses_peers(desired, member)
        if side is None:
            return Seen(member, held, side, uses_peers=is_used)
        expected, found = held[side].files, self.handshakes.last(desired, member)
        is_proven = (
            expected is not None and found.leaf is not None and found.leaf.serial == expected.leaf.serial
        )
        offset = self.authorities.client.clock_offset()
        if is_proven and may_lag(member, expected, self.clock.now(), offset):
            return Seen(member, held, side, uses_peers=is_used)
        credentials = self.authorities.credentials(desired, side)
        if credentials is not None:
            host = self.dialect.member_host(desired, member.name)
            self.handshakes.ask(desired, member, host, credentials, is_known=is_proven)
        return Seen(member, held, side, uses_peers=is_used, last=found, is_proven=is_proven)

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
            # No rotation begins while a member may listen for its peers without TLS, and presents no leaf.
            request=""
            if side == "peer" and not desired.secured.has_secure_peers
            else requested(desired, side),
            unwritten=frozenset(self.writer.failures(desired)),
            lasts=None if made.of(side).is_issued_elsewhere else ca_lasts(desired, side),
            offset=self.authorities.client.clock_offset(),
            offered=tuple(each.issued for each in self._offers(desired, side)),
        )
        client = desired.tls.client if desired.tls is not None else None
        if side == "peer" or client is None:
            return found
        published = self.holdings.published(desired, objects)
        clients: tuple[ClientLeaf, ...] = ()
        holder = tls.clients_of(desired)
        if holder:
            held = self.holdings.of(desired, made, holder, objects, is_starting=False)["client"]
            is_usable = held.files is not None and not held.is_unwanted
            leaf = held.files.leaf if held.files is not None and is_usable else None
            clients = (ClientLeaf(name=holder, leaf=leaf),)
            if held.files is not None and published == made.client.record.trusted:
                published = held.files.bundle  # what is beside the leaf follows last
        return replace(
            found,
            clients=clients,
            published=published,
            is_unpublished=self.writer.unpublished(desired) is not None,
            grace=tls.grace(client),
            keeps=keeps(desired, side),
        )

    def forget(self, key: Key) -> bool:
        """The cluster is deleted. True if its CAs are left, because members still use them."""
        self.writer.forget(key)
        for holder in self.holdings.forget(key):
            self.handshakes.forget(Key(key.namespace, holder))
        return self.authorities.forget(key, self.writes.of(key))


def _unread(error: OperatorError) -> Unseen:
    invalid = TLS_INVALID if isinstance(error, BadCertificate) else UNREAD
    return Unseen(reason=_reason(error, invalid), message=str(error))


def _reason(error: OperatorError, otherwise: str) -> str:
    return reason_of(error) if isinstance(error, (Forbidden, ClockSkew)) else otherwise
