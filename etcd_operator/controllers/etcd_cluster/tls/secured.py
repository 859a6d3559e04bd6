"""What a pass knows of a cluster's TLS before it asks members."""

from dataclasses import dataclass

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import SIDES
from etcd_operator.controllers.etcd_cluster.decide.state import NO_TLS, TlsFacts, Unseen
from etcd_operator.controllers.etcd_cluster.manifests.authorities import Authorities
from etcd_operator.controllers.etcd_cluster.observe.slots import OPEN, Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """What a pass knows before it asks members: how they are reached, or why they cannot be."""

    access: Access = OPEN
    facts: TlsFacts = NO_TLS
    unseen: Unseen | None = None  # without credentials, every member would look silent


UNSECURED = Secured()


def facts(made: Authorities | None) -> TlsFacts:
    """What decisions know of CAs."""
    if made is None:
        return NO_TLS
    return TlsFacts(
        peer_ca=made.peer.record.issuer,
        client_ca=made.client.record.issuer,
        version=made.version,
        issued=frozenset(side for side in SIDES if made.of(side).is_issued_elsewhere),
    )
