"""How long a failed item waits for its next try, and what may shorten that.

- `base` seconds after the first failure, twice as much after each further one, up to `cap`; each
  wait is then shortened at random by up to a half, so that items which failed together do not come
  back together. With a cap of 30 s a failing item is tried every 15 to 30 s: a quorum is at stake,
  so not client-go's 1000 s.
- Failures are counted until `forget`: after a try that really went to its end, or when what is
  asked for has changed. A step that only waits for something is neither success nor failure.
- An event (`hurry`) brings the next try forward, to `pause` seconds after the failure; of two tries
  in a row only one. So a change is seen soon, but an item whose own tries cause events waits
  as long as any other.

Items do not share a limit: one that fails delays no other, and no number of failing items makes
any of them wait longer than `cap`. Items that are forgotten cost no memory. Safe from any thread.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

from etcd_operator.clock import Clock

T = TypeVar("T", bound=Hashable)

_MAX_DOUBLINGS = 62  # far beyond any cap, and far from overflowing a float


@dataclass(slots=True)
class _Record:
    """An item that failed: how often, and when it may be tried again (monotonic)."""

    failures: int = 0
    due: float = 0.0
    due_if_hurried: float = 0.0
    may_hurry: bool = True
    is_hurried: bool = False


class Backoff(Generic[T]):
    """The waits of all failing items. `random` yields floats in [0, 1); a generator of its own by default."""

    def __init__(
        self,
        clock: Clock,
        *,
        base: float = 0.005,
        cap: float = 30.0,
        pause: float = 1.0,
        random: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._base = base
        self._cap = cap
        self._pause = pause
        self._random = random or Random().random  # noqa: S311 - jitter, not a secret
        self._lock = threading.Lock()
        self._records: dict[T, _Record] = {}

    def failed(self, item: T, *, at_least: float = 0.0) -> float:
        """Count one more failure of `item`; returns the seconds to wait before trying again."""
        with self._lock:
            record = self._records.setdefault(item, _Record())
            own = min(self._cap, self._base * 2.0 ** min(record.failures, _MAX_DOUBLINGS))
            seconds = max(at_least, own * (1.0 - self._random() / 2))
            now = self._clock.monotonic()
            record.failures += 1
            record.due = now + seconds
            record.due_if_hurried = now + max(at_least, min(seconds, self._pause))
            record.may_hurry, record.is_hurried = not record.is_hurried, False
            return seconds

    def left(self, item: T) -> float:
        """Seconds until `item` is to be tried again; 0 if it does not wait."""
        with self._lock:
            record = self._records.get(item)
            return self._left(record) if record is not None else 0.0

    def hurry(self, item: T) -> float:
        """Something about `item` has changed: the seconds until it is to be tried (0: now)."""
        with self._lock:
            record = self._records.get(item)
            if record is None:
                return 0.0
            if record.may_hurry and record.due_if_hurried < record.due:
                record.due, record.may_hurry, record.is_hurried = record.due_if_hurried, False, True
            return self._left(record)

    def begin(self, item: T) -> None:
        """A try of `item` begins, however it came about: it waits no longer."""
        with self._lock:
            record = self._records.get(item)
            if record is not None:
                record.due = record.due_if_hurried = 0.0

    def failures(self, item: T) -> int:
        """How often `item` has failed since it was last forgotten."""
        with self._lock:
            record = self._records.get(item)
            return record.failures if record is not None else 0

    def forget(self, item: T) -> None:
        """Start `item` afresh."""
        with self._lock:
            self._records.pop(item, None)

    def _left(self, record: _Record) -> float:
        return max(0.0, record.due - self._clock.monotonic())
