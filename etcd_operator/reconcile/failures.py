"""What users read of a request that failed: when it is worth a word, in which words, and for how long.

What only another controller or a person can change (a name that is taken, a missing right) is said at
once. What the next try may mend by itself is not: a status that says so is a write, and another one a
moment later. So a failure is said when it has come twice in a row; a Conflict, which only means that the
world has moved on, when it goes on and on. The count is in memory: after a restart a failure needs one
more try to be said, nothing else.

Each write of a status wakes its cluster. Words that differ at each try (a port, a duration) would
therefore be a loop: they are said anew only if more than numbers has changed, and not more often than
every few seconds.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.errors import Conflict, OperatorError, TerminalError, Unavailable
from etcd_operator.keys import Key
from etcd_operator.reconcile.objects import NameTaken, Overridden

AGAIN = 2
"""Tries in a row after which a failure is said that another try may mend."""

AND_AGAIN = 10
"""The same for a Conflict; with the back-off of keys this takes some seconds."""

NEWS = 10.0
"""Seconds for which the words for a failure stay, unless it is over."""

REQUEST_FAILED = "RequestFailed"
"""The reason for what the API server or etcd did not do, for whatever cause."""

_NUMBERS = re.compile(r"[0-9a-f.:-]*\d[0-9a-f.:-]*")


@dataclass
class _Trouble:
    tries: int = 0
    words: str = ""
    said_at: float = 0.0


@dataclass(frozen=True)
class Failures:
    """The failures of the passes of one controller, by key. Safe from any thread."""

    clock: Clock
    _troubles: dict[Key, _Trouble] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def passed(self, key: Key) -> None:
        """The last pass went well, or the key is gone."""
        with self._lock:
            self._troubles.pop(key, None)

    def failed(self, key: Key, error: Exception) -> str:
        """Count one more; the words to be read, empty for nothing yet."""
        with self._lock:
            trouble = self._troubles.setdefault(key, _Trouble())
            trouble.tries += 1
            return self._words(trouble, error) if trouble.tries >= _patience(error) else ""

    def _words(self, trouble: _Trouble, error: Exception) -> str:
        now, words = self.clock.monotonic(), describe(error)
        is_same = _plain(words) == _plain(trouble.words)
        if not trouble.words or not (is_same or now - trouble.said_at < NEWS):
            trouble.words, trouble.said_at = words, now
        return trouble.words


def describe(error: Exception) -> str:
    """In the server's own words; what is not its fault by its name."""
    return str(error) if isinstance(error, OperatorError) else f"{type(error).__name__}: {error}"


def attempt(call: Callable[[], None]) -> Exception | None:
    """Do it; what it failed for, whatever that is: what else is to be written must not depend on it."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 -- raised again when the rest is written
        return error
    return None


LONG = 2.0
"""Seconds of tries after which an API server that does not answer is asked for nothing more in this pass."""


@dataclass
class Attempts:
    """Writes that do not depend on each other: each is made, whatever became of those before."""

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
        case NameTaken() | TerminalError() | Overridden():
            return 1
        case Conflict():
            return AND_AGAIN
        case OperatorError():
            return AGAIN
        case _:
            return 1


def _plain(words: str) -> str:
    return _NUMBERS.sub("", words)
