"""How long a failed item waits for its next attempt, and what may shorten that.

- `base` seconds after the first failure, twice as much after each further one, up to `cap`; each wait is then
  shortened at random by up to a half, so that items which failed together do not come back together. With a
  cap of 30 s a failing item is tried every 15 to 30 s. client-go's cap is 1000 s; here a quorum is at stake.
- Failures are counted until `forget`: after an attempt that completed, or when the desired state has changed.
  A pass that only waits for something is neither success nor failure.
- An event (`bring_forward`) brings the next attempt forward, to `pause` seconds after the failure, but never
  two attempts in a row. So a change is handled soon, but an item whose own attempts cause events waits as
  long as any other.

Items do not share a limit: one that fails delays no other, and no number of failing items makes any of them
wait longer than `cap`. Forgotten items use no memory. Safe from any thread.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from typing import Generic, TypeVar

from etcd_operator.clock import Clock
from etcd_operator.pacing import Exponential

T = TypeVar("T", bound=Hashable)


@dataclass(slots=True)
class _Failing:
    """An item that failed: how often, and when its next attempt is due (monotonic)."""

    failures: int = 0
    due: float = 0.0
    due_early: float = 0.0
    may_be_early: bool = True
    is_early: bool = False


@dataclass(eq=False)
class Backoff(Generic[T]):
    """The waits of all failing items. `random` returns floats in [0, 1)."""

    clock: Clock
    _: KW_ONLY
    base: float = 0.005
    cap: float = 30.0
    pause: float = 1.0
    random: Callable[[], float] = field(default_factory=lambda: Random().random)  # noqa: S311 - jitter
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _failing: dict[T, _Failing] = field(default_factory=dict)

    def failed(self, item: T, *, at_least: float = 0.0) -> float:
        """Count one more failure of `item`; returns the seconds until its next attempt."""
        with self._lock:
            known = self._failing.setdefault(item, _Failing())
            known.failures += 1
            wait = Exponential(self.base, self.cap).after(known.failures)
            seconds = max(at_least, wait * (1.0 - self.random() / 2))
            now = self.clock.monotonic()
            known.due = now + seconds
            known.due_early = now + max(at_least, min(seconds, self.pause))
            known.may_be_early, known.is_early = not known.is_early, False
            return seconds

    def left(self, item: T) -> float:
        """Seconds until the next attempt at `item`; 0 if it does not wait."""
        with self._lock:
            known = self._failing.get(item)
            return self._left(known) if known is not None else 0.0

    def bring_forward(self, item: T) -> float:
        """Something about `item` has changed: the seconds until its next attempt (0: now)."""
        with self._lock:
            known = self._failing.get(item)
            if known is None:
                return 0.0
            if known.may_be_early and known.due_early < known.due:
                known.due, known.may_be_early, known.is_early = known.due_early, False, True
            return self._left(known)

    def begin(self, item: T) -> None:
        """An attempt at `item` begins, for whatever reason: it waits no longer."""
        with self._lock:
            known = self._failing.get(item)
            if known is not None:
                known.due = known.due_early = 0.0

    def failures(self, item: T) -> int:
        """How often `item` has failed since it was last forgotten."""
        with self._lock:
            known = self._failing.get(item)
            return known.failures if known is not None else 0

    def forget(self, item: T) -> None:
        """Reset the failures of `item`."""
        with self._lock:
            self._failing.pop(item, None)

    def _left(self, known: _Failing) -> float:
        return max(0.0, known.due - self.clock.monotonic())
