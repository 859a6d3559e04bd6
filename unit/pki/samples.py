"""Certificates of users, as other tools make them: what the product itself never issues."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from etcd_operator.pki.authority import KeyPair

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
DAY = timedelta(days=1)
YEAR = 365 * DAY


@cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


class Issuer:
    """A CA with all liberties."""

    def __init__(
        self,
        now: datetime,
        *,
        parent: "Issuer | None" = None,
        name: str = "a CA",
        is_ca: bool | None = True,
        until: timedelta = YEAR,
        path_length: int | None = None,
        may_sign: bool | None = None,
        key: CertificateIssuerPrivateKeyTypes | None = None,
    ) -> None:
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._now = now
        signer = parent or self
        builder = self._builder(self.subject, signer.subject, self.key, until)
        if is_ca is not None:
            length = path_length if is_ca else None
            builder = builder.add_extension(
                x509.BasicConstraints(ca=is_ca, path_length=length), critical=True
            )
        if may_sign is not None:
            flags = {"key_agreement": True, "crl_sign": False, "key_cert_sign": may_sign}
            rest = dict.fromkeys(
                (
                    "digital_signature",
                    "content_commitment",
                    "key_encipherment",
                    "data_encipherment",
                    "encipher_only",
                    "decipher_only",
                ),
                False,
            )
            builder = builder.add_extension(x509.KeyUsage(**flags, **rest), critical=True)
        self.certificate = builder.sign(signer.key, SHA256())

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def leaf(
        self,
        *names: str,
        usages: Sequence[ObjectIdentifier] | None = (SERVER, CLIENT),
        key: CertificateIssuerPrivateKeyTypes | None = None,
        since: timedelta = timedelta(),
        until: timedelta = 90 * DAY,
        name: str = "a leaf",
        addresses: Sequence[str] = (),
    ) -> KeyPair:
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, self.subject, key, until, since)
        if usages is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if names or addresses:
            general: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
            general += [x509.IPAddress(ip_address(each)) for each in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(general), critical=False)
        signed = builder.sign(self.key, SHA256())
        return KeyPair(
            signed.public_bytes(Encoding.PEM),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )

    def _builder(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        key: CertificateIssuerPrivateKeyTypes,
        until: timedelta,
        since: timedelta = timedelta(),
    ) -> x509.CertificateBuilder:
        first = min(self._now + since, self._now + until - timedelta(seconds=1))
        return (
            x509.CertificateBuilder(issuer_name=issuer, subject_name=subject, public_key=key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(first if until > timedelta() else self._now + until - DAY)
            .not_valid_after(self._now + until)
        )


@cache
def ed25519_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()
