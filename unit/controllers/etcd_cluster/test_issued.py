"""What cert-manager has issued, in the Secret with the CAs of a cluster."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from etcd_operator.api.tls import Auto, CertManager, ClientTls, IssuerRef, PeerTls, Tls
from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import IssuedLeaf, Side
from etcd_operator.controllers.etcd_cluster.manifests.authorities import (
    Authorities,
    altered,
    authorities_of,
    authorities_secret,
    new_authorities,
)
from etcd_operator.controllers.etcd_cluster.manifests.issued import LEAFS, Offer
from etcd_operator.controllers.etcd_cluster.tls.offers import offered
from etcd_operator.errors import Conflict
from etcd_operator.pki.authority import KeyPair, issue, new_ca, renewed_ca
from etcd_operator.pki.decode import certificates
from etcd_operator.pki.description import describe
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.names import Names
from etcd_operator.pki.profiles import PEER_DIALING, Leaf, server
from etcd_operator.pki.secrets import Supplied
from unit.controllers.etcd_cluster.decide.builders import ephemeral

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
OURS = CertManager(issuer_ref=IssuerRef(name="ours"))
CLUSTER = ephemeral(tls=Tls(peer=PeerTls(cert_manager=OURS), client=ClientTls(cert_manager=OURS)))


def new_issuer(number: int, now: datetime = NOW) -> KeyPair:
    return new_ca(f"ca {number}", now=now, duration=3650 * DAY)


def offers(ca: KeyPair, side: Side = "client", now: datetime = NOW) -> tuple[Offer, ...]:
    made = []
    for file in LEAFS[side]:
        pair = issue(ca, server(Names(dns=("a",))), now=now, duration=90 * DAY)
        leaf = IssuedLeaf(file=file, leaf=describe(pair.certificate), ca=describe(ca.certificate))
        made.append(Offer(issued=leaf, pair=pair, ca=ca.certificate))
    return tuple(made)


def stored(made: Authorities) -> Authorities:
    """As it is read again."""
    return authorities_of(authorities_secret(CLUSTER, "operator", made)["data"])


def test_since_when_cas_are_former_is_stored_and_each_is_forgotten_in_its_time() -> None:
    first = new_issuer(0)
    made = new_authorities(CLUSTER, NOW, "z", {"peer": offers(first, "peer"), "client": offers(first)})
    now, most = NOW, 0
    for number in range(1, 12):
        now += 30 * DAY
        found = offers(new_issuer(number, now), now=now)
        for change in (Change.TRUST, Change.DATE, Change.TAKE, Change.END, Change.FORGET, Change.DATE):
            client = altered(CLUSTER, "client", made.client, change, now, "", found)
            made = stored(replace(made, client=client))
            assert made.client.record == client.record
        most = max(most, len(made.client.record.trusted))
    assert most == 4  # each is kept for 90 days after it was replaced


def test_a_cluster_is_not_made_with_two_cas_of_one_key() -> None:
    first, second = offers(new_issuer(0))
    renamed = replace(second.issued.ca, subject="CN=renamed", identity="renamed")
    second = replace(second, issued=replace(second.issued, ca=renamed))
    with pytest.raises(
        BadCertificate, match="CN=renamed of cert-manager's issuer have the same subject key identifier"
    ):
        new_authorities(CLUSTER, NOW, "z", {"peer": offers(new_issuer(0), "peer"), "client": (first, second)})


def supplied(leaf: Leaf, ca: KeyPair, *, is_ca: bool = False) -> Supplied:
    """What is in a Secret with such a leaf."""
    pair = issue(ca, leaf, now=NOW, duration=90 * DAY)
    made = replace(describe(pair.certificate), is_ca=is_ca)
    cas = (describe(ca.certificate),)
    return Supplied(
        prefix="tls",
        chain=pair.certificate,
        key=pair.key,
        ca=ca.certificate,
        leaf=made,
        cas=cas,
        anchors=cas,
    )


def test_what_was_not_asked_for_is_refused() -> None:
    """etcd refuses peers whose certificate has other names than those of their address."""
    ca = new_issuer(0)
    anchor = certificates(ca.certificate, "the CA")[0]
    found = offered(supplied(PEER_DIALING, ca), "peer-dial", PEER_DIALING, "s", anchor)
    assert found.issued.leaf.common_name == "etcd-peer"
    named = replace(PEER_DIALING, names=Names(dns=("etcd-peer",)))
    with pytest.raises(BadCertificate, match="s has the names etcd-peer, which were not asked for"):
        offered(supplied(named, ca), "peer-dial", PEER_DIALING, "s", anchor)
    with pytest.raises(BadCertificate, match="s is a CA, which was not asked for"):
        offered(supplied(PEER_DIALING, ca, is_ca=True), "peer-dial", PEER_DIALING, "s", anchor)


def test_cas_are_told_apart_as_go_does() -> None:
    """By the encoded name and the key, whatever key ID they say that they have."""
    first, second = new_issuer(0), new_issuer(0)
    assert describe(first.certificate).identity != describe(second.certificate).identity
    renewed = renewed_ca(first, now=NOW + DAY, duration=10 * DAY)
    assert describe(first.certificate).identity == describe(renewed.certificate).identity


def test_the_operator_makes_no_ca_of_its_own_where_cert_manager_is_to_issue() -> None:
    with pytest.raises(Conflict, match="were changed since they were read"):
        new_authorities(CLUSTER, NOW, "z", {"client": offers(new_issuer(0))})
    mixed = replace(CLUSTER, tls=Tls(peer=PeerTls(auto=Auto()), client=ClientTls(cert_manager=OURS)))
    made = new_authorities(mixed, NOW, "z", {"client": offers(new_issuer(0))})
    assert (made.peer.is_issued_elsewhere, made.client.is_issued_elsewhere) == (False, True)
