"""What is issued, what verifies, and what is refused: by Python's `ssl`, with all its strict checks."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from etcd_operator.pki import profiles
from etcd_operator.pki.authority import BACKDATING, KeyPair, check, issue, new_ca, renewed_ca
from etcd_operator.pki.description import describe
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.names import names_of
from etcd_operator.pki.profiles import Usage
from unit.pki.handshakes import context, shake

DAY = timedelta(days=1)
NOW = datetime.now(UTC).replace(microsecond=0)
NAMES = names_of(["my-0.my", "my"], namespace="ns", zone="cluster.local", extra_ips=["10.0.0.7"])
HOST = "my-0.my.ns.svc.cluster.local"


@pytest.fixture(scope="module")
def ca() -> KeyPair:
    return new_ca("etcd client CA", now=NOW, duration=365 * DAY)


@pytest.fixture(scope="module")
def server(ca: KeyPair) -> KeyPair:
    return issue(ca, profiles.server(NAMES), now=NOW, duration=90 * DAY)


@pytest.fixture(scope="module")
def root(ca: KeyPair) -> KeyPair:
    return issue(ca, profiles.client("root"), now=NOW, duration=90 * DAY)


def connect(
    server: KeyPair, client: KeyPair | None, *, by_server: bytes, by_client: bytes, name: str
) -> None:
    shake(
        context(ssl.Purpose.CLIENT_AUTH, ca=by_server, leaf=server),
        context(ssl.Purpose.SERVER_AUTH, ca=by_client, leaf=client),
        name,
    )


@pytest.mark.parametrize("name", [*NAMES.texts])
def test_a_server_is_accepted_by_each_of_its_names(
    ca: KeyPair, server: KeyPair, root: KeyPair, name: str
) -> None:
    connect(server, root, by_server=ca.certificate, by_client=ca.certificate, name=name)


@pytest.mark.parametrize("name", ["my-1.my.ns.svc", "other", "10.0.0.8", "x.my-0.my"])
def test_another_name_is_refused(ca: KeyPair, server: KeyPair, root: KeyPair, name: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="ismatch"):
        connect(server, root, by_server=ca.certificate, by_client=ca.certificate, name=name)


def test_peers_accept_each_other(ca: KeyPair) -> None:
    listening = issue(ca, profiles.peer_server(NAMES), now=NOW, duration=DAY)
    dialing = issue(ca, profiles.PEER_DIALING, now=NOW, duration=DAY)
    connect(listening, dialing, by_server=ca.certificate, by_client=ca.certificate, name=HOST)
    assert describe(listening.certificate).common_name == describe(dialing.certificate).common_name
    assert describe(dialing.certificate).names == ()


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("no certificate", "peer did not return a certificate"),
        ("server's leaf", "purpose"),
        ("another CA", "unable to get local issuer"),
        ("the same name", "unable to get local issuer"),
        ("expired", "expired"),
    ],
)
def test_clients_are_refused(ca: KeyPair, server: KeyPair, case: str, reason: str) -> None:
    other = new_ca("another", now=NOW, duration=DAY)
    same = new_ca("etcd client CA", now=NOW, duration=DAY)
    root = profiles.client("root")
    clients: dict[str, KeyPair | None] = {
        "no certificate": None,
        "server's leaf": server,
        "another CA": issue(other, root, now=NOW, duration=DAY),
        "the same name": issue(same, root, now=NOW, duration=DAY),
        "expired": issue(ca, root, now=NOW - 2 * DAY, duration=DAY),
    }
    with pytest.raises(ssl.SSLError, match=reason):
        connect(server, clients[case], by_server=ca.certificate, by_client=ca.certificate, name=HOST)


def test_a_leaf_of_a_client_is_no_server(ca: KeyPair, root: KeyPair) -> None:
    with pytest.raises(ssl.SSLError, match="purpose"):
        connect(root, root, by_server=ca.certificate, by_client=ca.certificate, name="root")


def test_a_leaf_is_no_ca(ca: KeyPair, root: KeyPair) -> None:
    forged = issue(root, profiles.client("root"), now=NOW, duration=DAY)
    chain = KeyPair(forged.certificate + root.certificate, forged.key)
    server = issue(ca, profiles.server(NAMES), now=NOW, duration=DAY)
    with pytest.raises(ssl.SSLError, match=r"invalid CA certificate"):
        connect(server, chain, by_server=ca.certificate, by_client=ca.certificate, name=HOST)


def test_a_renewed_ca_verifies_what_was_issued_before_and_the_other_way_round(
    ca: KeyPair, server: KeyPair, root: KeyPair
) -> None:
    renewed = renewed_ca(ca, now=NOW, duration=2 * 365 * DAY)
    later = issue(renewed, profiles.client("root"), now=NOW, duration=500 * DAY)
    connect(server, later, by_server=ca.certificate, by_client=renewed.certificate, name=HOST)
    connect(server, root, by_server=renewed.certificate, by_client=ca.certificate, name=HOST)
    before, after = describe(ca.certificate), describe(renewed.certificate)
    assert (before.subject, before.key_id) == (after.subject, after.key_id)
    assert before.serial != after.serial
    assert renewed.key == ca.key


def test_a_bundle_accepts_leafs_of_both_cas(ca: KeyPair, server: KeyPair, root: KeyPair) -> None:
    other = new_ca("etcd client CA", now=NOW, duration=DAY)
    both = ca.certificate + other.certificate
    of_other = issue(other, profiles.server(NAMES), now=NOW, duration=DAY)
    connect(server, root, by_server=both, by_client=both, name=HOST)
    connect(of_other, root, by_server=both, by_client=both, name=HOST)


def test_a_leaf_does_not_outlive_its_ca(ca: KeyPair) -> None:
    near_the_end = NOW + 364 * DAY
    leaf = describe(issue(ca, profiles.PEER_DIALING, now=near_the_end, duration=90 * DAY).certificate)
    assert leaf.not_after == describe(ca.certificate).not_after == NOW + 365 * DAY


def test_an_expired_ca_issues_nothing(ca: KeyPair) -> None:
    with pytest.raises(BadCertificate, match=r"the CA expired at .*: renew it first"):
        issue(ca, profiles.PEER_DIALING, now=NOW + 365 * DAY, duration=DAY)


def test_a_ca_with_the_key_of_another_issues_nothing(ca: KeyPair) -> None:
    other = new_ca("other", now=NOW, duration=DAY)
    mixed = KeyPair(ca.certificate, other.key)
    with pytest.raises(BadCertificate, match="does not belong"):
        issue(mixed, profiles.PEER_DIALING, now=NOW, duration=DAY)
    with pytest.raises(BadCertificate, match="does not belong"):
        renewed_ca(mixed, now=NOW, duration=DAY)


def test_certificates_are_valid_for_clocks_that_are_behind(ca: KeyPair, root: KeyPair) -> None:
    assert describe(ca.certificate).not_before == describe(root.certificate).not_before == NOW - BACKDATING


@pytest.mark.parametrize("duration", [timedelta(), -DAY])
def test_a_duration_is_positive(ca: KeyPair, duration: timedelta) -> None:
    with pytest.raises(BadCertificate, match="duration is not positive"):
        new_ca("a CA", now=NOW, duration=duration)
    with pytest.raises(BadCertificate, match="duration is not positive"):
        issue(ca, profiles.PEER_DIALING, now=NOW, duration=duration)


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 65, "ä" * 33])
def test_a_name_that_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(BadCertificate):
        profiles.client(name)
    with pytest.raises(BadCertificate):
        new_ca(name, now=NOW, duration=DAY)


@pytest.mark.parametrize(
    ("leaf", "usage", "common_name"),
    [
        (profiles.server(NAMES), Usage.SERVER, ""),
        (profiles.peer_server(NAMES), Usage.SERVER, "etcd-peer"),
        (profiles.PEER_DIALING, Usage.CLIENT, "etcd-peer"),
        (profiles.client("x" * 64), Usage.CLIENT, "x" * 64),
    ],
)
def test_each_kind_of_leaf_has_one_usage(
    ca: KeyPair, leaf: profiles.Leaf, usage: Usage, common_name: str
) -> None:
    found = describe(issue(ca, leaf, now=NOW, duration=DAY).certificate)
    assert found.usages == {usage}
    assert found.common_name == common_name
    assert found.subject
    assert found.names == leaf.names.texts
    assert found.issuer_key_id == describe(ca.certificate).key_id
    assert not found.is_ca
    assert found.not_after == NOW + DAY
    assert found.is_valid(NOW)
    assert not found.is_valid(NOW + 2 * DAY)


def test_no_representation_shows_a_key(ca: KeyPair) -> None:
    assert "PRIVATE KEY" not in repr(ca)
    assert ca.key.decode() not in repr((ca, [ca]))


def test_two_cas_of_one_name_have_different_subjects(ca: KeyPair) -> None:
    other = new_ca("etcd client CA", now=NOW, duration=DAY)
    assert describe(ca.certificate).subject != describe(other.certificate).subject


def test_a_leaf_belongs_to_its_key_and_to_the_ca_that_it_names(ca: KeyPair, server: KeyPair) -> None:
    check(server, ca)
    check(server, renewed_ca(ca, now=NOW, duration=900 * DAY))
    with pytest.raises(BadCertificate, match="does not belong"):
        check(KeyPair(server.certificate, issue(ca, profiles.PEER_DIALING, now=NOW, duration=DAY).key), ca)
    other = new_ca("etcd client CA", now=NOW, duration=DAY)
    check(issue(other, profiles.PEER_DIALING, now=NOW, duration=DAY), ca)


def test_a_leaf_that_only_names_the_ca_is_refused(ca: KeyPair) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.load_pem_x509_certificate(ca.certificate)
    named = x509.AuthorityKeyIdentifier(bytes.fromhex(describe(ca.certificate).key_id), None, None)
    forged = (
        x509.CertificateBuilder()
        .subject_name(issuer.subject)
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + DAY)
        .add_extension(named, critical=False)
        .sign(key, SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(BadCertificate, match="not signed"):
        check(KeyPair(forged.public_bytes(Encoding.PEM), pem), ca)
