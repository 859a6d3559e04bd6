"""What a user declares, in terms that no API group owns.

A dialect makes a `DesiredCluster` from its resource; every rule, manifest and action uses
this value only.
"""

from dataclasses import dataclass, field, replace

import msgspec

from etcd_operator.api.cluster_spec import Mode, NetworkAccess, PodTemplate, S3Target
from etcd_operator.api.meta import RawObject
from etcd_operator.api.persisted import Adoption, AuthRecord, Bootstrap, TlsRecord, Upgrade
from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.tls import PLAIN, IssuerRef, MemberTls, PeerMode, PeerTls, SecretRef, Tls, UserSecret
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Kind
from etcd_operator.controllers.shared.decide.clusters import member_name
from etcd_operator.keys import Key
from etcd_operator.versions import image_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistedState:
    """What the operator remembers about a cluster (see api/persisted.py)."""

    bootstrap: Bootstrap | None = None
    cluster_id: str = ""  # hexadecimal, recorded once a quorum has answered; empty until then
    next_ordinal: int = 0  # the number that the next new ephemeral member takes; it only grows
    # the last one, under way or finished; None for a cluster that never had one
    recovery: Recovery | None = None
    upgrade: Upgrade | None = None  # the one under way
    adoption: Adoption | None = None  # the one under way or finished
    tls: TlsRecord | None = None  # how its members are started; None without TLS
    auth: AuthRecord | None = None  # what etcd is told about users; None while that remains as it is

    @property
    def is_bootstrapped(self) -> bool:
        """Whether a quorum has ever answered: from then on nothing bootstraps this cluster again."""
        return bool(self.cluster_id)

    @property
    def has_begun(self) -> bool:
        """Whether a bootstrap, a restore or a cluster ID is on record."""
        return self.is_bootstrapped or self.bootstrap is not None or self.is_restoring

    @property
    def recovery_under_way(self) -> Recovery | None:
        """The recovery that is under way: the ID of its new cluster is not recorded yet; None without one."""
        recovery = self.recovery
        return recovery if recovery is not None and recovery.is_under_way(self.cluster_id) else None

    @property
    def is_recovering(self) -> bool:
        """Whether a recovery is under way."""
        return self.recovery_under_way is not None

    @property
    def given_up_ids(self) -> frozenset[str]:
        """The IDs of the etcd clusters that recoveries have given up; not that of one under way."""
        if self.recovery is None:
            return frozenset()
        return frozenset(self.recovery.given_up_ids) - {self.cluster_id}

    @property
    def is_adopting(self) -> bool:
        """Whether external members may still be in the cluster."""
        return self.adoption is not None and not self.adoption.finished

    @property
    def is_adoption_unclear(self) -> bool:
        """Whether the resource was created again, and it is not known which external members are left."""
        return self.adoption is not None and not self.adoption.finished and not self.adoption.members

    @property
    def is_restoring(self) -> bool:
        """Whether a new cluster is being made from a backup."""
        return self.is_recovering and not self.is_bootstrapped


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreFrom:
    """The backups that a new cluster begins with: of a cluster, on its claim, or in a bucket."""

    cluster: str
    s3: S3Target | None = None
    key_secret: str = ""  # the Secret with the keys of encrypted backups; empty for plain ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """The running etcd cluster that a resource names: where each of its members serves (`host:port`)."""

    endpoints: tuple[str, ...]
    mode: Mode = "Complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredCluster:
    """One cluster as its resource declares it."""

    api_version: str
    namespace: str
    name: str
    uid: str
    generation: int
    created: str
    size: int
    repository: str  # of etcd's images, without a tag
    version: str  # of etcd, `X.Y.Z` without `v`
    kind: Kind  # of member
    selector: str = ""  # of all of its objects, as `kubectl` takes it
    persisted: PersistedState = PersistedState()
    pod_template: PodTemplate = field(default_factory=PodTemplate)
    claim_template: RawObject = field(default_factory=dict)
    network: NetworkAccess = field(default_factory=NetworkAccess)
    is_adoptable: bool = False  # whether its user permits another resource to adopt its members
    is_paused: bool = False
    is_deleting: bool = False
    problem: str = ""  # why the spec cannot be acted on, in one sentence; empty when it can
    recover: str = ""  # the name of the recovery that its user requests; empty for none
    # seconds after which a lost quorum is recovered without a person; None for never
    recovers_after: float | None = None
    restore_in_place: str = ""  # the name of the restore in place that its user requests; empty for none
    # the last rotation of each CA that its user requests, as a name; empty for none
    rotate_peer_ca: str = ""
    rotate_client_ca: str = ""
    adopt: Adopt | None = None  # the running cluster that its members join; None for a cluster of its own
    tls: Tls | None = None  # as its resource asks for it; None for plain members, or an invalid spec
    auth: bool | None = None  # whether requests are to need a user; None if its resource does not say
    restore: RestoreFrom | None = None  # what a new cluster begins with; None for nothing
    restored_by: str = ""  # the EtcdRestore that created it on claims with data; empty for none
    unavailable_since: str = ""  # since when its status reports that (RFC 3339); empty while it is available
    # the reason of Available that its status has, true or not; empty where it has none
    available_reason: str = ""
    # etcd's own, as its status last had it; None where the status has no such field
    cluster_version: str | None = None

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return Key(self.namespace, self.name)

    @property
    def token(self) -> str:
        """etcd's initial cluster token: of the bootstrap or the recovery that made the cluster."""
        bootstrap = self.persisted.bootstrap
        return bootstrap.token if bootstrap is not None else self.uid

    @property
    def secured(self) -> MemberTls:
        """How its members are started, and reached: as recorded, once there may be any."""
        recorded = self.persisted.tls
        if self.persisted.has_begun or self.tls is None:
            return recorded.of_members if recorded is not None else PLAIN
        # Data on claims may have other URLs of peers, see `rules.secure`.
        plain_peers = recorded is not None and recorded.of_members.plain_peers
        return msgspec.structs.replace(members_of(self.tls), plain_peers=plain_peers)

    @property
    def has_client_certificates(self) -> bool:
        """Whether the operator issues certificates for clients; also while their TLS is being removed."""
        return self._issued[1]

    @property
    def has_peer_certificates(self) -> bool:
        """Whether the operator issues certificates for peers; also while their TLS is being removed."""
        return self._issued[0]

    @property
    def _issued(self) -> tuple[bool, bool]:
        recorded = self.persisted.tls
        if self.persisted.has_begun or self.tls is None:
            return (bool(recorded.peer_ca), bool(recorded.client_ca)) if recorded else (False, False)
        return self.secured.issued

    @property
    def has_one_service(self) -> bool:
        """Whether peers find members by the Service for clients: those of a cluster that was taken over.

        The earlier operator gave etcd the name of the cluster as its token; ours are UIDs.
        """
        return self.token == self.name

    @property
    def image(self) -> str:
        """The image that its members run."""
        return image_of(self.repository, self.version)

    def member_name(self, ordinal: int) -> str:
        """Persistent: `my-cluster-0`. Ephemeral: `my-cluster-0000`, four digits at least."""
        return member_name(self.name, ordinal, digits=self.kind.digits)

    @property
    def initial_member_names(self) -> tuple[str, ...]:
        """The names of the initial members, by number."""
        return tuple(self.member_name(ordinal) for ordinal in range(self.size))

    def listening(self, mode: PeerMode) -> "DesiredCluster":
        """This cluster with members that connect to each other in another way than is on record."""
        recorded = self.persisted.tls
        if recorded is None:
            return self
        tls = msgspec.structs.replace(recorded, peer_mode=mode)
        return replace(self, persisted=replace(self.persisted, tls=tls))

    def at(self, version: str) -> "DesiredCluster":
        """This cluster with another version of etcd; unchanged for an empty one."""
        return replace(self, version=version) if version else self


def members_of(tls: Tls | None) -> MemberTls:
    """How the members of a cluster with these settings are started."""
    peer, client = (tls.peer, tls.client) if tls is not None else (None, None)
    return MemberTls(
        peer=peer is not None,
        client=client is not None,
        client_cert_auth=client is not None and client.client_cert_auth,
        min_version=client.min_version if client is not None else None,
        cipher_suites=client.cipher_suites if client is not None else (),
        mode=client.mode if client is not None else "Require",
        peer_secret=_secret(peer.secret_ref) if peer is not None else None,
        client_secret=_secret(client.secret_ref) if client is not None else None,
        operator_secret=_secret(client.operator_secret_ref) if client is not None else None,
        peer_issuer=_issuer(peer),
        client_issuer=_issuer(client),
    )


def _issuer(side: PeerTls | None) -> IssuerRef | None:
    return side.cert_manager.issuer_ref if side is not None and side.cert_manager is not None else None


def _secret(found: SecretRef | None) -> UserSecret | None:
    return UserSecret(name=found.name) if found is not None else None
