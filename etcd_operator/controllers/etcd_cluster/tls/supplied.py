"""The Secrets of users with certificates: read now and then, and checked; members mount them.

One of them has the certificate with which the operator itself connects to members.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from etcd_operator.api.tls import MemberTls, UserSecret
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.certificates.facts import PATIENCE, prints
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    SIDES,
    SuppliedFacts,
    Trusted,
    Unloaded,
    Use,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.manifests.authorities import decoded
from etcd_operator.controllers.etcd_cluster.manifests.loaded import loaded_of
from etcd_operator.controllers.shared.secret_reads import KEPT_SECONDS, Reads
from etcd_operator.errors import NotFound, RetryableError
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.views import Secret
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.lifetimes import is_late
from etcd_operator.pki.profiles import Usage
from etcd_operator.pki.secrets import STANDARD, Demand, Prefix, Supplied, check_trust, read

_LEGACY: Mapping[Use, Prefix] = {"peer": "peer", "client": "server", "operator": "etcd-client"}
"""How the keys of the Secrets begin that CoreOS' operator had."""

_PURPOSES: Mapping[Use, str] = {"peer": "for peers", "client": "for clients", "operator": "of the operator"}

_USAGES: Mapping[Use, frozenset[Usage]] = {
    "peer": frozenset(Usage),
    "client": frozenset({Usage.SERVER}),
    "operator": frozenset({Usage.CLIENT}),
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A Secret, and what it must have."""

    secret: UserSecret
    use: Use
    prefixes: tuple[Prefix, ...]
    names: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """How it is named in messages."""
        return f"Secret {self.secret.name} ({_PURPOSES[self.use]})"


class Owner(Protocol):
    """A cluster."""

    @property
    def uid(self) -> str:
        """Its UID."""

    @property
    def key(self) -> Key:
        """Its key."""


@dataclass(frozen=True, slots=True)
class _Known:
    content: Supplied = field(repr=False)
    # both are monotonic, for a clock that is wrong
    since: float  # since when this is known
    until: float  # when it is read again


@dataclass(frozen=True, slots=True)
class _Dialing:
    credentials: TlsCredentials = field(repr=False)
    ends: datetime | None  # when the certificate expires; none without one


@dataclass(eq=False, slots=True)
class _Cluster:
    """What is known of the Secrets of one cluster."""

    uid: str
    known: dict[_Asked, _Known] = field(default_factory=dict, repr=False)
    dialing: _Dialing | None = None


@dataclass(eq=False, kw_only=True)
class SuppliedSecrets:
    """Of all clusters: of those with the same key, only of the one that was asked for last."""

    client: Client
    clock: Clock
    reads: Reads
    _clusters: dict[Key, _Cluster] = field(default_factory=dict, repr=False)

    def of(self, desired: DesiredCluster, host: str) -> Mapping[Use, SuppliedFacts]:
        """What they have. host: of a member, with a wildcard for its name.

        Raises BadCertificate, also if one is missing, and the errors of `Client`.
        """
        asked = {use: self._asked(desired, use, secret, host) for use, secret in secrets_of(desired.secured)}
        found = {use: self._read(desired, each) for use, each in asked.items()}
        if "operator" in found:
            now, server, own = self.clock.now(), found["client"].content, found["operator"].content
            check_trust(own, server, where=asked["operator"].where, by=asked["client"].where, now=now)
            check_trust(server, own, where=asked["client"].where, by=asked["operator"].where, now=now)
        return {use: self._facts(each) for use, each in found.items()}

    def credentials(self, cluster: Owner, secured: MemberTls) -> TlsCredentials:
        """With which the operator connects to members; the same value until a Secret changes.

        While a Secret is not good, or cannot be read, what is known counts until it expires. Raises
        BadCertificate then, and as `of` if nothing is known.
        """
        state = self._of(cluster)
        known = state.dialing
        try:
            made = self._dialing(cluster, secured)
        except (BadCertificate, RetryableError) as error:
            if known is None:
                raise
            self._check_end(known, secured, error)
            return known.credentials
        if known is None or made.credentials != known.credentials:
            state.dialing = made
            return made.credentials
        return known.credentials

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self._clusters.pop(key, None)

    def _of(self, cluster: Owner) -> _Cluster:
        """What is known of a cluster: nothing that was known of a former one of this name."""
        found = self._clusters.get(cluster.key)
        if found is None or found.uid != cluster.uid:
            found = self._clusters[cluster.key] = _Cluster(cluster.uid)
        return found

    def _dialing(self, cluster: Owner, secured: MemberTls) -> _Dialing:
        use, secret = _dialed_with(secured)
        found = self._read(cluster, _Asked(secret, use, (secret.keys,))).content
        if use == "client":
            return _Dialing(TlsCredentials(ca=found.ca, by_name=True), None)
        own = TlsCredentials(ca=found.ca, certificate=found.chain, key=found.key, by_name=True)
        return _Dialing(own, found.leaf.not_after)

    def _check_end(self, known: _Dialing, secured: MemberTls, error: Exception) -> None:
        """Raise BadCertificate if what is known has expired; error: why nothing else is known."""
        if known.ends is None or self.clock.now() <= known.ends:
            return
        _, secret = _dialed_with(secured)
        raise BadCertificate(
            "the certificate with which the operator connects to members expired at "
            f"{timestamp(known.ends)}: no member is asked until Secret {secret.name} has a valid one. {error}"
        ) from None

    def _asked(self, desired: DesiredCluster, use: Use, secret: UserSecret, host: str) -> _Asked:
        # Members that exist have the files under the keys on record.
        is_mounted = desired.persisted.has_begun
        prefixes: tuple[Prefix, ...] = (secret.keys,) if is_mounted else (STANDARD, _LEGACY[use])
        service = f"{desired.name}.{desired.namespace}.svc"
        names: Mapping[Use, tuple[str, ...]] = {"peer": (host,), "client": (host, service), "operator": ()}
        return _Asked(secret, use, prefixes, names[use])

    def _facts(self, known: _Known) -> SuppliedFacts:
        content = known.content
        return SuppliedFacts(
            keys=content.prefix,
            leaf=content.leaf,
            is_late=is_late(content.leaf, self.clock.now()),
            cas=content.cas,
            anchors=content.anchors,
            is_settled=self.clock.monotonic() - known.since >= PATIENCE.total_seconds(),
        )

    def _read(self, cluster: Owner, asked: _Asked) -> _Known:
        state, now = self._of(cluster), self.clock.monotonic()
        known = state.known.get(asked)
        if known is not None and now < known.until and self.clock.now() <= known.content.leaf.not_after:
            return known
        state.known.pop(asked, None)
        secret = Key(cluster.key.namespace, asked.secret.name)
        try:
            stored = self.reads.read(partial(self.client.get, resources.SECRETS, secret, Secret))
            data = decoded(stored.data)
        except NotFound:
            raise BadCertificate(f"{asked.where} is missing: create it, or correct the name") from None
        except BadCertificate as error:
            raise BadCertificate(f"{asked.where} cannot be used: {error}") from None
        demand = Demand(usages=_USAGES[asked.use], names=asked.names)
        content = read(data, asked.prefixes, where=asked.where, demand=demand, now=self.clock.now())
        since = known.since if known is not None and known.content == content else now
        found = state.known[asked] = _Known(content, since, now + KEPT_SECONDS)
        return found


def secrets_of(secured: MemberTls) -> tuple[tuple[Use, UserSecret], ...]:
    """The Secrets of the user, by use."""
    found: tuple[tuple[Use, UserSecret | None], ...] = (
        ("peer", secured.peer_secret),
        ("client", secured.client_secret),
        ("operator", secured.operator_secret),
    )
    return tuple((use, secret) for use, secret in found if secret is not None)


def _dialed_with(secured: MemberTls) -> tuple[Use, UserSecret]:
    """The Secret with which the operator connects: its own, or the CAs beside the certificate of members."""
    secrets = dict(secrets_of(secured))
    use: Use = "operator" if "operator" in secrets else "client"
    return use, secrets[use]


def unloaded(found: Mapping[Use, SuppliedFacts], members: Iterable[Member]) -> tuple[Unloaded, ...]:
    """The members that were started with other CAs than the Secrets of the user have now."""
    loaded = (
        (side, member.name, loaded_of(member.pod.loaded, side))
        for side in SIDES
        for member in members
        if side in found and member.pod is not None and not member.pod.is_terminating
    )
    return tuple(
        Unloaded(side=side, name=name, is_refusing=side == "peer" and not _accepts(cas, found[side]))
        for side, name, cas in loaded
        if cas is not None and prints(cas) != prints(found[side].cas)
    )


def _accepts(loaded: Iterable[Trusted], found: SuppliedFacts) -> bool:
    """Whether a process accepts a certificate: also if it has loaded the CA before that was renewed."""
    keys = {ca.key_id for ca in found.anchors} - {""}
    same = {ca.fingerprint for ca in found.anchors}
    return any(ca.key_id in keys or ca.fingerprint in same for ca in loaded)
