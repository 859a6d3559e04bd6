"""A queue of keys for level-triggered work.

What it promises:

1. Fair: items are taken in the order in which they were added.
2. One worker per item: an item that is being processed is handed to nobody else, and an
   item added many times before it is taken is taken once.
3. Many producers and many consumers may use it at once, from any thread.
4. Nothing is lost: an item added while it is being processed is processed again, after the
   worker at it has called `done`.
5. It drains: after `shut_down` new items are refused, those waiting are still handed out, and
   then every `get` raises `ShutDown`; `shut_down_with_drain` also waits for the work in hand.

What it does not promise: persistence, a bound on its length (it holds at most one entry per
distinct item), or a limit on how long a worker keeps an item; `longest_running_seconds` shows
one that hangs. Whoever takes an item must call `done`, also after a failure.
"""

import threading
from collections import deque
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from etcd_operator.clock import Clock

T = TypeVar("T", bound=Hashable)


class ShutDown(Exception):
    """The queue is shut down and nothing is left to take."""


class QueueMetrics(Protocol):
    """What a queue reports as it happens; all durations are seconds."""

    def added(self) -> None:
        """An item was accepted (a duplicate is not)."""
        ...

    def taken(self, waited: float) -> None:
        """An item went to a worker, `waited` after it was added."""
        ...

    def finished(self, worked: float) -> None:
        """A worker is done with an item that it took `worked` ago."""
        ...


class QueueGauges(Protocol):
    """What can be asked of a queue at any time, by a scrape of the metrics."""

    @property
    def depth(self) -> int:
        """How many items wait for a worker."""
        ...

    @property
    def in_flight(self) -> int:
        """How many items are being processed."""
        ...

    def unfinished_seconds(self) -> float:
        """How long the items in flight have been worked at, added up."""
        ...

    def longest_running_seconds(self) -> float:
        """For how long the oldest item in flight has been worked at; 0 without any."""
        ...


class WorkQueue(Generic[T]):
    """The queue described above.

    Invariant: an item is in `_waiting` or in `_started`, never in both; `_added` holds the items
    that are due for processing: all of `_waiting`, and those of `_started` that were added again.
    """

    def __init__(self, clock: Clock, metrics: QueueMetrics | None = None) -> None:
        self._clock = clock
        self._metrics = metrics
        self._waiting: deque[T] = deque()
        self._added: dict[T, float] = {}
        self._started: dict[T, float] = {}
        self._taken_at = clock.monotonic()
        self._is_shut_down = False
        lock = threading.Lock()
        self._available = threading.Condition(lock)
        self._drained = threading.Condition(lock)

    def add(self, item: T) -> None:
        """Mark `item` as due; one that is already due stays where it is in the line."""
        with self._available:
            if self._is_shut_down or item in self._added:
                return
            self._added[item] = self._clock.monotonic()
            if item not in self._started:
                self._append(item)
        if self._metrics is not None:
            self._metrics.added()

    def get(self, timeout: float | None = None) -> T:
        """Take the oldest item, waiting for one at most `timeout` seconds (None: until shut-down).

        Raises `TimeoutError` when none came, `ShutDown` when none will come any more.
        """
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        with self._available:
            while not self._waiting:
                if self._is_shut_down:
                    raise ShutDown
                self._wait(self._available, deadline)
            item = self._waiting.popleft()
            now = self._clock.monotonic()
            waited = now - self._added.pop(item)
            self._started[item] = self._taken_at = now
        if self._metrics is not None:
            self._metrics.taken(waited)
        return item

    def done(self, item: T) -> None:
        """End the work at `item`; if it was added meanwhile it joins the end of the line.

        Raises `ValueError` for an item that nobody has taken: two workers would share it next.
        """
        with self._available:
            if item not in self._started:
                raise ValueError(f"not in work: {item}")
            worked = self._clock.monotonic() - self._started.pop(item)
            if item in self._added:
                self._append(item)
            elif not self._started:
                self._drained.notify_all()
        if self._metrics is not None:
            self._metrics.finished(worked)

    def shut_down(self) -> None:
        """Refuse new items; workers get what waits, then `ShutDown`. Returns at once; idempotent."""
        with self._available:
            self._is_shut_down = True
            self._available.notify_all()

    def shut_down_with_drain(self, timeout: float | None = None) -> None:
        """Shut down and wait until all that was accepted has been processed.

        Raises `TimeoutError` when that takes longer than `timeout` seconds (None: no limit).
        Needs workers that go on calling `get` and `done`.
        """
        self.shut_down()
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        with self._drained:
            while self._waiting or self._started:
                self._wait(self._drained, deadline)

    @property
    def depth(self) -> int:
        """How many items wait for a worker."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """How many items are being processed."""
        return len(self._started)

    def unfinished_seconds(self) -> float:
        """How long the items in flight have been worked at, added up."""
        return sum(self._running())

    def stalled_seconds(self) -> float:
        """For how long items have been waiting while none was taken; 0 when none waits."""
        with self._available:
            if not self._waiting:
                return 0.0
            return self._clock.monotonic() - max(self._taken_at, self._added[self._waiting[0]])

    def longest_running_seconds(self) -> float:
        """For how long the oldest item in flight has been worked at; 0 without any."""
        return max(self._running(), default=0.0)

    def _running(self) -> list[float]:
        with self._available:
            now = self._clock.monotonic()
            return [now - started for started in self._started.values()]

    def _append(self, item: T) -> None:
        self._waiting.append(item)
        self._available.notify()

    def _wait(self, condition: threading.Condition, deadline: float | None) -> None:
        """Wait once on `condition`; raises `TimeoutError` when the deadline has passed."""
        if deadline is None:
            self._clock.wait(condition, None)
            return
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError
        self._clock.wait(condition, left)
