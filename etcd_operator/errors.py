"""What can go wrong, said once for all layers.

    OperatorError
      RetryableError            try again later; the queue decides when
        Conflict                someone wrote first: look again
          AlreadyExists         the name is taken (for a create this may be our own lost reply)
        Unavailable             no answer, 5xx, gRPC UNAVAILABLE; `maybe_applied` when a write was cut off
          NotLeading            this process may not act now: another one may
        Throttled               429; `retry_after` seconds
      TerminalError             not retried until the object changes
        Invalid                 the API server or etcd refuses what was sent
          InvalidSpec           the user's resource breaks a rule
        Forbidden               the operator lacks a right (RBAC, etcd auth)
      NotFound                  the object, member or API is not there
      Gone                      the watch position has expired: relist

Foreign exceptions are translated at the edge of `kube`, `etcd` and `storage`, with
`raise ... from`; nothing above those packages sees an HTTP status or a gRPC code.
"""


class OperatorError(Exception):
    """Base of every error that this package raises on purpose."""


class RetryableError(OperatorError):
    """The same call may pass later."""


class Conflict(RetryableError):
    """Someone else wrote first (HTTP 409)."""


class AlreadyExists(Conflict):
    """A create met an object of that name (HTTP 409, reason AlreadyExists)."""


class Unavailable(RetryableError):
    """No answer, or an answer that says the server cannot serve now.

    `maybe_applied` is true when a request may have taken effect although no reply
    came: look before repeating it.
    """

    def __init__(self, message: str, *, maybe_applied: bool = False) -> None:
        super().__init__(message)
        self.maybe_applied = maybe_applied


class NotLeading(Unavailable):
    """The leadership of this process is in doubt: it may write nothing."""


class Throttled(RetryableError):
    """The server asks for patience (HTTP 429); `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TerminalError(OperatorError):
    """Repeating the same call cannot help until something else changes."""


class Invalid(TerminalError):
    """The server refuses what was sent (HTTP 400, 422; gRPC INVALID_ARGUMENT)."""


class InvalidSpec(Invalid):
    """The user's resource breaks a rule; the message says which and what to do."""


class Forbidden(TerminalError):
    """The operator lacks a right (HTTP 401, 403; etcd auth)."""


class NotFound(OperatorError):
    """The object, the member or the whole API is not there (HTTP 404)."""


class Gone(OperatorError):
    """The watch position has expired (HTTP 410): list again."""
