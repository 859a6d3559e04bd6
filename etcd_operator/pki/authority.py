"""Certificate authorities, and the leafs that they issue."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from etcd_operator.formats import timestamp
from etcd_operator.pki.decode import one_certificate, private_key
from etcd_operator.pki.description import described
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.profiles import Leaf, Usage, common_name

BACKDATING = timedelta(minutes=5)
"""How far the clock of a reader may be behind."""

_USAGES = {Usage.SERVER: ExtendedKeyUsageOID.SERVER_AUTH, Usage.CLIENT: ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate with its key, in PEM; no representation shows the key."""

    certificate: bytes
    key: bytes = field(repr=False)


def new_ca(name: str, *, now: datetime, duration: timedelta) -> KeyPair:
    """A CA with a new key. `name` is its common name.

    Its subject also has a digest of the key, so two CAs of one name differ: clients look for the issuer of a
    leaf by its subject. Raises `BadCertificate` for a name that does not fit in a certificate.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, common_name(name)),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, _digest(key)),
        ]
    )
    return _self_signed(subject, key, now=now, duration=duration)


def renewed_ca(ca: KeyPair, *, now: datetime, duration: timedelta) -> KeyPair:
    """The CA with another end, and the same key and subject: it verifies the leafs that are issued already.

    Raises `BadCertificate` if the CA cannot be read, or its key is not its own.
    """
    certificate, key = _read(ca)
    return _self_signed(certificate.subject, key, now=now, duration=duration)


def issue(ca: KeyPair, leaf: Leaf, *, now: datetime, duration: timedelta) -> KeyPair:
    """A leaf with a new key, which does not outlive its CA.

    Raises `BadCertificate` if the CA has expired, or cannot be read.
    """
    issuer, issuer_key = _read(ca)
    end = issuer.not_valid_after_utc
    if end <= now:
        raise BadCertificate(f"the CA expired at {timestamp(end)}: renew it first")
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_subject(leaf), issuer.subject, key, now=now, until=min(now + duration, end))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(is_ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_USAGES[leaf.usage]]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    names = [
        *(x509.DNSName(name) for name in leaf.names.dns),
        *(x509.IPAddress(found) for found in leaf.names.addresses),
    ]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _signed(builder, key, signer=issuer_key)


def check(pair: KeyPair, ca: KeyPair) -> None:
    """Raises `BadCertificate` if the key is not that of the leaf, or the CA it names has not signed it.

    A leaf that names another CA is not checked against this one.
    """
    leaf, key = one_certificate(pair.certificate, "the leaf"), private_key(pair.key, "the key of the leaf")
    if leaf.public_key() != key.public_key():
        raise BadCertificate("the key of the leaf does not belong to its certificate")
    issuer = one_certificate(ca.certificate, "the CA's certificate")
    if described(leaf).issuer_key_id != described(issuer).key_id:
        return
    try:
        leaf.verify_directly_issued_by(issuer)
    except (InvalidSignature, TypeError, ValueError):
        raise BadCertificate("the leaf is not signed by the CA that it names") from None


def _self_signed(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, now: datetime, duration: timedelta
) -> KeyPair:
    builder = (
        _builder(subject, subject, key, now=now, until=now + duration)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(is_ca=True), critical=True)
    )
    return _signed(builder, key, signer=key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    """Raises `BadCertificate` if the certificate would never be valid."""
    if until <= now:
        raise BadCertificate("a certificate must be valid for some time: its duration is not positive")
    public = key.public_key()
    return (
        x509.CertificateBuilder(issuer_name=issuer, subject_name=subject, public_key=public)
        .serial_number(x509.random_serial_number())
        .not_valid_before((now - BACKDATING).replace(microsecond=0))
        .not_valid_after(until.replace(microsecond=0))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    *,
    signer: ec.EllipticCurvePrivateKey,
) -> KeyPair:
    return KeyPair(
        certificate=builder.sign(signer, SHA256()).public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _subject(leaf: Leaf) -> x509.Name:
    attributes = ((NameOID.ORGANIZATION_NAME, leaf.organization), (NameOID.COMMON_NAME, leaf.common_name))
    return x509.Name([x509.NameAttribute(kind, text) for kind, text in attributes if text])


def _key_usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _read(ca: KeyPair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate = one_certificate(ca.certificate, "the CA's certificate")
    key = private_key(ca.key, "the CA's key")
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise BadCertificate("the key of the CA does not belong to its certificate")
    return certificate, key


def _digest(key: ec.EllipticCurvePrivateKey) -> str:
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(public).hexdigest()[:16]
