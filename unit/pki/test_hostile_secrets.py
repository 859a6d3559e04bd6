"""Secrets with anything in them are read, or refused in one line that shows no key."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etcd_operator.pki.authority import KeyPair, check, issue, new_ca
from etcd_operator.pki.decode import certificates, private_key
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.profiles import client

NOW, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
CA = new_ca("a CA", now=NOW, duration=DAY)
LEAF = issue(CA, client("a leaf"), now=NOW, duration=DAY)

_PARTS = st.sampled_from(
    [
        b"-----BEGIN CERTIFICATE-----\n",
        b"-----END CERTIFICATE-----\n",
        b"-----BEGIN PRIVATE KEY-----\n",
        b"-----END PRIVATE KEY-----\n",
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n",
        b"MIIB",
        b"AAAA\n",
        LEAF.certificate,
        LEAF.certificate[28:-27],
        LEAF.key[28:-26],
        CA.certificate,
        LEAF.key,
    ]
)
_FILES = st.lists(_PARTS | st.binary(max_size=60), max_size=6).map(b"".join)


def _damaged(original: bytes) -> st.SearchStrategy[bytes]:
    place = st.integers(min_value=0, max_value=len(original) - 1)
    return st.tuples(place, st.integers(min_value=0, max_value=255)).map(
        lambda change: original[: change[0]] + bytes([change[1]]) + original[change[0] + 1 :]
    )


def refusal(read_it: Callable[[], object]) -> BadCertificate | None:
    """Why it is refused; None if it is read."""
    try:
        read_it()
    except BadCertificate as error:
        return error
    return None


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    leaf=_FILES | _damaged(LEAF.certificate),
    key=_FILES | _damaged(LEAF.key),
    ca=_FILES | _damaged(CA.certificate),
)
def test_any_data_is_read_or_refused_in_one_line(leaf: bytes, key: bytes, ca: bytes) -> None:
    found = refusal(lambda: check(KeyPair(leaf, key), KeyPair(ca, CA.key)))
    if found is None:
        assert certificates(leaf, "x")[0].public_key() == private_key(key, "x").public_key()
    else:
        assert str(found).isprintable()
        assert len(str(found)) < 500


@settings(deadline=None)
@given(_FILES | _damaged(LEAF.key))
def test_an_error_about_a_key_shows_nothing_of_it(key: bytes) -> None:
    found = refusal(lambda: private_key(key, "x"))
    if found is not None:
        assert found.__cause__ is None
        assert found.__suppress_context__ or found.__context__ is None
