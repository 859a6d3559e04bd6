"""What etcd's texts and gRPC's codes become."""

import grpc
import pytest

from etcd_operator.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    NotFound,
    OperatorError,
    Unavailable,
)
from etcd_operator.etcd import errors
from etcd_operator.etcd.errors import is_connection_lost, translate

Code = grpc.StatusCode

TEXTS = [  # the text of etcd counts, whatever the code; one text begins another
    (Code.UNAVAILABLE, "etcdserver: unhealthy cluster", errors.UnhealthyCluster),
    (Code.UNKNOWN, "etcdserver: request timed out, possibly due to connection lost", errors.Timeout),
    (
        Code.FAILED_PRECONDITION,
        "etcdserver: can only promote a learner member which is in sync with leader",
        errors.NotInSync,
    ),
    (Code.UNKNOWN, "membership: can only promote a learner member", errors.NotLearner),
    (Code.UNKNOWN, "auth: user name is empty", errors.AuthRequired),
    (Code.UNKNOWN, "auth: user not found", errors.UserNotFound),
    (Code.FAILED_PRECONDITION, "etcdserver: user name not found", errors.UserNotFound),
    (
        Code.UNKNOWN,
        "auth: authentication failed, password was given for no password user",
        errors.AuthRequired,
    ),
    (Code.FAILED_PRECONDITION, "etcdserver: user name already exists", AlreadyExists),
    (Code.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", Unavailable),
]

CODES = [
    (Code.UNAVAILABLE, "Socket closed", Unavailable),
    (Code.DEADLINE_EXCEEDED, "Deadline Exceeded", errors.Timeout),
    (Code.CANCELLED, "Channel closed!", Unavailable),
    (Code.UNKNOWN, "etcdserver: a text of the future", Unavailable),
    (Code.FAILED_PRECONDITION, "etcdserver: a text of the future", Conflict),
    (Code.ALREADY_EXISTS, "", AlreadyExists),
    (Code.NOT_FOUND, "", NotFound),
    (Code.UNIMPLEMENTED, "unknown service", Invalid),
    (Code.UNAUTHENTICATED, "Hostname Verification Check failed.", Unavailable),
    (Code.UNAUTHENTICATED, "something else", errors.AuthRequired),
]


@pytest.mark.parametrize(("code", "text", "error"), [*TEXTS, *CODES])
def test_each_refusal_has_its_error(code: Code, text: str, error: type[OperatorError]) -> None:
    translated = translate(code, text, call="MemberAdd at m0", is_write=True)
    assert type(translated) is error
    assert str(translated) == f"MemberAdd at m0: {text or code.name}"


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
