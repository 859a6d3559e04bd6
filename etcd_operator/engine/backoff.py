"""How long to wait before a failed item is tried again.

Two limits, the larger holds:

- per item: `base` seconds after the first failure, twice as much after each further one, up to
  `cap`; each wait is then shortened at random by up to a half, so that items which failed together
  do not come back together. With the default cap of 60 s a failing item is tried every 30 to 60 s:
  a quorum is at stake, so not client-go's 1000 s.
- over all items: a token bucket of `burst` retries, refilled with `rate` a second.

`forget` starts an item afresh: after a success, and when a new event says that something changed.
Items that are forgotten cost no memory. Safe from any thread.
"""

import threading
from collections import Counter
from collections.abc import Callable, Hashable
from random import Random
from typing import Generic, TypeVar

from etcd_operator.clock import Clock

T = TypeVar("T", bound=Hashable)

_MAX_DOUBLINGS = 62  # far beyond any cap, and far from overflowing a float


class TokenBucket:
    """`burst` tokens at first, `rate` new ones a second; a taker in debt is told how long to wait."""

    def __init__(self, clock: Clock, *, rate: float = 10.0, burst: int = 100) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._counted_at = clock.monotonic()

    def reserve(self) -> float:
        """Take a token; returns the seconds until it is really there (0 when it is)."""
        with self._lock:
            now = self._clock.monotonic()
            earned = (now - self._counted_at) * self._rate
            self._tokens = min(self._burst, self._tokens + earned) - 1
            self._counted_at = now
            return max(0.0, -self._tokens / self._rate)


class Backoff(Generic[T]):
    """The two limits together. `random` yields floats in [0, 1); a generator of its own by default."""

    def __init__(
        self,
        bucket: TokenBucket,
        *,
        base: float = 0.005,
        cap: float = 60.0,
        random: Callable[[], float] | None = None,
    ) -> None:
        self._bucket = bucket
        self._base = base
        self._cap = cap
        self._random = random or Random().random  # noqa: S311 - jitter, not a secret
        self._lock = threading.Lock()
        self._failures: Counter[T] = Counter()

    def failed(self, item: T) -> float:
        """Count one more failure of `item`; returns the seconds to wait before trying again."""
        with self._lock:
            doublings = min(self._failures[item], _MAX_DOUBLINGS)
            self._failures[item] += 1
        own = min(self._cap, self._base * 2.0**doublings)
        return max(own * (1.0 - self._random() / 2), self._bucket.reserve())

    def failures(self, item: T) -> int:
        """How often `item` has failed since it was last forgotten."""
        with self._lock:
            return self._failures[item]

    def forget(self, item: T) -> None:
        """Start `item` afresh."""
        with self._lock:
            self._failures.pop(item, None)
