"""Secrets with anything in them are read, or refused in one line that shows no key."""

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etcd_operator.pki.decode import certificates, private_key
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.secrets import Supplied
from unit.pki.test_secrets import CA, LEAF, data, supplied

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
        CA.pem,
        LEAF.key,
    ]
)
_FILES = st.lists(_PARTS | st.binary(max_size=60), max_size=6).map(b"".join)


def _damaged(original: bytes) -> st.SearchStrategy[bytes]:
    place = st.integers(min_value=0, max_value=len(original) - 1)
    return st.tuples(place, st.integers(min_value=0, max_value=255)).map(
        lambda change: original[: change[0]] + bytes([change[1]]) + original[change[0] + 1 :]
    )


def outcome(read_it: Callable[[], Supplied | object]) -> object:
    """What is read, or the error."""
    try:
        return read_it()
    except BadCertificate as error:
        return error


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    leaf=_FILES | _damaged(LEAF.certificate),
    key=_FILES | _damaged(LEAF.key),
    ca=_FILES | _damaged(CA.pem),
)
def test_any_data_is_read_or_refused_in_one_line(leaf: bytes, key: bytes, ca: bytes) -> None:
    found = outcome(lambda: supplied(data(leaf, key, ca)))
    if isinstance(found, Supplied):
        assert certificates(found.chain, "x")[0].public_key() == private_key(found.key, "x").public_key()
    else:
        assert str(found).isprintable()
        assert len(str(found)) < 500


@settings(deadline=None)
@given(_FILES | _damaged(LEAF.key))
def test_an_error_about_a_key_shows_nothing_of_it(key: bytes) -> None:
    found = outcome(lambda: private_key(key, "x"))
    if isinstance(found, BadCertificate):
        assert found.__cause__ is None
        assert found.__suppress_context__ or found.__context__ is None
