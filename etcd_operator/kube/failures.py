"""What an unsuccessful response of the API server means to the operator.

The API server describes a failure with a `Status` object (`message`, `reason`, `code`,
`details.retryAfterSeconds`), in an HTTP body and in watch streams alike; anything between us and it (proxy,
load balancer) responds with text or HTML. Both become one of `etcd_operator.errors` here, with a message of
one line.

Choices
- 401 and 403 are `Forbidden`. While a namespace is being deleted the reason is the same, and the message may
  change with each release: the cause in the details shows it.
- Administrators may give the right on Secrets in chosen namespaces only: where it is missing, the message has
  the command that gives it.
- Every 5xx to a write is `maybe_applied`: "etcdserver: request timed out" is a 500 and a slow webhook a 504,
  both for writes that may have taken effect.
- 429 is never applied: priority-and-fairness and eviction refuse before anything is stored.
- 408 counts as no response; other 4xx (405, 406, 413, 415 ...) are `Invalid`: the same request cannot succeed
  later.
"""

import re
from collections.abc import Mapping

import msgspec
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from etcd_operator.decoding import from_json
from etcd_operator.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NamespaceTerminating,
    NotFound,
    OperatorError,
    Throttled,
    Unavailable,
)

_MAX_MESSAGE = 1000
_DEFAULT_RETRY_AFTER = 1.0
_NO_RIGHT = re.compile(
    r'User "system:serviceaccount:([^"]+)" cannot \w+ resource '
    r'(?:"(?:secrets|configmaps)" in API group ""|"certificates" in API group "cert-manager.io") '
    r'in the namespace "([^"]+)"'
)


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: float | None = None
    causes: list[_Cause] | None = None


class Status(msgspec.Struct):
    """The fields of `v1.Status` that matter here."""

    message: str | None = None
    reason: str | None = None
    code: int = 0
    details: _Details | None = None


def parse_status(body: bytes | msgspec.Raw) -> Status:
    """The `Status` in `body`; its text as the message if it holds none."""
    try:
        return from_json(body, Status)
    except msgspec.DecodeError:
        return Status(message=bytes(body).decode("utf-8", "replace"))


def failure(
    label: str, code: int, status: Status, *, headers: Mapping[str, str] | None = None, is_write: bool = False
) -> OperatorError:
    """The error for a response with `code`. `label` names the request."""
    text = " ".join((status.message or status.reason or "no message").split())
    message = f"{label}: {code}: {text[:_MAX_MESSAGE]}"
    match code:
        case 401 | 403:
            causes = status.details.causes if status.details is not None else None
            is_going = any(cause.reason == "NamespaceTerminating" for cause in causes or ())
            return NamespaceTerminating(message) if is_going else Forbidden(message + _remedy(message))
        case 404:
            return NotFound(message)
        case 409:
            return AlreadyExists(message) if status.reason == "AlreadyExists" else Conflict(message)
        case 410:
            return Gone(message)
        case 429:
            return Throttled(message, retry_after=_retry_after(status, headers or {}))
        case 408:
            return Unavailable(message, maybe_applied=is_write)
        case _ if 400 <= code < 500:
            return Invalid(message)
    return Unavailable(message, maybe_applied=is_write)


def _remedy(message: str) -> str:
    """The command that gives the right whose lack is reported, if a role has only such rights."""
    found = _NO_RIGHT.search(message)
    if found is None:
        return ""
    account, namespace = found.groups()
    return (
        f"; to give the operator this right: kubectl --namespace {namespace} create rolebinding "
        f"etcd-operator-secrets --clusterrole etcd-operator-secrets --serviceaccount {account}"
    )


def _retry_after(status: Status, headers: Mapping[str, str]) -> float:
    """Seconds, from the header (a number or a date) or from the details of the status."""
    if (header := headers.get("Retry-After")) is not None:
        try:
            return float(Retry().parse_retry_after(header))
        except InvalidHeader:
            return _DEFAULT_RETRY_AFTER
    if status.details is not None and status.details.retry_after_seconds:
        return status.details.retry_after_seconds
    return _DEFAULT_RETRY_AFTER
