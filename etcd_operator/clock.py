"""Time as a dependency, so that no test has to sleep.

Every part that waits or writes time stamps has a `Clock`; that of a test moves only when the test moves it.
"""

import threading
import time
from datetime import UTC, datetime


class Clock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The wall-clock time, aware, in UTC: for time stamps that people read."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since a fixed point, to measure intervals; never decreases."""
        return time.monotonic()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait on `condition` (held by the caller) until notified or `timeout` seconds are over.

        The only way to block for a time. May return early, as a condition may: the caller checks again.
        """
        condition.wait(timeout)
