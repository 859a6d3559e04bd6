"""Time as a dependency, so that no test has to sleep.

Every part that waits or writes time stamps has a `Clock`. `monotonic` measures intervals, `now` is for time
stamps that people read. `wait` is the only way to block for a time: a test's clock wakes it when the test
advances the time.
"""

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time and of timed waiting."""

    def now(self) -> datetime:
        """The wall-clock time, aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds since a fixed point; never decreases."""

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait on `condition` (held by the caller) until notified or `timeout` seconds are over.

        May return early, as a condition may: the caller checks again.
        """


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The wall-clock time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since a fixed point; never decreases."""
        return time.monotonic()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait on `condition` until notified or `timeout` seconds are over."""
        condition.wait(timeout)
