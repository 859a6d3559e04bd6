"""What etcd's texts and gRPC's codes become."""

import grpc
import pytest

from etcd_operator.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    NotFound,
    OperatorError,
    RetryableError,
    Throttled,
    Unavailable,
)
from etcd_operator.etcd import errors
from etcd_operator.etcd.errors import is_connection_lost, translate

Code = grpc.StatusCode

# etcd's texts with the code that it gives them; the second code is what calls that skip
# etcd's own translation answer with (seen on all of 3.5.35, 3.6.16, 3.7.3).
BY_CODE: dict[grpc.StatusCode, dict[str, type[OperatorError]]] = {
    Code.UNAVAILABLE: {
        "etcdserver: unhealthy cluster": errors.UnhealthyCluster,
        "etcdserver: no leader": Unavailable,
        "etcdserver: leader changed": Unavailable,
        "etcdserver: request timed out": errors.Timeout,
        "etcdserver: request timed out, possibly due to previous leader failure": errors.Timeout,
        "etcdserver: request timed out, possibly due to connection lost": errors.Timeout,
        "etcdserver: server stopped": Unavailable,
    },
    Code.FAILED_PRECONDITION: {
        "etcdserver: re-configuration failed due to not enough started members": errors.UnhealthyCluster,
        "etcdserver: can only promote a learner member which is in sync with leader": errors.NotInSync,
        "etcdserver: can only promote a learner member": errors.NotLearner,
        "etcdserver: too many learner members in cluster": Conflict,
        "etcdserver: rpc not supported for learner": errors.NotForLearner,
        "etcdserver: not leader": RetryableError,
        "etcdserver: bad leader transferee": Conflict,
        "etcdserver: member ID already exist": AlreadyExists,
        "etcdserver: Peer URLs already exists": AlreadyExists,
        "etcdserver: authentication is not enabled": errors.AuthNotEnabled,
    },
    Code.UNKNOWN: {
        "membership: can only promote a learner member": errors.NotLearner,
        "auth: user name is empty": errors.AuthRequired,
    },
    Code.NOT_FOUND: {"etcdserver: member not found": errors.MemberNotFound},
    Code.INVALID_ARGUMENT: {
        "etcdserver: given member URLs are invalid": Invalid,
        "etcdserver: user name is empty": errors.AuthRequired,
        "etcdserver: authentication failed, invalid user ID or password": errors.AuthRequired,
        "etcdserver: revision of auth store is old": errors.AuthRequired,
    },
    Code.DEADLINE_EXCEEDED: {"etcdserver: context deadline exceeded": errors.Timeout},
    Code.RESOURCE_EXHAUSTED: {
        "etcdserver: too many requests": Throttled,
        "etcdserver: mvcc: database space exceeded": Unavailable,
    },
    Code.OUT_OF_RANGE: {
        "etcdserver: mvcc: required revision has been compacted": RetryableError,
        "etcdserver: mvcc: required revision is a future revision": RetryableError,
    },
    Code.DATA_LOSS: {"etcdserver: corrupt cluster": errors.Corrupt},
    Code.UNAUTHENTICATED: {"etcdserver: invalid auth token": errors.AuthRequired},
    Code.PERMISSION_DENIED: {"etcdserver: permission denied": errors.PermissionDenied},
}
TEXTS = [(code, text, error) for code, texts in BY_CODE.items() for text, error in texts.items()]

CODES = [
    (Code.UNAVAILABLE, "Socket closed", Unavailable),
    (Code.DEADLINE_EXCEEDED, "Deadline Exceeded", errors.Timeout),
    (Code.CANCELLED, "Channel closed!", Unavailable),
    (Code.UNKNOWN, "etcdserver: a text of the future", Unavailable),
    (Code.FAILED_PRECONDITION, "etcdserver: a text of the future", Conflict),
    (Code.ALREADY_EXISTS, "", AlreadyExists),
    (Code.NOT_FOUND, "", NotFound),
    (Code.UNIMPLEMENTED, "unknown service", Invalid),
]


@pytest.mark.parametrize(("code", "text", "error"), [*TEXTS, *CODES])
def test_each_refusal_has_its_error(code: Code, text: str, error: type[OperatorError]) -> None:
    translated = translate(code, text, call="MemberAdd at m0", is_write=True)
    assert type(translated) is error
    assert str(translated) == f"MemberAdd at m0: {text or code.name}"


@pytest.mark.parametrize(("_code", "text", "error"), TEXTS)
def test_a_known_text_counts_whatever_the_code(_code: Code, text: str, error: type[OperatorError]) -> None:
    assert type(translate(Code.UNKNOWN, text, call="x", is_write=False)) is error


@pytest.mark.parametrize(
    ("code", "text", "in_doubt"),
    [
        (Code.DEADLINE_EXCEEDED, "Deadline Exceeded", True),
        (Code.UNAVAILABLE, "Socket closed", True),
        (Code.CANCELLED, "Channel closed!", True),
        (Code.UNAVAILABLE, "etcdserver: request timed out", True),
        (Code.UNAVAILABLE, "etcdserver: request timed out, possibly due to connection lost", True),
        (Code.UNAVAILABLE, "etcdserver: leader changed", True),
        (Code.UNAVAILABLE, "etcdserver: server stopped", True),
        (Code.UNAVAILABLE, "etcdserver: unhealthy cluster", False),
        (Code.UNAVAILABLE, "etcdserver: no leader", False),
        (Code.UNAVAILABLE, "failed to connect to all addresses; last error: refused", False),
    ],
)
def test_only_a_write_that_may_have_passed_is_in_doubt(code: Code, text: str, in_doubt: bool) -> None:
    write = translate(code, text, call="x", is_write=True)
    read = translate(code, text, call="x", is_write=False)
    assert isinstance(write, Unavailable)
    assert isinstance(read, Unavailable)
    assert write.maybe_applied is in_doubt
    assert read.maybe_applied is False


def test_a_connection_is_lost_when_grpc_reports_so_but_not_when_etcd_does() -> None:
    assert is_connection_lost(Code.UNAVAILABLE, "Socket closed")
    assert not is_connection_lost(Code.UNAVAILABLE, "etcdserver: no leader")
    assert not is_connection_lost(Code.DEADLINE_EXCEEDED, "Deadline Exceeded")
