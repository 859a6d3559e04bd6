"""Persisted state: facts about a cluster that cannot be observed later.

Everything else is read live. These facts are in the status of the resources of both groups and
are written before the act that they describe.
"""

import msgspec

from etcd_operator.api.meta import Condition, ObjectMeta, Value
from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.tls import (
    CipherSuite,
    ClientMode,
    IssuerRef,
    MemberTls,
    MinVersion,
    PeerMode,
    UserSecret,
)


class Bootstrap(Value, frozen=True, kw_only=True):
    """How a cluster was bootstrapped; written before its first object is created."""

    members: tuple[str, ...]  #: The initial members of the cluster, ordered by number.
    token: str  #: etcd's initial cluster token.
    version: str = ""  #: The version of etcd that the initial members started with; empty if it is not known.


def repeated(token: str) -> str:
    """The token of a repeated bootstrap, after all members of the previous attempt were lost."""
    first, _, number = token.partition(AGAIN)
    return f"{first}{AGAIN}{int(number or 0) + 1}"


def is_repeated(token: str) -> bool:
    """Whether an earlier attempt lost its members, with everything that clients may have written."""
    return AGAIN in token


AGAIN = "."
"""Separates the UID of the resource, which does not contain it, from the number of the attempt."""


class Upgrade(Value, frozen=True, kw_only=True):
    """An upgrade in progress; written before its first member is restarted."""

    origin: str = msgspec.field(name="from")  #: The lowest version that ran when the upgrade began.
    target: str = msgspec.field(name="to")  #: The version that all members are upgraded to.
    member: str = ""  #: The member that is being upgraded: restarted for this upgrade, or about to be.
    #: Whether members are only restarted at the version that they run: to load CAs, or to serve clients
    #: otherwise.
    restart: bool = False
    # Set when the status is written.
    since: str = ""  #: When the upgrade began.


class TlsRecord(Value, frozen=True, kw_only=True):
    """The TLS of a cluster; written before its first object is created, and before a member is restarted.

    A CA is named by the ID of its key, in hexadecimal: the certificate of a renewed CA has the same ID.
    """

    #: The CA that signs the certificates with which members connect to each other; empty without peer TLS, or
    #: with a Secret of the user.
    peer_ca: str = msgspec.field(default="", name="peerCA")
    #: The CA that signs the certificates of the client port and of clients; empty without TLS for clients, or
    #: with a Secret of the user.
    client_ca: str = msgspec.field(default="", name="clientCA")
    #: Whether members listen for each other with TLS. Dial: they have certificates with which they connect to
    #: each other, and listen without TLS. Disabled: their certificates are being removed.
    peer_mode: PeerMode = "Require"
    client_cert_auth: bool = False  #: Whether clients need a certificate.
    min_version: MinVersion | None = None  #: The lowest version of TLS for clients.
    cipher_suites: tuple[CipherSuite, ...] = ()  #: The cipher suites of TLS 1.2; empty for those of etcd.
    #: Whether clients have to use TLS. Disabled: TLS for clients is being removed.
    mode: ClientMode = "Require"
    #: Whether clients, and the operator, connect without TLS: TLS for clients is being added or removed, and
    #: a member may serve clients without TLS only.
    plain_clients: bool = False
    #: The Secret of the user with the certificates for peers; absent if the operator issues them.
    peer_secret: UserSecret | None = None
    #: The same of the client port.
    client_secret: UserSecret | None = None
    #: The Secret of the user with the certificate of the operator; absent if the operator issues it.
    operator_secret: UserSecret | None = None
    #: The issuer of cert-manager that signs the certificates for peers; absent if the operator signs them.
    peer_issuer: IssuerRef | None = None
    #: The same of the client port.
    client_issuer: IssuerRef | None = None

    @property
    def of_members(self) -> MemberTls:
        """How its members are started."""
        has_peer = (bool(self.peer_ca) or self.peer_secret is not None) and self.peer_mode != "Disabled"
        plain_peers = has_peer and self.peer_mode == "Dial"
        has_clients = (self.client_ca or self.client_secret is not None) and self.mode != "Disabled"
        if not has_clients:
            return MemberTls(
                peer=has_peer,
                plain_peers=plain_peers,
                peer_secret=self.peer_secret,
                peer_issuer=self.peer_issuer,
            )
        return MemberTls(
            peer=has_peer,
            plain_peers=plain_peers,
            client=True,
            client_cert_auth=self.client_cert_auth,
            min_version=self.min_version,
            cipher_suites=self.cipher_suites,
            mode=self.mode,
            plain_clients=self.plain_clients,
            peer_secret=self.peer_secret,
            client_secret=self.client_secret,
            operator_secret=self.operator_secret,
            peer_issuer=self.peer_issuer,
            client_issuer=self.client_issuer,
        )

    def serving_as(self, wanted: MemberTls) -> "TlsRecord":
        """With the settings of the client port that restarts change; the mode is changed in steps."""
        return msgspec.structs.replace(
            self,
            client_cert_auth=wanted.client_cert_auth,
            min_version=wanted.min_version,
            cipher_suites=wanted.cipher_suites,
        )

    def admits(self, member: MemberTls) -> bool:
        """Whether a member may have been started like this, as far as it decides how it is connected to."""
        now = self.of_members
        has_peer = bool(self.peer_ca) or self.peer_secret is not None
        if (member.peer and not has_peer) or {member.peer_mode, now.peer_mode} == {"Disabled", "Require"}:
            return False  # they would not reach each other
        if self.plain_clients:
            return member.becomes(now) and not (member.client and member.mode == "Require")
        return member.becomes(now) and member.client == now.client


class AuthRecord(Value, frozen=True, kw_only=True):
    """What the operator tells etcd about authentication; written before etcd is told."""

    enabled: bool  #: Whether requests need a user, or are about to.


class AdoptedMember(Value, frozen=True, kw_only=True):
    """A member of the adopted cluster that the operator did not create."""

    # Empty if the resource was created again, and etcd does not list the member any more.
    id: str  #: etcd's ID of the member, in hexadecimal.
    endpoint: str  #: The HOST:PORT at which the member serves clients.
    peer_urls: tuple[str, ...] = msgspec.field(name="peerURLs")  #: The peer URLs of the member.
    # Written before etcd is asked for the removal; from then on the member is not probed.
    removed: bool = False  #: Whether the removal of the member has begun.


class Adoption(Value, frozen=True, kw_only=True):
    """The adoption of a running etcd cluster, in progress or finished.

    Written together with the ID of that cluster, before the first object is created.
    """

    # Empty while a resource that was created again on its claims has not found the members that are left.
    members: tuple[AdoptedMember, ...]  #: The external members at the beginning of the adoption.
    # A member that reports less has lost data.
    #: The raft index that the members had committed when the operator last wrote status.adoption.
    committed: int = 0
    # No member was added since, so a list without members of this resource is right.
    #: Whether the only member of this resource is leaving the adopted cluster, or has left it.
    last_member_removed: bool = False
    finished: bool = False  #: Whether only members of this resource are left.


class ClusterStatus(Value, frozen=True, kw_only=True):
    """What the status of a cluster has in both groups.

    `bootstrap`, `cluster_id`, `recovery`, `upgrade`, `adoption`, `tls` and `auth` are the operator's
    persisted state.
    """

    observed_generation: int = 0  #: The generation of the spec that this status is based on.
    selector: str = ""  #: The label selector of the members' pods.
    current_version: str = ""  #: The lowest version of etcd that a voting member runs.
    # Of each member that etcd lists, for clients that fail over by themselves.
    endpoints: tuple[str, ...] = ()  #: The client URL of each member.
    #: etcd's ID of the cluster, in hexadecimal.
    cluster_id: str = msgspec.field(default="", name="clusterID")
    bootstrap: Bootstrap | None = None  #: How the cluster was bootstrapped. Persisted state of the operator.
    #: The last recovery from a lost quorum, or restore in place, in progress or finished. Persisted state of
    #: the operator.
    recovery: Recovery | None = None
    upgrade: Upgrade | None = None  #: The upgrade in progress.
    #: The adoption of a running cluster, in progress or finished. Persisted state of the operator.
    adoption: Adoption | None = None
    #: The CAs of the cluster, and how its members use TLS; absent without TLS. Persisted state of the
    #: operator.
    tls: TlsRecord | None = None
    #: Whether requests need a user; absent while the operator leaves authentication as it is. Persisted state
    #: of the operator.
    auth: AuthRecord | None = None
    conditions: tuple[Condition, ...] = ()  #: The current state of this object.


class AnyCluster(Value, frozen=True, kw_only=True):
    """What is read of an EtcdCluster of either group, where the group makes no difference."""

    metadata: ObjectMeta
    status: ClusterStatus = ClusterStatus()
