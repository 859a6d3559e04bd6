"""A clock that moves only when a test moves it."""

import threading
from datetime import UTC, datetime, timedelta

from etcd_operator.clock import Clock


class FakeClock(Clock):
    """Time that a test advances; threads blocked in `wait` are woken by `advance`."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._lock = threading.Lock()
        self._waiting: list[threading.Condition] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        with self._lock:
            return self._elapsed

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        if timeout is not None and timeout <= 0:
            return
        with self._lock:
            self._waiting.append(condition)
        try:
            condition.wait(None if timeout is None else 5.0)
        finally:
            with self._lock:
                self._waiting.remove(condition)

    @property
    def waiting(self) -> int:
        """How many threads wait for time to move; one that is yet to begin would wait from then on."""
        with self._lock:
            return len(self._waiting)

    def jump(self, seconds: float) -> None:
        """Set the wall-clock time, as somebody does who sets a clock right or wrong."""
        self._start += timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        """Move time forward and wake everyone who waits."""
        with self._lock:
            self._elapsed += seconds
            waiting = list(self._waiting)
        for condition in waiting:
            with condition:
                condition.notify_all()
