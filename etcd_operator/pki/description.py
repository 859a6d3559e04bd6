"""What a certificate says, as plain values: for statuses, metrics, logs and comparisons."""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from etcd_operator.pki.decode import certificates
from etcd_operator.pki.profiles import Usage

E = TypeVar("E", bound=x509.ExtensionType)
_USAGES = {ExtendedKeyUsageOID.SERVER_AUTH: Usage.SERVER, ExtendedKeyUsageOID.CLIENT_AUTH: Usage.CLIENT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A certificate without its key."""

    serial: str  # hexadecimal, lower case
    subject: str  # as RFC 4514 has it
    common_name: str  # empty if there is none
    issuer: str
    dns: tuple[str, ...]
    addresses: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    is_ca: bool
    usages: frozenset[Usage]  # both if it restricts neither
    key_id: (
        str  # hexadecimal; of a CA, what `issuer_key_id` of its leafs is; empty if the extension is missing
    )
    issuer_key_id: str  # which key has signed it, whichever certificate that key has; empty as above
    fingerprint: str  # SHA-256 in hexadecimal, lower case
    # SHA-256 of the encoded subject and the public key, in hexadecimal: Go takes CAs for the same by these
    identity: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All subject alternative names."""
        return self.dns + self.addresses

    def is_valid(self, now: datetime) -> bool:
        """Whether it is valid now."""
        return self.not_before <= now <= self.not_after


def describe(data: bytes, where: str = "the certificate") -> Description:
    """The first certificate in PEM, which is the leaf of a chain. Raises `BadCertificate`."""
    return described(certificates(data, where)[0])


def describe_bundle(data: bytes) -> tuple[Description, ...]:
    """The CAs that a file of etcd, or of its clients, trusts, in order. Raises `BadCertificate`."""
    return tuple(map(described, certificates(data, "a bundle of CAs")))


def described(found: x509.Certificate) -> Description:
    """What a certificate says."""
    extensions = found.extensions
    names = _extension(extensions, x509.SubjectAlternativeName)
    constraints = _extension(extensions, x509.BasicConstraints)
    key_id = _extension(extensions, x509.SubjectKeyIdentifier)
    issuer = _extension(extensions, x509.AuthorityKeyIdentifier)
    common = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return Description(
        serial=format(found.serial_number, "x"),
        subject=found.subject.rfc4514_string(),
        common_name=str(common[0].value) if common else "",
        issuer=found.issuer.rfc4514_string(),
        dns=tuple(names.get_values_for_type(x509.DNSName)) if names else (),
        addresses=tuple(map(str, names.get_values_for_type(x509.IPAddress))) if names else (),
        not_before=found.not_valid_before_utc,
        not_after=found.not_valid_after_utc,
        is_ca=constraints is not None and constraints.ca,
        usages=_usages(_extension(extensions, x509.ExtendedKeyUsage)),
        key_id=key_id.digest.hex() if key_id else "",
        issuer_key_id=issuer.key_identifier.hex() if issuer and issuer.key_identifier else "",
        fingerprint=found.fingerprint(SHA256()).hex(),
        identity=sha256(found.subject.public_bytes() + _public_key(found)).hexdigest(),
    )


def _public_key(found: x509.Certificate) -> bytes:
    return found.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _usages(extension: x509.ExtendedKeyUsage | None) -> frozenset[Usage]:
    if extension is None or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in extension:
        return frozenset(Usage)
    return frozenset(_USAGES[each] for each in extension if each in _USAGES)


def _extension(extensions: x509.Extensions, kind: type[E]) -> E | None:
    try:
        return extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
