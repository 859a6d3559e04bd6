"""TLS in the spec of a cluster, in both API groups, and what it asks of a member."""

from typing import Literal

import msgspec

from etcd_operator.api.meta import Value

MinVersion = Literal["TLS1.2", "TLS1.3"]

CipherSuite = Literal[
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
]
"""Those of TLS 1.2 with which etcd serves gRPC."""

ClientMode = Literal["Disabled", "Prefer", "Require"]

PeerMode = Literal["Disabled", "Dial", "Require"]
"""Dial: members have certificates with which they connect to each other, and listen without TLS."""


class Auto(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Certificates that the operator issues, from a CA that only this cluster has."""


class SecretRef(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Secret of the user in the namespace of the cluster."""

    name: str  #: The name of the Secret.


class IssuerRef(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An issuer of cert-manager, as a Certificate names it."""

    name: str  #: The name of the issuer.
    kind: str = "Issuer"  #: Issuer (the default), ClusterIssuer, or the kind of another controller's issuer.
    group: str = "cert-manager.io"  #: The API group of the issuer. Default: cert-manager.io.


SharedIssuer = Literal["Refused", "Accepted"]


class CertManager(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Certificates that cert-manager issues."""

    issuer_ref: IssuerRef  #: The issuer that signs. Cannot be changed later.
    #: Accepted: the issuer may be of another kind than Issuer, such as a ClusterIssuer. Whoever gets a
    #: certificate from it then has the access of a member, or of any client. Default: Refused.
    shared_issuer: SharedIssuer = "Refused"


class PeerTls(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """TLS between the members."""

    #: The operator issues the certificates. Either this or another source is required; the source cannot be
    #: changed later.
    auto: Auto | None = None
    #: cert-manager issues the certificates.
    cert_manager: CertManager | None = None
    #: A Secret with a certificate for all members (tls.crt), its key (tls.key) and the CAs that members trust
    #: (ca.crt). docs/tls.md describes which names the certificate needs.
    secret_ref: SecretRef | None = None
    #: How long certificates of members, and the one in the Secret for clients, are valid, like 90d; at least
    #: 10m. They are renewed after two thirds of that time, without a restart. Default: 90d. With
    #: certManager, at least 1h. Not with secretRef.
    leaf_duration: str = ""
    #: How long the certificate of a CA is valid, like 3650d; at least three times leafDuration. Default:
    #: 3650d. A change counts from the next renewal or rotation of the CA on; a shorter time makes the renewal
    #: due earlier. Only with auto.
    ca_duration: str = msgspec.field(default="", name="caDuration")


class ClientTls(PeerTls, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """TLS for clients."""

    #: Require (the default): clients have to use TLS. Prefer: the same port also serves clients without TLS,
    #: which need no certificate. Disabled: no client uses TLS, as without the field client.
    mode: ClientMode = "Require"
    #: While true (the default), clients that use TLS need a certificate of the cluster's client CA. With a
    #: Secret of your own, it cannot be changed later.
    client_cert_auth: bool = True
    #: The lowest version of TLS that members accept from clients. Default: TLS1.2.
    min_version: MinVersion | None = None
    #: The cipher suites of TLS 1.2 that members accept from clients. Default: those of etcd. Those of TLS 1.3
    #: cannot be chosen.
    cipher_suites: tuple[CipherSuite, ...] = ()
    #: More DNS names under which clients connect, like etcd.example.com.
    extra_dns_names: tuple[str, ...] = msgspec.field(default=(), name="extraDNSNames")
    #: More IP addresses under which clients connect. Not with secretRef, like extraDNSNames.
    extra_ips: tuple[str, ...] = msgspec.field(default=(), name="extraIPs")
    #: With secretRef and clientCertAuth: a Secret with the certificate with which the operator connects to
    #: members (tls.crt), its key (tls.key), and the CAs of the certificate in secretRef (ca.crt).
    operator_secret_ref: SecretRef | None = None


class Tls(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """TLS of a cluster."""

    peer: PeerTls | None = None  #: TLS between the members. Without this field they use plain HTTP.
    client: ClientTls | None = None  #: TLS for clients. Without this field they use plain HTTP.


SecretKeys = Literal["tls", "peer", "server", "etcd-client"]
"""How the keys of a Secret begin, see `pki.secrets.file_names`."""


class UserSecret(Value, frozen=True, kw_only=True):
    """A Secret of the user that members mount."""

    name: str  #: The name of the Secret.
    keys: SecretKeys = "tls"  #: How the keys of the Secret begin, like tls for tls.crt, tls.key and ca.crt.


class MemberTls(Value, frozen=True, kw_only=True):
    """How a member is started: the part of the TLS settings that its flags contain."""

    peer: bool = False  #: Whether the members have certificates with which they connect to each other.
    #: Whether they listen without TLS for each other all the same, because another member may have no
    #: certificate: TLS between the members is being added or removed.
    plain_peers: bool = False
    client: bool = False  #: Whether clients use TLS.
    client_cert_auth: bool = False  #: Whether clients need a certificate.
    min_version: MinVersion | None = None  #: The lowest version of TLS for clients.
    cipher_suites: tuple[CipherSuite, ...] = ()  #: The cipher suites of TLS 1.2; empty for those of etcd.
    mode: ClientMode = "Require"  #: Whether clients have to use TLS.
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
    #: Whether clients connect without TLS all the same, because another member may serve nothing else: TLS is
    #: being added or removed.
    plain_clients: bool = False

    @property
    def issued(self) -> tuple[bool, bool]:
        """Whether the operator writes the certificates for peers, and for clients, whoever signs them."""
        return self.peer and self.peer_secret is None, self.client and self.client_secret is None

    @property
    def peer_mode(self) -> PeerMode:
        """How a member connects to the others, and they to it."""
        if not self.peer:
            return "Disabled"
        return "Dial" if self.plain_peers else "Require"

    @property
    def has_secure_peers(self) -> bool:
        """Whether the members listen for each other with TLS."""
        return self.peer_mode == "Require"

    @property
    def signed(self) -> tuple[bool, bool]:
        """Whether the operator signs the certificates for peers, and for clients."""
        peers, clients = self.issued
        return peers and self.peer_issuer is None, clients and self.client_issuer is None

    @property
    def has_wildcards(self) -> bool:
        """Whether the members share a certificate, whose names are wildcards."""
        return self.is_supplied or self.peer_issuer is not None or self.client_issuer is not None

    @property
    def is_supplied(self) -> bool:
        """Whether a certificate of the members is the user's."""
        return self.peer_secret is not None or self.client_secret is not None

    @property
    def is_dialed(self) -> bool:
        """Whether clients, and the operator, connect with TLS."""
        return self.client and not self.plain_clients

    def becomes(self, other: "MemberTls") -> bool:
        """Whether restarts change these settings to `other`: all but the Secrets of the user.

        Which keys a Secret has is found out when the cluster is created.
        """
        own, others = ((each.peer_issuer, each.client_issuer) for each in (self, other))
        return self.secret_names == other.secret_names and own == others

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The names of the Secrets of the user, for peers, clients and the operator; empty for none."""
        found = (self.peer_secret, self.client_secret, self.operator_secret)
        return tuple(secret.name if secret is not None else "" for secret in found)


PLAIN = MemberTls()
"""Members without TLS."""
