"""A queue of keys for level-triggered work, in two lines.

What it promises:

1. Fair: items of a line are taken in the order in which they were added. Items that have failed go to a
   second line, the *late* items: at most a given number of them are in work at once (`allow_late`), and while
   others wait, only one of each `TURN` items taken is a late one. So however many items fail, and however
   long they take, the others get a worker.
2. One worker per item: an item in work is given to no other worker, and an item added many times before it is
   taken is taken once.
3. Many producers and many consumers may use it at once, from any thread.
4. Nothing is lost: an item added while it is in work is processed again after its worker has called `done`,
   unless that worker has withdrawn the addition (`retract`).
5. It drains: after `shut_down` it refuses new items and still hands out those that wait; then every `get`
   raises `ShutDown`.

Not promised: persistence, a bound on its length (it holds at most one entry per distinct item), or a limit on
how long a worker keeps an item; `longest_running_seconds` shows a worker that hangs, `stalled_seconds` that
no worker takes the next item. A worker must call `done` for each item it took, also after a failure.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from etcd_operator.clock import Clock

T = TypeVar("T", bound=Hashable)

TURN = 8
"""While others wait, one of so many items taken is a late item."""

NO_LIMIT = 1 << 30


class ShutDown(Exception):
    """The queue is shut down and nothing is left to take."""


class QueueMetrics(Protocol):
    """What a queue reports as it happens; all durations are seconds."""

    def added(self) -> None:
        """An item was accepted (a duplicate is not)."""

    def taken(self, waited: float) -> None:
        """An item went to a worker, `waited` after it was added."""

    def finished(self, worked: float) -> None:
        """A worker is done with an item that it took `worked` ago."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """Since when (monotonic) an item is due, or in work; and its line."""

    since: float
    is_late: bool


class WorkQueue(Generic[T]):
    """The queue described above.

    Invariant: an item is in a line or in `_started`, never in both; `_added` holds the items
    that are due for processing: those of both lines, and those of `_started` that were added again.
    """

    def __init__(self, clock: Clock, metrics: QueueMetrics | None = None) -> None:
        self._clock = clock
        self._metrics = metrics
        self._lines: dict[bool, OrderedDict[T, None]] = {False: OrderedDict(), True: OrderedDict()}
        self._added: dict[T, _Entry] = {}
        self._started: dict[T, _Entry] = {}
        self._late_limit = NO_LIMIT
        self._taken_at = clock.monotonic()
        self._is_watched = False
        self._in_a_row = 0
        self._is_shut_down = False
        lock = threading.Lock()
        self._available = threading.Condition(lock)
        self._stirred = threading.Condition(lock)

    def add(self, item: T, *, is_late: bool = False) -> None:
        """Mark `item` as due; if it is already due it keeps its place, or leaves the late line."""
        with self._available:
            known = self._added.get(item)
            if self._is_shut_down or (known is not None and (is_late or not known.is_late)):
                return
            since = known.since if known is not None else self._clock.monotonic()
            self._added[item] = _Entry(since, is_late)
            if item not in self._started:
                self._lines[True].pop(item, None)
                self._append(item)
        if self._metrics is not None and known is None:
            self._metrics.added()

    def get(self, timeout: float | None = None) -> T:
        """Take an item, waiting for one at most `timeout` seconds (None: until shut-down).

        Raises `TimeoutError` when none came, `ShutDown` when none will come any more.
        """
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        with self._available:
            while (line := self._next_line()) is None:
                if self._is_shut_down and not self.depth:
                    raise ShutDown
                self._wait(self._available, deadline)
            item, _ = line.popitem(last=False)
            now = self._taken_at = self._clock.monotonic()
            entry = self._added.pop(item)
            self._started[item] = _Entry(now, entry.is_late)
            self._in_a_row = 0 if entry.is_late else self._in_a_row + 1
        if self._metrics is not None:
            self._metrics.taken(now - entry.since)
        return item

    def done(self, item: T) -> None:
        """End the work on `item`; if it was added meanwhile it joins the end of its line.

        Raises `ValueError` for an item that is not in work: two workers would share it next.
        """
        with self._available:
            if item not in self._started:
                raise ValueError(f"not in work: {item}")
            entry = self._started.pop(item)
            worked = self._clock.monotonic() - entry.since
            if item in self._added:
                self._append(item)
            if entry.is_late:
                self._available.notify()
        if self._metrics is not None:
            self._metrics.finished(worked)

    def retract(self, item: T) -> bool:
        """Withdraw the addition of `item` during its work; false if it is not in work or was not added."""
        with self._available:
            return item in self._started and self._added.pop(item, None) is not None

    def allow_late(self, limit: int) -> None:
        """Set how many late items may be in work at once."""
        with self._available:
            self._late_limit = limit
            self._available.notify_all()

    def await_hold_up(self, seconds: float) -> bool:
        """Wait until one item has waited, and another has been in work, for `seconds`.

        False when shut down. Time before the call does not count. For one thread.
        """
        with self._stirred:
            began = self._clock.monotonic()
            while not self._is_shut_down:
                left = seconds - min(self._held_up(), self._clock.monotonic() - began)
                if self.depth and left <= 0:
                    return True
                self._is_watched = not self.depth
                self._clock.wait(self._stirred, left if self.depth else None)
        return False

    def shut_down(self) -> None:
        """Refuse new items; workers get what waits, then `ShutDown`. Returns at once; idempotent."""
        with self._available:
            self._is_shut_down = True
            self._available.notify_all()
            self._stirred.notify_all()

    @property
    def depth(self) -> int:
        """How many items wait for a worker."""
        return sum(map(len, self._lines.values()))

    @property
    def in_flight(self) -> int:
        """How many items are being processed."""
        return len(self._started)

    def unfinished_seconds(self) -> float:
        """How long the items in flight have been in work, added up."""
        return sum(self._running())

    def longest_running_seconds(self) -> float:
        """For how long the oldest item in flight has been in work; 0 if there is none."""
        return max(self._running(), default=0.0)

    def stalled_seconds(self) -> float:
        """For how long items have waited and none was taken; 0 if none waits."""
        with self._available:
            return self._stalled()

    def _running(self) -> list[float]:
        with self._available:
            now = self._clock.monotonic()
            return [now - entry.since for entry in self._started.values()]

    def _stalled(self) -> float:
        oldest = self._oldest()
        return 0.0 if oldest is None else self._clock.monotonic() - max(oldest, self._taken_at)

    def _held_up(self) -> float:
        """For how long one item has waited and another been in work; 0 without either."""
        oldest, begun = self._oldest(), min((entry.since for entry in self._started.values()), default=None)
        return 0.0 if oldest is None or begun is None else self._clock.monotonic() - max(oldest, begun)

    def _oldest(self) -> float | None:
        return min(
            (self._added[next(iter(line))].since for line in self._lines.values() if line), default=None
        )

    def _next_line(self) -> OrderedDict[T, None] | None:
        """The line from which the next item is taken; None if none may be taken."""
        others, late = self._lines[False], self._lines[True]
        in_work = sum(entry.is_late for entry in self._started.values())
        may_late = late and (in_work < self._late_limit or self._is_shut_down)
        if others and not (may_late and self._in_a_row >= TURN - 1):
            return others
        return late if may_late else None

    def _append(self, item: T) -> None:
        self._lines[self._added[item].is_late][item] = None
        self._available.notify()
        if self._is_watched:
            self._is_watched = False
            self._stirred.notify_all()

    def _wait(self, condition: threading.Condition, deadline: float | None) -> None:
        """Wait once on `condition`; raises `TimeoutError` when the deadline has passed."""
        if deadline is None:
            self._clock.wait(condition, None)
            return
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError
        self._clock.wait(condition, left)
