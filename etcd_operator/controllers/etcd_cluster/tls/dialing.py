"""With what the operator dials members: certificates of `root`, which are only in its memory."""

from dataclasses import replace
from datetime import datetime, timedelta

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Side
from etcd_operator.controllers.etcd_cluster.manifests.authority import Authority
from etcd_operator.controllers.etcd_cluster.manifests.issued import OPERATOR
from etcd_operator.controllers.etcd_cluster.manifests.tls import USER
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.pki.authority import issue
from etcd_operator.pki.description import describe
from etcd_operator.pki.lifetimes import renewal
from etcd_operator.pki.profiles import PEER_DIALING
from etcd_operator.pki.profiles import client as client_leaf

LASTS = timedelta(days=1)
"""How long certificates of root are valid. Renewing that of the operator closes its connections."""

AGAIN = timedelta(seconds=5)
"""Until it is tried again to make credentials with a CA that has expired."""


def is_usable(found: TlsCredentials, now: datetime) -> bool:
    """Whether members accept the certificate."""
    return found.certificate is not None and describe(found.certificate).is_valid(now)


def dialing(made: Authority, side: Side, now: datetime) -> tuple[TlsCredentials, datetime]:
    """Credentials for the ports of one side, and when they are renewed."""
    if made.is_issued_elsewhere:
        return _of_cert_manager(made, side, now)
    leaf = client_leaf(USER) if side == "client" else PEER_DIALING
    if not describe(made.issuer.certificate).is_valid(now):
        return TlsCredentials(ca=made.bundle, by_name=True), now + AGAIN
    pair = issue(made.issuer, leaf, now=now, duration=LASTS)
    credentials = TlsCredentials(ca=made.bundle, certificate=pair.certificate, key=pair.key, by_name=True)
    return credentials, renewal(describe(pair.certificate))


def _of_cert_manager(made: Authority, side: Side, now: datetime) -> tuple[TlsCredentials, datetime]:
    """The same, with what cert-manager has issued, until something else is on record."""
    pair = made.leafs[OPERATOR if side == "client" else "peer-dial"]
    credentials = TlsCredentials(ca=made.bundle, by_name=True)
    leaf = describe(pair.certificate)
    if not leaf.is_valid(now):
        return credentials, now + AGAIN
    own = replace(credentials, certificate=pair.certificate, key=pair.key)
    return own, min(now + LASTS, leaf.not_after)
