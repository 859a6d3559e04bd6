"""States of clusters with TLS."""

from dataclasses import replace
from typing import Any

from etcd_operator.api.persisted import TlsRecord
from etcd_operator.api.tls import Auto, ClientTls, PeerMode, PeerTls, Tls
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Side, Situation
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, TlsFacts
from unit.controllers.etcd_cluster.decide.builders import bootstrapped, with_record
from unit.controllers.etcd_cluster.decide.certificates import certs
from unit.controllers.etcd_cluster.decide.peering_states import peering

PEER, CLIENT = PeerTls(auto=Auto()), ClientTls(auto=Auto())
BOTH_SIDES = Tls(peer=PEER, client=CLIENT)
MADE = TlsFacts(peer_ca="p", client_ca="c")
RECORD = TlsRecord(peer_ca="p", client_ca="c", client_cert_auth=True)


def new(cluster: DesiredCluster, tls: Tls | None = BOTH_SIDES, facts: TlsFacts = MADE) -> ClusterState:
    """A cluster of which nothing exists but, perhaps, its CAs."""
    return ClusterState(desired=replace(cluster, tls=tls), tls=facts, age=1.0)


def secured(cluster: DesiredCluster, *situations: Situation, **facts: Any) -> ClusterState:
    """A cluster that serves, of which one side, or both, are as given."""
    state = bootstrapped(replace(cluster, tls=BOTH_SIDES))
    requires: tuple[PeerMode, ...] = tuple("Require" for _ in state.members)
    state = peering(state, *requires)
    sides: tuple[Side, ...] = ("client", "peer")
    tls = replace(MADE, sides=tuple(zip(sides, situations, strict=False)), version="7", **facts)
    return with_record(replace(state, tls=tls), tls=RECORD)


def at_rest(cluster: DesiredCluster, **changes: Any) -> Situation:
    """All members have what is on record."""
    members = (certs.member(name) for name in cluster.initial_member_names)
    return replace(certs.situation(*members), **{"published": (certs.A, certs.B), **changes})


def with_one(found: Situation, **changes: Any) -> Situation:
    """Of which the first member is otherwise."""
    first, *others = found.members
    return replace(found, members=(replace(first, **changes), *others))
