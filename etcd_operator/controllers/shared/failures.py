"""When status reports a request that failed, with which message, and for how long.

What only another controller or a person can change (a name that is taken, a missing right) is reported
at once. What the next try may resolve is not: that would be one write of status, and another one a
moment later. So a failure is reported after two tries in a row; a Conflict, which only means that
something has changed meanwhile, after many. The count is in memory: after a restart, or when leadership was
lost meanwhile, a failure needs one more try to be reported, nothing else.

Each write of a status wakes its cluster. A message that differs at each try (a port, a duration) would
therefore be a loop: it is replaced only if more than numbers has changed, and not more often than
every few seconds.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from etcd_operator.api.meta import without_numbers
from etcd_operator.clock import Clock
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.objects import Overridden
from etcd_operator.controllers.shared.waits import Epoch
from etcd_operator.errors import Conflict, Forbidden, OperatorError, TerminalError, Unavailable
from etcd_operator.keys import Key

PATIENCE = 2
"""Tries in a row after which a failure is reported that another try may resolve."""

CONFLICT_PATIENCE = 10
"""The same for a Conflict; with the back-off of keys this takes some seconds."""

KEPT = 10.0
"""Seconds for which the message of a failure is kept, unless it is over."""

REQUEST_FAILED = "RequestFailed"
"""The reason for what the API server or etcd did not do, for whatever cause."""


@dataclass
class _Failure:
    epoch: int
    tries: int = 0
    message: str = ""
    since: float = 0.0


@dataclass(eq=False)
class Failures:
    """The failures of the passes of one controller, by key. Safe from any thread."""

    clock: Clock
    epoch: Epoch
    _by_key: dict[Key, _Failure] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def passed(self, key: Key) -> None:
        """The last pass went well, or the object of that key is deleted."""
        with self._lock:
            self._by_key.pop(key, None)

    def failed(self, key: Key, error: Exception) -> str:
        """Count one more; the message to report, empty for none yet."""
        with self._lock:
            failure = self._of_now(key)
            failure.tries += 1
            return self._message(failure, error) if failure.tries >= _patience(error) else ""

    def _of_now(self, key: Key) -> _Failure:
        epoch = self.epoch()
        known = self._by_key.get(key)
        if known is None or known.epoch != epoch:
            known = self._by_key[key] = _Failure(epoch)
        return known

    def _message(self, failure: _Failure, error: Exception) -> str:
        now, message = self.clock.monotonic(), describe(error)
        is_same = without_numbers(message) == without_numbers(failure.message)
        if not failure.message or not (is_same or now - failure.since < KEPT):
            failure.message, failure.since = message, now
        return failure.message


def describe(error: Exception) -> str:
    """The server's own message; for a bug in the operator also the name of the exception."""
    return str(error) if isinstance(error, OperatorError) else f"{type(error).__name__}: {error}"


def reason_of(error: Exception) -> str:
    """The reason under which a failure is reported."""
    match error:
        case NameConflict():
            return "NameConflict"
        case Forbidden():
            return "Forbidden"
        case TerminalError():
            return type(error).__name__
        case OperatorError():
            return REQUEST_FAILED
        case _:
            return "InternalError"


def is_waited_for(error: Exception) -> bool:
    """Whether a change outside of the operator ends it: a pass tries again at a pace of its own.

    The engine does not repeat a pass that ends with a `TerminalError`; but rights come back without an event.
    """
    return isinstance(error, (NameConflict, TerminalError))


def attempt(call: Callable[[], None]) -> Exception | None:
    """Call it; why it failed, whatever that is: the other writes must not depend on it."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 -- raised again when the rest is written
        return error
    return None


LONG = 2.0
"""Seconds after which nothing more is requested in this pass of an API server that does not answer."""


@dataclass
class IndependentWrites:
    """Writes that do not depend on each other: each is made, whether or not earlier ones failed."""

    clock: Clock
    failures: list[Exception] = field(default_factory=list)
    _is_over: bool = False

    def __post_init__(self) -> None:
        self._began = self.clock.monotonic()

    def make(self, call: Callable[[], None]) -> None:
        """Make one, unless the API server keeps callers waiting: workers must not hang for all of them."""
        if self._is_over:
            return
        error = attempt(call)
        if error is not None:
            self.failures.append(error)
        took = self.clock.monotonic() - self._began
        self._is_over = isinstance(error, Unavailable) and took > LONG

    def end(self) -> None:
        """Raise the first failure, if there was one."""
        if self.failures:
            raise self.failures[0]


def _patience(error: Exception) -> int:
    match error:
        case NameConflict() | TerminalError() | Overridden():
            return 1
        case Conflict():
            return CONFLICT_PATIENCE
        case OperatorError():
            return PATIENCE
        case _:
            return 1
