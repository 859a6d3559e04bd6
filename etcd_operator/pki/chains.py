"""Whether a leaf leads to a CA, as etcd and its clients decide it.

Deliberately simple: names, signatures, validity and what a CA may sign. Constraints of names are left to the
handshake, which shows every other reason of a refusal.
"""

from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from etcd_operator.pki.decode import certificates
from etcd_operator.pki.description import described

LONGEST = 5
"""Intermediate certificates between a leaf and a CA."""


def leads_to_ca(chain: Sequence[x509.Certificate], cas: Sequence[x509.Certificate], *, now: datetime) -> bool:
    """Whether one of the CAs has signed the first of the chain, directly or by way of others of the chain.

    Each certificate is looked at once, by the shortest way: a Secret could have many that sign each other.
    """
    found, rest = [chain[0]], list(chain[1:])
    for below in range(LONGEST + 1):
        if any(each == ca or _signs(ca, each, below, now) for each in found for ca in cas):
            return True
        found = [issuer for issuer in rest if any(_signs(issuer, each, below, now) for each in found)]
        rest = [each for each in rest if each not in found]
    return False


def anchor(chain: bytes, bundle: bytes, *, now: datetime) -> x509.Certificate | None:
    """The CA of a bundle to which a chain leads; None if there is none. Raises `BadCertificate`."""
    found = certificates(chain, "the chain")
    cas = certificates(bundle, "the bundle of CAs")
    return next((ca for ca in cas if leads_to_ca(found, [ca], now=now)), None)


def _signs(issuer: x509.Certificate, found: x509.Certificate, below: int, now: datetime) -> bool:
    """Whether `issuer` is a valid CA that has signed `found`, and may have as many CAs below it."""
    if not may_sign(issuer) or not described(issuer).is_valid(now):
        return False
    length = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length
    if length is not None and length < below:
        return False
    try:
        found.verify_directly_issued_by(issuer)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    return True


def may_sign(found: x509.Certificate) -> bool:
    """Whether it is the certificate of a CA, and its key may sign certificates."""
    if not described(found).is_ca:
        return False
    try:
        return found.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True
