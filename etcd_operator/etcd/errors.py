"""etcd's refusals and gRPC's failures as errors of this project.

A refusal has a class of its own where a caller distinguishes it. `maybe_applied` is true for a write whose
outcome is unknown: check before repeating it.

etcd's error texts decide (rpctypes of 3.5 to 3.7 agree on them); codes differ between versions and calls, so
a code decides only if the text is unknown.
"""

import errno
import os
import re
from typing import NamedTuple

import grpc

from etcd_operator.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    OperatorError,
    RetryableError,
    Throttled,
    Unavailable,
)


class Timeout(Unavailable):
    """The deadline passed, the caller's or etcd's own (about 7 s)."""


class UnhealthyCluster(Unavailable):
    """etcd refuses a change of members: too few voters have been connected for 5 s.

    Retry for 6 s, then find a failed voter.
    """


class NotInSync(RetryableError):
    """The learner has not caught up with the leader, or was never started."""


class NotForLearner(RetryableError):
    """A learner answers Status and serializable reads only: call a voter."""


class NotLearner(Conflict):
    """The member to be promoted is a voter already."""


class Corrupt(RetryableError):
    """Data is damaged: members' data differ, or a snapshot's bytes are not those that etcd sent."""


class NotProbed(RetryableError):
    """This process lacks the resources to call (files, threads), which proves nothing about the member."""


class AuthNotEnabled(Conflict):
    """Authenticate was called, but the cluster requires no user."""


class MemberNotFound(NotFound):
    """No member has that ID."""


class AuthRequired(Forbidden):
    """etcd requires a user; the call had none, an unknown one, a wrong password or a stale token."""


class UserNotFound(AuthRequired):
    """etcd has no such user: the one that a call is about, or the caller's own."""


class PermissionDenied(Forbidden):
    """The user lacks the right."""


class RoleNotFound(NotFound):
    """No role has that name."""


class NotGranted(Conflict):
    """The user does not have the role, or the role not the permission."""


class _Refusal(NamedTuple):
    """What a text of etcd means; `in_doubt` if a write may have passed all the same."""

    text: str
    error: type[OperatorError]
    in_doubt: bool = False


_NO_FILES = os.strerror(errno.EMFILE)

# Matched as prefixes, in this order: one text begins another.
_REFUSALS = (
    _Refusal("unhealthy cluster", UnhealthyCluster),
    _Refusal("re-configuration failed due to not enough started members", UnhealthyCluster),
    _Refusal("can only promote a learner member which is in sync with leader", NotInSync),
    _Refusal("can only promote a learner member", NotLearner),
    _Refusal("too many learner members in cluster", Conflict),
    _Refusal("rpc not supported for learner", NotForLearner),
    _Refusal("not leader", RetryableError),
    _Refusal("bad leader transferee", Conflict),
    _Refusal("member not found", MemberNotFound),
    _Refusal("member ID already exist", AlreadyExists),
    _Refusal("Peer URLs already exists", AlreadyExists),
    _Refusal("given member URLs are invalid", Invalid),
    _Refusal("no leader", Unavailable),
    _Refusal("leader changed", Unavailable, in_doubt=True),
    _Refusal("request timed out", Timeout, in_doubt=True),
    _Refusal("context deadline exceeded", Timeout, in_doubt=True),
    _Refusal("request canceled", Unavailable, in_doubt=True),
    _Refusal("server stopped", Unavailable, in_doubt=True),
    _Refusal("not capable", Unavailable),
    _Refusal("too many requests", Throttled),
    _Refusal("mvcc: database space exceeded", Unavailable),
    _Refusal("mvcc: required revision has been compacted", RetryableError),
    _Refusal("mvcc: required revision is a future revision", RetryableError),
    _Refusal("corrupt cluster", Corrupt),
    _Refusal("authentication is not enabled", AuthNotEnabled),
    _Refusal("user name is empty", AuthRequired),
    # Also: that a user without a password gave one.
    _Refusal("authentication failed", AuthRequired),
    _Refusal("invalid auth token", AuthRequired),
    _Refusal("revision of auth store is old", AuthRequired),
    _Refusal("permission denied", PermissionDenied),
    # Where 3.5 does not translate its own errors, there is no "name" in them.
    _Refusal("user name not found", UserNotFound),
    _Refusal("user not found", UserNotFound),
    _Refusal("user name already exists", AlreadyExists),
    _Refusal("user already exists", AlreadyExists),
    _Refusal("role name not found", RoleNotFound),
    _Refusal("role not found", RoleNotFound),
    _Refusal("role name already exists", AlreadyExists),
    _Refusal("role already exists", AlreadyExists),
    _Refusal("role is not granted to the user", NotGranted),
    _Refusal("permission is not granted to the role", NotGranted),
    _Refusal("root user does not", Conflict),
    _Refusal("invalid auth management", Invalid),
)

_CODES: dict[grpc.StatusCode, type[OperatorError]] = {
    grpc.StatusCode.DEADLINE_EXCEEDED: Timeout,
    grpc.StatusCode.INVALID_ARGUMENT: Invalid,
    grpc.StatusCode.OUT_OF_RANGE: Invalid,
    grpc.StatusCode.FAILED_PRECONDITION: Conflict,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: AuthRequired,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Throttled,
    grpc.StatusCode.DATA_LOSS: Corrupt,
    grpc.StatusCode.UNIMPLEMENTED: Invalid,
}

# etcd prefixes its texts with the name of a package, which depends on the call.
_TEXT = re.compile(r"^(?:etcdserver|auth|membership|raft): (.*)", re.DOTALL)

# gRPC's texts if no connection was established: nothing can have been sent.
_WRONG_SERVER = "Hostname Verification Check failed"
"""gRPC's text, with UNAUTHENTICATED, if the certificate of the server has another name (grpcio 1.85)."""

_NEVER_SENT = (
    "failed to connect to all addresses",
    "DNS resolution failed",
    "Name resolution failure",
    _WRONG_SERVER,
)


def translate(code: grpc.StatusCode, details: str, *, call: str, is_write: bool) -> OperatorError:
    """The error that `code` and `details` of a failed gRPC call stand for.

    `call` names method and endpoint in the message.
    """
    message = f"{call}: {details or code.name}"
    refusal = _refusal(details)
    if refusal is not None:
        return _make(refusal.error, message, maybe_applied=is_write and refusal.in_doubt)
    in_doubt = not details.startswith(_NEVER_SENT)
    error = Unavailable if details.startswith(_WRONG_SERVER) else _CODES.get(code, Unavailable)
    return _make(error, message, maybe_applied=is_write and in_doubt)


def is_connection_lost(code: grpc.StatusCode, details: str) -> bool:
    """Whether the connection itself failed; etcd also returns UNAVAILABLE over a working one."""
    if details.startswith(_WRONG_SERVER):
        return True
    return code is grpc.StatusCode.UNAVAILABLE and _TEXT.match(details) is None


def is_own_lack(details: str) -> bool:
    """Whether a call failed inside this process, for lack of a file descriptor (EMFILE, ENFILE)."""
    return _NO_FILES in details


def _refusal(details: str) -> _Refusal | None:
    match = _TEXT.match(details)
    if match is None:
        return None
    return next((refusal for refusal in _REFUSALS if match[1].startswith(refusal.text)), None)


def _make(error: type[OperatorError], message: str, *, maybe_applied: bool) -> OperatorError:
    if issubclass(error, Unavailable):
        return error(message, maybe_applied=maybe_applied)
    return error(message)
