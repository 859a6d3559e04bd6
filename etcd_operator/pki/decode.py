"""PEM of certificates and keys, as users and etcd write it."""

import re

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from etcd_operator.pki.errors import BadCertificate

LARGEST_FILE = 64 * 1024
"""Bytes of one PEM file. gRPC refuses more in one message of a handshake by default, too."""

MOST_CERTIFICATES = 20
"""In one file: each CA of a bundle is named in each handshake."""

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(rb"-----BEGIN (?P<kind>[A-Z ]{0,20}PRIVATE KEY)-----.*?-----END (?P=kind)-----", re.DOTALL)
_READ_BY_GO = (b"PRIVATE KEY", b"RSA PRIVATE KEY", b"EC PRIVATE KEY")


def certificates(data: bytes, where: str) -> list[x509.Certificate]:
    """The certificates of a file, in order; text between them is ignored.

    `where` names the file in errors. Raises `BadCertificate`.
    """
    _bounded(data, where)
    if b"PRIVATE KEY-----" in data:
        raise BadCertificate(f"{where} has a private key: remove it, this file is read by others")
    blocks = _CERTIFICATE.findall(data)
    if not blocks:
        raise BadCertificate(f"{where} has no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    if len(blocks) > MOST_CERTIFICATES:
        raise BadCertificate(f"{where} has {len(blocks)} certificates: at most {MOST_CERTIFICATES} are read")
    return [_certificate(block, where) for block in blocks]


def one_certificate(data: bytes, where: str) -> x509.Certificate:
    """The only certificate of a file. Raises `BadCertificate`."""
    found = certificates(data, where)
    if len(found) > 1:
        raise BadCertificate(f"{where} has {len(found)} certificates instead of one")
    return found[0]


def private_key(data: bytes, where: str) -> PrivateKeyTypes:
    """The private key of a file. Raises `BadCertificate`, whose text and cause show nothing of the file."""
    _bounded(data, where)
    block = _KEY.search(data)
    if block is None:
        raise BadCertificate(f"{where} has no private key in PEM (-----BEGIN PRIVATE KEY-----)")
    if block["kind"] == b"ENCRYPTED PRIVATE KEY" or b"ENCRYPTED" in block[0]:
        raise BadCertificate(f"{where} is encrypted with a passphrase, which etcd cannot read: decrypt it")
    if block["kind"] not in _READ_BY_GO:
        raise BadCertificate(f"{where} is in a form that etcd cannot read: convert it to PKCS #8 in PEM")
    try:
        return load_pem_private_key(block[0], None)
    except Exception:  # noqa: BLE001  # the parser raises what its libraries raise, down to ASN.1
        raise BadCertificate(f"{where} has a private key that cannot be read: make it again") from None


def _certificate(block: bytes, where: str) -> x509.Certificate:
    """All that is read of it later is read once here: fields are parsed when they are asked for."""
    try:
        found = x509.load_pem_x509_certificate(block)
        serial = found.serial_number
        _ = found.subject, found.issuer, found.extensions, found.not_valid_after_utc, found.public_key()
        _ = found.not_valid_before_utc, found.signature_hash_algorithm
    except Exception as error:  # as above
        raise BadCertificate(f"{where} has a certificate that cannot be read: make it again") from error
    if serial <= 0:
        raise BadCertificate(f"{where} has a certificate whose serial number is not positive: make it again")
    return found


def _bounded(data: bytes, where: str) -> None:
    if len(data) > LARGEST_FILE:
        raise BadCertificate(f"{where} has {len(data)} bytes: at most {LARGEST_FILE} are read")
