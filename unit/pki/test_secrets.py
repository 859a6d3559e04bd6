"""Certificates that users supply: what is read, and the line that each mistake gets."""

import base64
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from etcd_operator.pki import chains
from etcd_operator.pki.authority import KeyPair
from etcd_operator.pki.decode import LARGEST_FILE
from etcd_operator.pki.description import describe
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.profiles import Usage
from etcd_operator.pki.secrets import Demand, Prefix, Supplied, check_trust, read
from unit.pki import samples
from unit.pki.samples import DAY, Issuer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CA = Issuer(NOW)
LEAF = CA.leaf("*.my.ns.svc", "my.ns.svc")
BOTH = Demand(usages=frozenset(Usage), names=("my-0.my.ns.svc", "my.ns.svc"))

Data = dict[str, bytes]


def data(leaf: bytes = LEAF.certificate, key: bytes = LEAF.key, ca: bytes = CA.pem) -> Data:
    return {"tls.crt": leaf, "tls.key": key, "ca.crt": ca}


def supplied(given: Data, demand: Demand = BOTH, legacy: Prefix = "peer", now: datetime = NOW) -> Supplied:
    return read(given, ("tls", legacy), where="the Secret my-tls", demand=demand, now=now)


def refused(given: Data, demand: Demand = BOTH, now: datetime = NOW) -> str:
    with pytest.raises(BadCertificate) as caught:
        supplied(given, demand, now=now)
    message = str(caught.value)
    assert message.startswith("the Secret my-tls")
    assert message.isprintable()
    return message


def converted(key: bytes, form: PrivateFormat, passphrase: bytes | None = None) -> bytes:
    hidden = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    return load_pem_private_key(key, None).private_bytes(Encoding.PEM, form, hidden)


def test_a_secret_is_read() -> None:
    found = supplied(data())
    assert found.chain == LEAF.certificate
    assert found.key == LEAF.key
    assert found.ca == CA.pem
    assert found.leaf == describe(LEAF.certificate)
    assert found.cas == (describe(CA.pem),)
    assert found.prefix == "tls"
    assert "PRIVATE" not in repr(found)


@pytest.mark.parametrize("prefix", ["peer", "server", "etcd-client"])
def test_a_secret_of_the_former_operator_is_read(prefix: Prefix) -> None:
    names = f"{prefix}.crt", f"{prefix}.key", f"{prefix}-ca.crt"
    given = dict(zip(names, (LEAF.certificate, LEAF.key, CA.pem), strict=True))
    assert supplied(given, legacy=prefix) == replace(supplied(data()), prefix=prefix)


def test_the_standard_keys_win_if_both_sets_are_complete() -> None:
    other = CA.leaf("my.ns.svc")
    given = {"peer.crt": other.certificate, "peer.key": other.key, "peer-ca.crt": CA.pem} | data()
    assert supplied(given).leaf.serial == describe(LEAF.certificate).serial


def test_the_other_set_is_read_if_the_standard_one_is_not_complete() -> None:
    given = {"peer.crt": LEAF.certificate, "peer.key": LEAF.key, "peer-ca.crt": CA.pem, "ca.crt": b"x"}
    assert supplied(given).chain == LEAF.certificate


def test_what_else_is_in_the_files_is_left_out() -> None:
    parameters = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    old = converted(LEAF.key, PrivateFormat.TraditionalOpenSSL)
    given = data(b"subject=a\n" + LEAF.certificate, parameters + old, CA.pem + b"\n# end\n")
    assert supplied(given) == supplied(data())


def test_a_chain_by_way_of_an_intermediate_ca_is_read() -> None:
    between = Issuer(NOW, parent=CA, name="between", path_length=0)
    leaf = between.leaf("*.my.ns.svc", "my.ns.svc")
    found = supplied(data(leaf.certificate + between.pem, leaf.key))
    assert found.chain == leaf.certificate + between.pem
    assert "is not signed by a CA in ca.crt: add the certificate of 'CN=between'" in refused(
        data(leaf.certificate, leaf.key)
    )


def test_a_ca_whose_path_is_too_long_is_refused() -> None:
    strict = Issuer(NOW, name="strict", path_length=0)
    between = Issuer(NOW, parent=strict, name="between")
    leaf = between.leaf("*.my.ns.svc", "my.ns.svc")
    assert "is not signed by a CA" in refused(data(leaf.certificate + between.pem, leaf.key, strict.pem))


def test_an_intermediate_that_is_no_ca_is_refused() -> None:
    between = Issuer(NOW, parent=CA, name="between", is_ca=False)
    leaf = between.leaf("*.my.ns.svc", "my.ns.svc")
    assert "is not signed by a CA" in refused(data(leaf.certificate + between.pem, leaf.key))


def test_one_valid_ca_of_a_bundle_is_enough() -> None:
    expired = Issuer(NOW, name="expired", until=-DAY)
    assert supplied(data(ca=expired.pem + CA.pem)).leaf.issuer == "CN=a CA"


@pytest.mark.parametrize("bits", [2048, 3072])
def test_rsa_is_read(bits: int) -> None:
    leaf = CA.leaf("*.my.ns.svc", "my.ns.svc", key=samples.rsa_key(bits))
    assert supplied(data(leaf.certificate, leaf.key)).leaf == describe(leaf.certificate)


MISTAKES: list[tuple[str, Callable[[], Data], str]] = [
    (
        "nothing",
        dict,
        "has no tls.crt and no tls.key and no ca.crt: it needs tls.crt, tls.key, ca.crt, or peer",
    ),
    ("no key", lambda: data(key=b""), "has no tls.key: it needs"),
    ("no CA", lambda: data(ca=b""), "has no ca.crt: it needs"),
    ("not PEM", lambda: data(leaf=b"hello"), "tls.crt has no certificate in PEM"),
    ("a key in its place", lambda: data(leaf=LEAF.key), "tls.crt has a private key: remove it"),
    ("a key among CAs", lambda: data(ca=CA.pem + LEAF.key), "ca.crt has a private key: remove it"),
    ("a certificate as key", lambda: data(key=LEAF.certificate), "has no private key in PEM"),
    (
        "cut",
        lambda: data(leaf=LEAF.certificate[:200] + LEAF.certificate[260:]),
        "tls.crt has a certificate that cannot",
    ),
    (
        "cut key",
        lambda: data(key=LEAF.key[:60] + LEAF.key[80:]),
        "tls.key has a private key that cannot",
    ),
    (
        "a passphrase",
        lambda: data(key=converted(LEAF.key, PrivateFormat.PKCS8, b"x")),
        "tls.key is encrypted with a passphrase",
    ),
    (
        "a passphrase of old",
        lambda: data(key=converted(LEAF.key, PrivateFormat.TraditionalOpenSSL, b"x")),
        "tls.key is encrypted with a passphrase",
    ),
    (
        "OpenSSH",
        lambda: data(key=converted(LEAF.key, PrivateFormat.OpenSSH)),
        "tls.key is in a form that etcd cannot read",
    ),
    (
        "another key",
        lambda: data(key=CA.leaf().key),
        "tls.key is not the key of the first",
    ),
    (
        "the order",
        lambda: data(leaf=CA.pem + LEAF.certificate),
        "tls.key is not the key of the first",
    ),
    ("too large", lambda: data(leaf=b" " * (LARGEST_FILE + 1)), f"at most {LARGEST_FILE} are read"),
    ("too many", lambda: data(ca=CA.pem * 21), "ca.crt has 21 certificates: at most 20"),
    ("no CA's certificate", lambda: data(ca=LEAF.certificate), "'CN=a leaf' is not a CA"),
    (
        "another CA",
        lambda: data(ca=Issuer(NOW).pem),
        "is not signed by a CA in ca.crt: add the certificate",
    ),
]


@pytest.mark.parametrize(("make", "part"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES])
def test_each_mistake_gets_its_line(make: Callable[[], Data], part: str) -> None:
    assert part in refused(make())


@pytest.mark.parametrize(
    ("leaf", "part"),
    [
        (CA.leaf("my.ns.svc", until=-DAY), "tls.crt expired at 2025-12-31T00:00:00Z: renew it"),
        (
            CA.leaf("my.ns.svc", since=DAY),
            "not valid before 2026-01-02T00:00:00Z: check the clock",
        ),
        (CA.leaf("my.ns.svc", usages=[samples.SERVER]), "lacks the extended key usage clientAuth"),
        (CA.leaf("my.ns.svc", usages=[samples.CLIENT]), "lacks the extended key usage serverAuth"),
        (CA.leaf("my.ns.svc"), "is not for my-0.my.ns.svc: issue it again with each"),
        (CA.leaf(), "is not for my-0.my.ns.svc, my.ns.svc: issue it again"),
        (CA.leaf("my.ns.svc", key=samples.ed25519_key()), "gRPC clients cannot use, like Ed25519"),
        (CA.leaf("my.ns.svc", key=ec.generate_private_key(ec.SECP521R1())), "gRPC clients cannot use"),
        (CA.leaf("my.ns.svc", key=samples.rsa_key(1024)), "an RSA key of 1024 bits: use 2048 or more"),
    ],
)
def test_each_fault_of_a_leaf_gets_its_line(leaf: KeyPair, part: str) -> None:
    assert part in refused(data(leaf.certificate, leaf.key))


def test_no_usage_at_all_means_each() -> None:
    leaf = CA.leaf("*.my.ns.svc", "my.ns.svc", usages=None)
    assert supplied(data(leaf.certificate, leaf.key)).leaf.usages == frozenset(Usage)


def test_a_client_needs_no_names() -> None:
    leaf = CA.leaf(usages=[samples.CLIENT])
    assert (
        supplied(data(leaf.certificate, leaf.key), Demand(usages=frozenset({Usage.CLIENT}))).leaf.names == ()
    )


def test_sha1_is_refused() -> None:
    """Which no library makes any more: the identifier of the algorithm is changed."""
    ca = Issuer(NOW, key=samples.rsa_key())
    leaf = ca.leaf("*.my.ns.svc", "my.ns.svc")
    der = x509.load_pem_x509_certificate(leaf.certificate).public_bytes(Encoding.DER)
    with_sha256, with_sha1 = (bytes.fromhex(f"2a864886f70d0101{last}") for last in ("0b", "05"))
    text = base64.encodebytes(der.replace(with_sha256, with_sha1))
    old = b"-----BEGIN CERTIFICATE-----\n" + text + b"-----END CERTIFICATE-----\n"
    assert "is signed with SHA-1" in refused(data(old, leaf.key, ca.pem))


@pytest.mark.parametrize(
    "ca", [Issuer(NOW, is_ca=None), Issuer(NOW, is_ca=False), Issuer(NOW, may_sign=False)]
)
def test_a_ca_that_is_none_is_refused(ca: Issuer) -> None:
    leaf = ca.leaf("*.my.ns.svc", "my.ns.svc")
    assert "'CN=a CA' is not a CA" in refused(data(leaf.certificate, leaf.key, ca.pem))


def test_a_ca_that_has_expired_is_refused() -> None:
    ca = Issuer(NOW, until=DAY)
    leaf = ca.leaf("*.my.ns.svc", "my.ns.svc")
    message = refused(data(leaf.certificate, leaf.key, ca.pem), now=NOW + 2 * DAY)
    assert message.endswith("ca.crt expired at 2026-01-02T00:00:00Z: renew the CA")


def test_a_certificate_that_others_do_not_trust_is_named() -> None:
    """The certificate of the operator, and the CAs of members."""
    other = Issuer(NOW, name="another CA")
    leaf = other.leaf("*.my.ns.svc", "my.ns.svc")
    own, theirs = supplied(data()), supplied(data(leaf.certificate, leaf.key, other.pem + CA.pem))
    check_trust(own, theirs, where="Secret a", by="Secret b", now=NOW)
    message = "Secret b: tls.crt is not signed by a CA in ca.crt of Secret a: add the certificate of 'CN=ano"
    with pytest.raises(BadCertificate, match=message):
        check_trust(theirs, own, where="Secret b", by="Secret a", now=NOW)


def test_certificates_that_sign_each_other_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Secret is read in a pass: a tenant could keep the operator busy for an hour."""
    checks: list[int] = []
    signs = chains._signs

    def counted(*args: Any) -> bool:
        checks.append(1)
        return signs(*args)

    monkeypatch.setattr(chains, "_signs", counted)
    key = ec.generate_private_key(ec.SECP256R1())
    same = [Issuer(NOW, name="same", key=key) for _ in range(20)]
    leaf = same[0].leaf("*.my.ns.svc", "my.ns.svc")
    others = b"".join(Issuer(NOW, name="same").pem for _ in range(20))
    chain = leaf.certificate + b"".join(each.pem for each in same[1:])
    assert "is not signed by a CA in ca.crt" in refused(data(chain, leaf.key, ca=others))
    assert len(checks) < 2000
