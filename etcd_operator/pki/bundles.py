"""Bundles of CAs: what etcd, its clients and the operator trust."""

from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from etcd_operator.pki.decode import LARGEST_FILE, MOST_CERTIFICATES, certificates
from etcd_operator.pki.description import Description, described
from etcd_operator.pki.errors import BadCertificate


def bundle(parts: Iterable[bytes]) -> bytes:
    """One file with all certificates of the parts, in their order, each once.

    Of several certificates of one CA (the same subject and key) the one that ends last remains, in the place
    of the first: a client may try only one of them. Raises `BadCertificate` if one is no CA, or if it would
    be larger than etcd and clients accept.
    """
    chosen: dict[bytes, x509.Certificate] = {}
    for part in parts:
        for found in certificates(part, "a bundle of CAs"):
            if not described(found).is_ca:
                raise BadCertificate(f"{found.subject.rfc4514_string()[:80]} in a bundle of CAs is not a CA")
            known = chosen.get(_identity(found))
            if known is None or known.not_valid_after_utc < found.not_valid_after_utc:
                chosen[_identity(found)] = found
    data = b"".join(found.public_bytes(Encoding.PEM) for found in chosen.values())
    if not chosen or len(chosen) > MOST_CERTIFICATES or len(data) > LARGEST_FILE:
        raise BadCertificate(
            f"a bundle of {len(chosen)} CAs with {len(data)} bytes: it must have at least one, and at most "
            f"{MOST_CERTIFICATES} with {LARGEST_FILE} bytes"
        )
    return data


def members(data: bytes) -> tuple[Description, ...]:
    """The CAs of a bundle, in order. Raises `BadCertificate`."""
    return tuple(map(described, certificates(data, "a bundle of CAs")))


def _identity(found: x509.Certificate) -> bytes:
    public = found.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found.subject.public_bytes() + public
