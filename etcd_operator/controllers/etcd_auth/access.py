"""How the operator reaches the members of a cluster as root, and the CA of its users' certificates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from etcd_operator.controllers.etcd_auth.manifests.connection import ClientTls
from etcd_operator.controllers.shared.decide.clusters import ClusterResource
from etcd_operator.etcd.channel import Channels
from etcd_operator.kube.resources import Resource
from etcd_operator.pki.authority import KeyPair, issue
from etcd_operator.pki.decode import one_certificate, private_key
from etcd_operator.pki.description import describe
from etcd_operator.pki.errors import BadCertificate, ClockSkew
from etcd_operator.pki.lifetimes import is_due
from etcd_operator.pki.profiles import client

LASTS = timedelta(days=90)
"""How long the certificate of a user is valid at most; it is renewed after two thirds of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAuthority:
    """The client CA of a cluster. bundle: the certificates of CAs that clients trust, in PEM.

    shared: the name of the Secret with a certificate for all clients, which names no user of etcd. It does
    not exist while requests need a user.
    refusal: why the CA issues no certificate now, because the clock is off; empty if it does issue them.
    """

    pair: KeyPair
    bundle: bytes
    shared: str
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Connections for one pass, which closes them. authority: None without client TLS."""

    channels: Channels = field(repr=False)
    authority: ClientAuthority | None = None


Reach = Callable[[ClusterResource, Resource, Mapping[str, str]], Access]
"""`(cluster, its kind, names of members by endpoint)`. Raises the errors of `Client`, and BadCertificate."""


def client_tls(
    stored: ClientTls, username: str, authority: ClientAuthority, after: timedelta | None, now: datetime
) -> ClientTls:
    """What a client needs: the stored certificate as long as it is current, else another one.

    The certificate names the user as its CN. A client that connected before authentication was enabled has no
    token: etcd knows such a client by this CN. after: how long a password is used; None: for ever. The
    certificate expires before the name of the user is used again. Raises BadCertificate if the CA cannot
    issue one, and ClockSkew.
    """
    bundle = authority.bundle.decode()
    if _is_current(stored, username, authority, now):
        return ClientTls(ca=bundle, certificate=stored.certificate, key=stored.key)
    if authority.refusal:
        raise ClockSkew(authority.refusal)
    lasts = min(LASTS, after) if after is not None else LASTS
    made = issue(authority.pair, client(username), now=now, duration=lasts)
    return ClientTls(ca=bundle, certificate=made.certificate.decode(), key=made.key.decode())


def _is_current(stored: ClientTls, username: str, authority: ClientAuthority, now: datetime) -> bool:
    """Whether the certificate in a Secret, which anybody may have edited, is the user's, and not due."""
    try:
        leaf = one_certificate(stored.certificate.encode(), "tls.crt")
        key = private_key(stored.key.encode(), "tls.key")
        found = describe(stored.certificate.encode())
        issuer = describe(authority.pair.certificate).key_id
    except BadCertificate:
        return False
    is_own = found.common_name == username and found.issuer_key_id == issuer
    is_good = found.is_valid(now) and (bool(authority.refusal) or not is_due(found, now))
    return is_own and is_good and leaf.public_key() == key.public_key()
