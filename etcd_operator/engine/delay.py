"""Items that become due later.

What it promises: an item passed to `add_after` is delivered once and not before its time; of several times
for the same item the earliest counts; items that are due at different times are delivered in that order; a
time in the past means at once. It sleeps until the next item is due or an earlier one is added: an idle queue
uses no CPU.

Not promised: delivery after `stop` (items that wait are dropped, as the process is ending) or before `start`
(they are kept until then).
"""

import heapq
import itertools
import math
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from etcd_operator.clock import Clock
from etcd_operator.engine.threads import Loop, OnCrash

T = TypeVar("T", bound=Hashable)

_SLACK = 64  # superseded heap entries that are tolerated before the heap is rebuilt


class DelayQueue(Generic[T]):
    """A heap of (time, item) and one thread that passes due items to `deliver`.

    Invariant: `_ticket_of` names the one valid heap entry of each waiting item; other entries of
    the same item have been superseded by an earlier time and are skipped.
    """

    def __init__(self, name: str, deliver: Callable[[T], None], *, clock: Clock, on_crash: OnCrash) -> None:
        self._deliver = deliver
        self._clock = clock
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, T]] = []
        self._ticket_of: dict[T, tuple[float, int]] = {}
        self._tickets = itertools.count()
        self._is_stopped = False
        self.loop = Loop(name, self._run, on_crash)
        """The thread; the owner joins it after `stop`."""

    def overdue_seconds(self) -> float:
        """For how long the oldest item has been due without being delivered; 0 if none is due."""
        with self._changed:
            first = min((due for due, _ in self._ticket_of.values()), default=math.inf)
        return max(0.0, self._clock.monotonic() - first)

    def start(self) -> None:
        """Begin to deliver."""
        self.loop.start()

    def stop(self) -> None:
        """Make the thread end and drop all items; returns at once; idempotent."""
        with self._changed:
            self._is_stopped = True
            self._heap.clear()
            self._ticket_of.clear()
            self._changed.notify_all()

    def add_after(self, item: T, seconds: float) -> None:
        """Deliver `item` in `seconds`, unless it is to be delivered earlier anyway."""
        due = self._clock.monotonic() + seconds
        with self._changed:
            known = self._ticket_of.get(item)
            if self._is_stopped or (known is not None and known[0] <= due):
                return
            ticket = next(self._tickets)
            self._ticket_of[item] = (due, ticket)
            heapq.heappush(self._heap, (due, ticket, item))
            self._drop_superseded()
            if self._heap[0][1] == ticket:
                self._changed.notify_all()

    def _run(self) -> None:
        while due := self._take_due():
            for item in due:
                self._deliver(item)

    def _take_due(self) -> list[T]:
        """Wait for items that are due and take them; none means the queue was stopped."""
        with self._changed:
            while not self._is_stopped:
                if due := self._pop_due(self._clock.monotonic()):
                    return due
                self._clock.wait(self._changed, self._seconds_to_next())
        return []

    def _pop_due(self, now: float) -> list[T]:
        due = []
        while self._heap and self._heap[0][0] <= now:
            when, ticket, item = heapq.heappop(self._heap)
            if self._ticket_of.get(item) == (when, ticket):
                del self._ticket_of[item]
                due.append(item)
        return due

    def _seconds_to_next(self) -> float | None:
        if not self._heap:
            return None
        return min(self._heap[0][0] - self._clock.monotonic(), threading.TIMEOUT_MAX)

    def _drop_superseded(self) -> None:
        """Keep the heap in proportion to the waiting items, however often times are brought forward."""
        if len(self._heap) > 2 * len(self._ticket_of) + _SLACK:
            self._heap = [(when, ticket, item) for item, (when, ticket) in self._ticket_of.items()]
            heapq.heapify(self._heap)
