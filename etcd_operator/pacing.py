"""How long to wait before another try, and how often something may happen: arithmetic, no waiting."""

import math
from collections import OrderedDict
from dataclasses import dataclass

from etcd_operator.clock import Clock

_MAX_STEPS = 62  # far beyond any cap, and far from overflowing a float


@dataclass(frozen=True, slots=True)
class Exponential:
    """Waits that grow from `first` by `factor` up to `cap`, in seconds. Jitter is the caller's."""

    first: float
    cap: float = math.inf
    factor: float = 2.0

    def after(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row (1: the first)."""
        return min(self.cap, self.first * self.factor ** min(failures - 1, _MAX_STEPS))


class TokenBuckets:
    """A token bucket for each key: `burst` at once, then one every `refill_seconds`.

    Remembers the `capacity` keys used last; a forgotten key has a full bucket. Not thread-safe.
    """

    def __init__(self, clock: Clock, *, burst: int, refill_seconds: float, capacity: int) -> None:
        self._clock = clock
        self._burst, self._refill, self._capacity = float(burst), refill_seconds, capacity
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> bool:
        """Take a token of `key` if there is one; whether there was."""
        now = self._clock.monotonic()
        tokens, since = self._buckets.pop(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) / self._refill)
        taken = tokens >= 1.0
        self._buckets[key] = (tokens - 1.0 if taken else tokens, now)
        if len(self._buckets) > self._capacity:
            self._buckets.popitem(last=False)
        return taken
