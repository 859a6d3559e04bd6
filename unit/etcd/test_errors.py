"""What etcd's texts and gRPC's codes become."""

import grpc
import pytest

from etcd_operator.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    NotFound,
    OperatorError,
    Throttled,
    Unavailable,
)
from etcd_operator.etcd import errors
from etcd_operator.etcd.errors import is_connection_lost, translate

Code = grpc.StatusCode

# etcd's texts with the code that it gives them; the second code is what calls that skip
# etcd's own translation answer with (seen on all of 3.5.35, 3.6.16, 3.7.3).
TEXTS = [
    (Code.UNAVAILABLE, "etcdserver: unhealthy cluster", errors.UnhealthyCluster),
    (
        Code.FAILED_PRECONDITION,
        "etcdserver: re-configuration failed due to not enough started members",
        errors.UnhealthyCluster,
    ),
    (
        Code.FAILED_PRECONDITION,
        "etcdserver: can only promote a learner member which is in sync with leader",
        errors.NotInSync,
    ),
    (Code.FAILED_PRECONDITION, "etcdserver: can only promote a learner member", errors.NotLearner),
    (Code.UNKNOWN, "membership: can only promote a learner member", errors.NotLearner),
    (Code.FAILED_PRECONDITION, "etcdserver: too many learner members in cluster", errors.TooManyLearners),
    (Code.FAILED_PRECONDITION, "etcdserver: rpc not supported for learner", errors.NotForLearner),
    (Code.FAILED_PRECONDITION, "etcdserver: not leader", errors.NotLeader),
    (Code.FAILED_PRECONDITION, "etcdserver: bad leader transferee", Conflict),
    (Code.NOT_FOUND, "etcdserver: member not found", errors.MemberNotFound),
    (Code.FAILED_PRECONDITION, "etcdserver: member ID already exist", errors.PeerURLExists),
    (Code.FAILED_PRECONDITION, "etcdserver: Peer URLs already exists", errors.PeerURLExists),
    (Code.INVALID_ARGUMENT, "etcdserver: given member URLs are invalid", Invalid),
    (Code.UNAVAILABLE, "etcdserver: no leader", errors.NoLeader),
    (Code.UNAVAILABLE, "etcdserver: leader changed", errors.NoLeader),
    (Code.UNAVAILABLE, "etcdserver: request timed out", errors.Timeout),
    (
        Code.UNAVAILABLE,
        "etcdserver: request timed out, possibly due to previous leader failure",
        errors.Timeout,
    ),
    (Code.UNAVAILABLE, "etcdserver: request timed out, possibly due to connection lost", errors.Timeout),
    (Code.DEADLINE_EXCEEDED, "etcdserver: context deadline exceeded", errors.Timeout),
    (Code.FAILED_PRECONDITION, "etcdserver: authentication is not enabled", errors.AuthNotEnabled),
    (Code.UNAVAILABLE, "etcdserver: server stopped", Unavailable),
    (Code.RESOURCE_EXHAUSTED, "etcdserver: too many requests", Throttled),
    (Code.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", Unavailable),
    (
        Code.OUT_OF_RANGE,
        "etcdserver: mvcc: required revision has been compacted",
        errors.RevisionUnavailable,
    ),
    (
        Code.OUT_OF_RANGE,
        "etcdserver: mvcc: required revision is a future revision",
        errors.RevisionUnavailable,
    ),
    (Code.DATA_LOSS, "etcdserver: corrupt cluster", errors.Corrupt),
    (Code.INVALID_ARGUMENT, "etcdserver: user name is empty", errors.AuthRequired),
    (Code.UNKNOWN, "auth: user name is empty", errors.AuthRequired),
    (Code.UNAUTHENTICATED, "etcdserver: invalid auth token", errors.AuthRequired),
    (
        Code.INVALID_ARGUMENT,
        "etcdserver: authentication failed, invalid user ID or password",
        errors.AuthRequired,
    ),
    (Code.INVALID_ARGUMENT, "etcdserver: revision of auth store is old", errors.AuthRequired),
    (Code.PERMISSION_DENIED, "etcdserver: permission denied", errors.PermissionDenied),
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
