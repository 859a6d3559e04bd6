"""Time as a dependency, so that no test has to sleep.

`Clock` is what every part that waits or stamps is given. `monotonic` measures
intervals, `now` stamps what people read. `wait` is the only way to block for a time:
a test's clock wakes it when the test advances the time.
"""

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time and of timed waiting."""

    def now(self) -> datetime:
        """The wall-clock time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; never goes back."""
        ...

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait on `condition` (held by the caller) until notified or `timeout` seconds are over.

        May return early, as a condition may: the caller looks again.
        """
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The wall-clock time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some fixed point; never goes back."""
        return time.monotonic()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait on `condition` until notified or `timeout` seconds are over."""
        condition.wait(timeout)
