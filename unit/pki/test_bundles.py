"""Bundles: order, duplicates, sizes."""

from datetime import UTC, datetime, timedelta

import pytest

from etcd_operator.pki import profiles
from etcd_operator.pki.authority import issue, new_ca, renewed_ca
from etcd_operator.pki.bundles import bundle, members
from etcd_operator.pki.decode import LARGEST_FILE, MOST_CERTIFICATES
from etcd_operator.pki.description import describe
from etcd_operator.pki.errors import BadCertificate

DAY = timedelta(days=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C = (new_ca(name, now=NOW, duration=DAY) for name in "abc")
LATER = renewed_ca(A, now=NOW, duration=2 * DAY)


def test_the_order_is_kept_and_each_ca_is_there_once() -> None:
    made = bundle([B.certificate, A.certificate + b"some text\n" + B.certificate, C.certificate])
    assert made == B.certificate + A.certificate + C.certificate
    assert [each.fingerprint for each in members(made)] == [
        describe(each.certificate).fingerprint for each in (B, A, C)
    ]


def test_of_a_renewed_ca_the_certificate_remains_that_ends_last() -> None:
    expected = LATER.certificate + B.certificate
    assert bundle([A.certificate, B.certificate, LATER.certificate]) == expected
    assert bundle([LATER.certificate, B.certificate, A.certificate]) == expected


def test_a_leaf_is_refused() -> None:
    leaf = issue(A, profiles.client("root"), now=NOW, duration=DAY)
    with pytest.raises(BadCertificate, match="CN=root in a bundle of CAs is not a CA"):
        bundle([A.certificate, leaf.certificate])


def test_a_private_key_is_refused() -> None:
    with pytest.raises(BadCertificate, match="has a private key: remove it"):
        bundle([A.certificate + A.key])


def test_a_bundle_is_neither_empty_nor_too_large() -> None:
    many = [new_ca("a", now=NOW, duration=DAY).certificate for _ in range(MOST_CERTIFICATES + 1)]
    bundle(many[1:])
    for parts in ([], many):
        with pytest.raises(BadCertificate, match=f"at most {MOST_CERTIFICATES}"):
            bundle(parts)
    with pytest.raises(BadCertificate, match=f"at most {MOST_CERTIFICATES} are read"):
        bundle([b"".join(many)])
    with pytest.raises(BadCertificate, match=f"at most {LARGEST_FILE} are read"):
        bundle([A.certificate + b" " * LARGEST_FILE])
