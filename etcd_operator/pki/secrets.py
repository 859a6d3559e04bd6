"""Certificates that users supply in Secrets: read, and checked before a member is created with them.

A Secret has its files under the keys of Kubernetes and cert-manager (tls.crt, tls.key, ca.crt), or under
those that the operator of coreos.com had for each purpose.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.hashes import MD5, SHA1
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from etcd_operator.formats import timestamp
from etcd_operator.pki.chains import leads_to_ca, may_sign
from etcd_operator.pki.decode import certificates, private_key
from etcd_operator.pki.description import Description, described
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.names import covers
from etcd_operator.pki.profiles import Usage

SMALLEST_RSA = 2048
"""Bits."""


Prefix = Literal["tls", "peer", "server", "etcd-client"]
"""How the keys of a Secret begin: those of Kubernetes and cert-manager, and those of CoreOS' operator."""

STANDARD: Prefix = "tls"


@dataclass(frozen=True, slots=True)
class FileNames:
    """The keys of a Secret for one certificate."""

    certificate: str
    key: str
    ca: str

    @property
    def all(self) -> tuple[str, ...]:
        """All three."""
        return self.certificate, self.key, self.ca


def file_names(prefix: Prefix) -> FileNames:
    """The set of keys whose certificate is `PREFIX.crt`."""
    ca = "ca.crt" if prefix == STANDARD else f"{prefix}-ca.crt"
    return FileNames(f"{prefix}.crt", f"{prefix}.key", ca)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplied:
    """What a Secret has, in PEM and without anything else that its files had."""

    prefix: Prefix  # of the keys that were read, see `file_names`
    chain: bytes  # the leaf first
    key: bytes = field(repr=False)
    ca: bytes
    leaf: Description
    cas: tuple[Description, ...]
    anchors: tuple[Description, ...]  # those of `cas` to which the chain leads: who has loaded one accepts it


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a leaf must be good for."""

    usages: frozenset[Usage]
    names: tuple[str, ...] = ()  # DNS names that its server is dialed by, maybe with a wildcard


def read(
    data: Mapping[str, bytes], prefixes: Sequence[Prefix], *, where: str, demand: Demand, now: datetime
) -> Supplied:
    """What the data of a Secret (decoded from base64) has. `where` names the Secret in errors.

    prefixes: of the sets of keys that are possible, see `file_names`. Raises `BadCertificate` for what etcd
    or its clients would refuse.
    """
    prefix = _prefix(data, prefixes, where)
    names = file_names(prefix)
    chain = certificates(data[names.certificate], f"{where}: {names.certificate}")
    key = private_key(data[names.key], f"{where}: {names.key}")
    cas = certificates(data[names.ca], f"{where}: {names.ca}")
    if chain[0].public_key() != key.public_key():
        raise BadCertificate(
            f"{where}: {names.key} is not the key of the first certificate in {names.certificate}"
        )
    _check_key(chain[0].public_key(), f"{where}: {names.certificate}")
    leaf = described(chain[0])
    _check_time(leaf, f"{where}: {names.certificate}", now)
    _check_use(leaf, f"{where}: {names.certificate}", demand)
    _check_cas(cas, f"{where}: {names.ca}")
    _check_signatures(chain, f"{where}: {names.certificate}")
    anchors = [ca for ca in cas if leads_to_ca(chain, [ca], now=now)]
    if not anchors:
        raise BadCertificate(f"{where}: {_why_not(chain, cas, names, now)}")
    return Supplied(
        prefix=prefix,
        chain=b"".join(each.public_bytes(Encoding.PEM) for each in chain),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        ca=b"".join(each.public_bytes(Encoding.PEM) for each in cas),
        leaf=leaf,
        cas=tuple(map(described, cas)),
        anchors=tuple(map(described, anchors)),
    )


def check_trust(found: Supplied, trusting: Supplied, *, where: str, by: str, now: datetime) -> None:
    """Raise `BadCertificate` if a certificate is not trusted by who has the CAs of another Secret."""
    chain, cas = (certificates(each, where) for each in (found.chain, trusting.ca))
    if not leads_to_ca(chain, cas, now=now):
        names, others = file_names(found.prefix), file_names(trusting.prefix)
        raise BadCertificate(
            f"{where}: {names.certificate} is not signed by a CA in {others.ca} of {by}: add the "
            f"certificate of {chain[-1].issuer.rfc4514_string()[:80]!a} there"
        )


def _prefix(data: Mapping[str, bytes], prefixes: Sequence[Prefix], where: str) -> Prefix:
    """The set of keys that is there, as a whole; the first one if several are."""

    def count(prefix: Prefix) -> int:
        return sum(bool(data.get(key)) for key in file_names(prefix).all)

    chosen = max(prefixes, key=count)
    missing = [key for key in file_names(chosen).all if not data.get(key)]
    if missing:
        needed = ", or ".join(", ".join(file_names(prefix).all) for prefix in prefixes)
        raise BadCertificate(f"{where} has no {' and no '.join(missing)}: it needs {needed}")
    return chosen


def _check_key(key: PublicKeyTypes, where: str) -> None:
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < SMALLEST_RSA:
            raise BadCertificate(f"{where} has an RSA key of {key.key_size} bits: use {SMALLEST_RSA} or more")
        return
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1):
        return
    raise BadCertificate(
        f"{where} has a key that gRPC clients cannot use, like Ed25519 or P-521: "
        "use ECDSA P-256, P-384 or RSA"
    )


def _check_time(leaf: Description, where: str, now: datetime) -> None:
    if leaf.not_after < now:
        raise BadCertificate(f"{where} expired at {timestamp(leaf.not_after)}: renew it")
    if leaf.not_before > now:
        raise BadCertificate(
            f"{where} is not valid before {timestamp(leaf.not_before)}: check the clock of its issuer"
        )


def _check_use(leaf: Description, where: str, demand: Demand) -> None:
    lacking = sorted(demand.usages - leaf.usages)
    if lacking:
        raise BadCertificate(
            f"{where} lacks the extended key usage {' and '.join(lacking)}: issue it again with "
            f"{' and '.join(sorted(demand.usages))}"
        )
    missing = [name for name in demand.names if not covers(leaf.dns, name)]
    if missing:
        raise BadCertificate(
            f"{where} is not for {', '.join(missing)}: issue it again with each of these as a subject "
            "alternative name (DNS)"
        )


def _check_cas(cas: Sequence[x509.Certificate], where: str) -> None:
    for ca in cas:
        if not may_sign(ca):
            raise BadCertificate(
                f"{where}: {ca.subject.rfc4514_string()[:80]!a} is not a CA: put the certificate there that "
                "has signed the leaf"
            )


def _check_signatures(chain: Collection[x509.Certificate], where: str) -> None:
    if any(isinstance(each.signature_hash_algorithm, SHA1 | MD5) for each in chain):
        raise BadCertificate(f"{where} is signed with SHA-1 or MD5, which etcd refuses: issue it again")


def _why_not(
    chain: Sequence[x509.Certificate], cas: Sequence[x509.Certificate], names: FileNames, now: datetime
) -> str:
    """Why a chain does not lead to a CA."""
    ends = [described(ca).not_after for ca in cas]
    if max(ends) < now:
        return f"{names.ca} expired at {timestamp(max(ends))}: renew the CA"
    issuer = chain[-1].issuer.rfc4514_string()[:80]
    return (
        f"{names.certificate} is not signed by a CA in {names.ca}: add the certificate of {issuer!a}, or the "
        f"intermediate certificates to {names.certificate}"
    )
