"""The CAs of clusters, in the namespace of the operator, and the credentials that the operator dials with.

Promises:
- each cluster has one Secret, by its UID, which is created as a whole, and changed only from a state that
  was read: whatever two operators, lost replies and crashes do, whoever reads it finds the same CAs;
- the certificate of the operator is only in memory, and one for each cluster: no other cluster accepts it.

A Secret is read when it is needed, not watched: a watch would be sent all Secrets of the namespace.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import structlog

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.tls import MemberTls
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import AlterAuthorities
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Side
from etcd_operator.controllers.etcd_cluster.decide.certificates.steps import clock_problem
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.manifests.authorities import (
    Authorities,
    altered,
    authorities_name,
    authorities_of,
    authorities_secret,
    new_authorities,
    side_change,
)
from etcd_operator.controllers.etcd_cluster.manifests.issued import OPERATOR, Offers
from etcd_operator.controllers.etcd_cluster.manifests.tls import USER
from etcd_operator.controllers.etcd_cluster.tls.dialing import LASTS, dialing, is_usable
from etcd_operator.controllers.etcd_cluster.tls.leftovers import Leftovers
from etcd_operator.controllers.etcd_cluster.tls.supplied import Owner, SuppliedSecrets
from etcd_operator.controllers.shared.manifests.etcd_access import EtcdCredentials
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.secret_reads import KEPT_SECONDS, Reads
from etcd_operator.errors import AlreadyExists, Conflict, NotFound, OperatorError, Unavailable
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.views import Secret, Written
from etcd_operator.pki.authority import KeyPair, issue
from etcd_operator.pki.errors import BadCertificate, ClockSkew
from etcd_operator.pki.profiles import client as client_leaf
from etcd_operator.pods.http_client import Trust

log = structlog.get_logger()


@dataclass(slots=True)
class _Known:
    made: Authorities = field(repr=False)
    at: float  # monotonic, when it was read
    # with which the operator dials the ports of each side, and when these are renewed
    credentials: dict[Side, tuple[TlsCredentials, datetime]] = field(default_factory=dict, repr=False)


@dataclass(eq=False, kw_only=True)
class AuthorityStore:
    """The CAs of all clusters."""

    client: Client
    clock: Clock
    namespace: str  # of the operator
    zone: str  # of the names of Services, for CAs that are made
    _known: dict[str, _Known] = field(default_factory=dict, repr=False)
    _uids: dict[Key, str] = field(default_factory=dict)
    _lost: dict[str, Authorities] = field(default_factory=dict, repr=False)  # deleted while they were known
    reads: Reads = field(init=False)
    supplied: SuppliedSecrets = field(init=False)
    leftovers: Leftovers = field(init=False)

    def __post_init__(self) -> None:
        self.reads = Reads(self.clock)
        self.supplied = SuppliedSecrets(client=self.client, clock=self.clock, reads=self.reads)
        self.leftovers = Leftovers(self.client, self.namespace)

    def get(self, cluster: Owner) -> Authorities | None:
        """Its CAs; None if their Secret does not exist. Raises BadCertificate, and the errors of `Client`."""
        known, now = self._known.get(cluster.uid), self.clock.monotonic()
        if known is not None and now - known.at < KEPT_SECONDS:
            return known.made
        try:
            found = self._read(cluster)
        except OperatorError:  # also 403: an API server that starts may refuse what it allows later
            if known is None:
                raise
            return known.made
        return self._note(cluster, found) if found is not None else None

    def get_live(self, cluster: Owner) -> Authorities | None:
        """The same, read again now: CAs whose Secret was deleted meanwhile must not be recorded.

        A read that fails raises its error, also where the CAs are known.
        """
        found = self._read(cluster)
        return self._note(cluster, found) if found is not None else None

    def _read(self, cluster: Owner) -> Secret | None:
        """Their Secret; None if it does not exist. Raises the errors of `Client`."""
        try:
            return self.reads.read(
                partial(self.client.get, resources.SECRETS, self._key(cluster.uid), Secret)
            )
        except NotFound:
            known = self._known.pop(cluster.uid, None)
            if known is not None:
                self._lost[cluster.uid] = known.made
            return None

    def _note(self, cluster: Owner, found: Secret) -> Authorities:
        """Remember what was read. Raises BadCertificate."""
        known, now = self._known.get(cluster.uid), self.clock.monotonic()
        try:
            made = authorities_of(found.data, found.metadata.resource_version)
        except BadCertificate as error:
            name = authorities_name(cluster.uid)
            raise BadCertificate(f"Secret {name} in {self.namespace} cannot be used: {error}") from None
        if known is not None and known.made == made:
            known.at = now
        else:
            self._known[cluster.uid] = _Known(made, now)
        self._uids[cluster.key] = cluster.uid
        return made

    def recorded(self, cluster: DesiredCluster) -> Authorities:
        """Its CAs, if they are those on record: nothing is issued by others. Raises Conflict if they are not.

        Also raises BadCertificate, and the errors of `Client`.
        """
        made = self.get(cluster)
        missing = self.missing(cluster, made)
        if made is None or missing:
            raise Conflict(missing or "the CAs of this cluster are not there yet: trying again")
        return made

    def missing(self, cluster: DesiredCluster, made: Authorities | None) -> str:
        """Why the CAs are not those on record; empty if they are, or none is used yet."""
        recorded = cluster.persisted.tls
        if recorded is None or not cluster.persisted.has_begun or not any(recorded.of_members.issued):
            return ""
        if made is not None:
            pairs = ((recorded.peer_ca, made.peer), (recorded.client_ca, made.client))
            if all(not key_id or found.is_after(key_id) for key_id, found in pairs):
                return ""
        name = authorities_name(cluster.uid)
        return (
            f"Secret {name} in the namespace {self.namespace} "
            f"{'has other CAs than this cluster uses, or earlier ones' if made else 'is missing'}: "
            "restore it from a backup; nothing is changed"
        )

    def create(self, cluster: DesiredCluster, objects: Objects, offers: Offers) -> None:
        """Make the CAs, unless somebody has made them already. objects: to write only while leading."""
        made = new_authorities(cluster, self.issuing_time(), self.zone, offers)
        body = authorities_secret(cluster, self.namespace, made)
        objects.require_leadership()
        with suppress(AlreadyExists):
            self.client.create(resources.SECRETS, self.namespace, body, Written)

    def restore(self, cluster: DesiredCluster, objects: Objects) -> Authorities | None:
        """Make a Secret again that somebody has deleted, if this process still knows its content.

        None if this process does not know it, or only an earlier state. Raises the errors of `Client`.
        """
        made = self._lost.pop(cluster.uid, None)
        if made is None or self.missing(cluster, made):
            return None
        objects.require_leadership()
        body = authorities_secret(cluster, self.namespace, made)
        with suppress(AlreadyExists):
            self.client.create(resources.SECRETS, self.namespace, body, Written)
            log.warning("authorities_restored", cluster=str(cluster.key))
        return self.get(cluster)

    def alter(
        self, cluster: DesiredCluster, action: AlterAuthorities, objects: Objects, offers: Offers
    ) -> None:
        """Change one side, if the Secret is as it was when that was decided. Raises Conflict if not."""
        side, now = action.side, self.issuing_time()
        known = self._known.pop(cluster.uid, None)
        if known is None or known.made.version != action.version:
            raise Conflict("the CAs were changed since they were read: trying again")
        found, offered = known.made.of(side), offers.get(side, ())
        made = altered(cluster, side, found, action.change, now, action.request, offered)
        objects.require_leadership()
        self._note(
            cluster,
            self.client.patch(
                resources.SECRETS,
                self._key(cluster.uid),
                side_change(side, made, action.version),
                Secret,
                kind=PatchKind.MERGE,
            ),
        )
        log.info("authorities_changed", cluster=str(cluster.key), side=side, change=action.change)

    def issuing_time(self) -> datetime:
        """The time at which certificates are issued. Raises ClockSkew while the clock is off."""
        problem = self.clock_problem()
        if problem:
            raise ClockSkew(problem)
        return self.clock.now()

    def clock_problem(self) -> str:
        """Why no certificate is issued now; empty if any is."""
        return clock_problem(self.client.clock_offset())

    def credentials(self, cluster: DesiredCluster, side: Side = "client") -> TlsCredentials | None:
        """With which the operator dials the members; the same value until they are renewed.

        Without a certificate while the CA has expired: it is renewed first. Raises ClockSkew if none may be
        issued, and the one that is there is not valid.
        """
        if side == "client" and cluster.secured.client_secret is not None:
            # Before the first member exists there is nothing to dial.
            is_needed = cluster.persisted.has_begun
            return self.supplied.credentials(cluster, cluster.secured) if is_needed else None
        made, now = self.get(cluster), self.clock.now()
        known = self._known.get(cluster.uid)
        if made is None or known is None:
            return None
        found = known.credentials.get(side)
        if found is not None and now < found[1] <= now + LASTS:  # not if a clock that was ahead is set back
            return found[0]
        if found is not None and self.clock_problem() and is_usable(found[0], now):
            return found[0]
        found = known.credentials[side] = dialing(made.of(side), side, self.issuing_time())
        return found[0]

    def for_job(self, cluster: ObjectMeta, secured: MemberTls) -> EtcdCredentials:
        """With which one Job reaches the members: as root, because only root may take snapshots.

        With certificates of the user, or of cert-manager, it is the one with which the operator dials. Raises
        Unavailable without CAs, BadCertificate, ClockSkew, and the errors of `Client`.
        """
        if secured.client_secret is not None:
            found = self.supplied.credentials(cluster, secured)
            has_own = found.certificate is not None and found.key is not None
            own = KeyPair(found.certificate or b"", found.key or b"") if has_own else None
            return EtcdCredentials(ca=found.ca, pair=own)
        made = self._required(cluster)
        pair = made.client.leafs.get(OPERATOR) if secured.client_cert_auth else None
        if secured.client_cert_auth and pair is None:
            pair = issue(made.client.issuer, client_leaf(USER), now=self.issuing_time(), duration=LASTS)
        return EtcdCredentials(ca=made.client.bundle, pair=pair)

    def trust(self, cluster: DesiredCluster, name: str) -> Trust | None:
        """How a program of ours in a pod of this cluster is verified; None where it serves plain HTTP.

        Raises Conflict without the CAs on record, BadCertificate, and the errors of `Client`.
        """
        if not cluster.secured.is_dialed:
            return None
        if cluster.secured.client_secret is not None:
            return Trust(ca=self.supplied.credentials(cluster, cluster.secured).ca, name=name)
        return Trust(ca=self.recorded(cluster).client.bundle, name=name)

    def _required(self, cluster: Owner) -> Authorities:
        made = self.get(cluster)
        if made is None:
            raise Unavailable(f"Secret {authorities_name(cluster.uid)} in {self.namespace} is missing")
        return made

    def forget(self, key: Key, objects: Objects) -> bool:
        """The cluster is deleted: delete its CAs, unless a member still uses them. True if they are left."""
        self.supplied.forget(key)
        uid = self._uids.get(key, "")
        self._known.pop(uid, None)
        self._lost.pop(uid, None)
        try:
            is_gone = not uid or self.leftovers.drop(self._key(uid), objects)
            self.leftovers.sweep(objects)
        except OperatorError:
            is_gone = not uid
        if is_gone:
            self._uids.pop(key, None)
        return not is_gone

    def _key(self, uid: str) -> Key:
        return Key(self.namespace, authorities_name(uid))
