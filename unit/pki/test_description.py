"""What bundles of CAs say: order, what is refused, sizes."""

from datetime import UTC, datetime, timedelta

import pytest

from etcd_operator.pki.authority import new_ca
from etcd_operator.pki.decode import LARGEST_FILE, MOST_CERTIFICATES
from etcd_operator.pki.description import describe, describe_bundle
from etcd_operator.pki.errors import BadCertificate

DAY = timedelta(days=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C = (new_ca(name, now=NOW, duration=DAY) for name in "abc")


def test_the_order_is_kept() -> None:
    made = B.certificate + A.certificate + b"some text\n" + C.certificate
    assert describe_bundle(made) == tuple(describe(each.certificate) for each in (B, A, C))


def test_a_private_key_is_refused() -> None:
    with pytest.raises(BadCertificate, match="has a private key: remove it"):
        describe_bundle(A.certificate + A.key)


def test_a_bundle_is_neither_empty_nor_too_large() -> None:
    many = [new_ca("a", now=NOW, duration=DAY).certificate for _ in range(MOST_CERTIFICATES + 1)]
    assert len(describe_bundle(b"".join(many[1:]))) == MOST_CERTIFICATES
    with pytest.raises(BadCertificate, match="has no certificate in PEM"):
        describe_bundle(b"")
    with pytest.raises(BadCertificate, match=f"at most {MOST_CERTIFICATES} are read"):
        describe_bundle(b"".join(many))
    with pytest.raises(BadCertificate, match=f"at most {LARGEST_FILE} are read"):
        describe_bundle(A.certificate + b" " * LARGEST_FILE)
