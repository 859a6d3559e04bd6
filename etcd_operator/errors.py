"""The errors of all layers.

`kube` and `etcd` translate foreign exceptions with `raise ... from`; nothing above those packages sees an
HTTP status or a gRPC code.
"""


class OperatorError(Exception):
    """Base of every error that this package raises on purpose."""


class RetryableError(OperatorError):
    """The same call may succeed later; the queue decides when."""


class Conflict(RetryableError):
    """Another write came first (HTTP 409): read again."""


class AlreadyExists(Conflict):
    """A create met an object of that name, perhaps our own, whose reply was lost (HTTP 409)."""


class Unavailable(RetryableError):
    """No response, or one that reports that the server cannot serve now (HTTP 5xx, gRPC UNAVAILABLE).

    `maybe_applied` is true if a write may have taken effect although no reply arrived: check before repeating
    it.
    """

    def __init__(self, message: str, *, maybe_applied: bool = False) -> None:
        super().__init__(message)
        self.maybe_applied = maybe_applied


class NotLeading(Unavailable):
    """The leadership of this process is in doubt: it must not write."""


class Throttled(RetryableError):
    """The server limits requests (HTTP 429); retry after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TerminalError(OperatorError):
    """A retry of the same call cannot succeed until something else changes, most often the object."""


class Invalid(TerminalError):
    """The server rejects the request (HTTP 400, 422; gRPC INVALID_ARGUMENT)."""


class InvalidSpec(Invalid):
    """The user's resource violates a rule; the message names the rule and what to do."""


class Forbidden(TerminalError):
    """The operator lacks a permission (HTTP 401, 403; etcd auth)."""


class AuthEnabled(TerminalError):
    """Requests to etcd need a user, and the operator is about to be none."""


class NamespaceTerminating(Forbidden):
    """The namespace is being deleted: nothing can be created in it (HTTP 403 with that cause)."""


class NotFound(OperatorError):
    """The object, the member or the whole API does not exist (HTTP 404)."""


class Gone(OperatorError):
    """The watch position has expired (HTTP 410): list again."""
