"""Certificates for one test restore, so that nobody else on the machine can read the restored data.

The client certificate names the user root: a backup of a cluster with authentication enabled is read with it.
"""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

from etcd_operator.etcd.channel import TlsCredentials

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

LOOPBACK = "127.0.0.1"
_VALID = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Files of the server, and what a client needs."""

    ca: Path
    certificate: Path
    key: Path
    client: TlsCredentials


def make(folder: Path) -> Certificates:
    """Write a CA and a certificate for the loopback address to `folder`; the clock may be set back a day."""
    from cryptography.hazmat.primitives.serialization import Encoding

    authority_key = _key()
    authority = _certificate("test restore", authority_key)
    server_key, client_key = _key(), _key()
    server = _certificate("etcd", server_key, (authority, authority_key))
    client = _certificate("root", client_key, (authority, authority_key))
    ca = authority.public_bytes(Encoding.PEM)
    return Certificates(
        ca=_write(folder / "ca.pem", ca),
        certificate=_write(folder / "server.pem", server.public_bytes(Encoding.PEM)),
        key=_write(folder / "server-key.pem", _pem(server_key)),
        client=TlsCredentials(ca=ca, certificate=client.public_bytes(Encoding.PEM), key=_pem(client_key)),
    )


def _certificate(
    name: str,
    key: "EllipticCurvePrivateKey",
    issuer: "tuple[Certificate, EllipticCurvePrivateKey] | None" = None,
) -> "Certificate":
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(LOOPBACK))]), critical=False)
    )
    return builder.sign(issuer[1] if issuer else key, SHA256())


def _key() -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _pem(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, data: bytes) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return path
