"""The threads of a controller: its workers, and spare workers while those are blocked.

A pass may wait for an API server that does not respond, for a minute at worst. When a key has waited for
`STALL` seconds and a pass has lasted as long, as many spare workers are started as there are workers, up to
`MOST` times as many in all. A spare worker ends when it finds nothing to do.

Late keys (see `workqueue`) always leave at least half of the workers to the others.
"""

import threading
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Generic, TypeVar

from etcd_operator.engine.threads import Loop, OnCrash
from etcd_operator.engine.workqueue import WorkQueue

T = TypeVar("T")

STALL = 1.0
"""Seconds; longer than any pass whose servers answer."""

MOST = 4
"""Times as many workers as there are usually."""

IDLE = 1.0
"""Seconds without anything to do after which a spare worker ends."""


@dataclass(eq=False)
class WorkerPool(Generic[T]):
    """Runs `work(timeout)` in each thread until it returns false.

    `work` takes one item, waiting at most `timeout` seconds (None: without limit), and processes it; it
    returns false if none came in that time, or none will come any more.
    """

    name: str
    queue: WorkQueue[T]
    work: Callable[[float | None], bool]
    _: KW_ONLY
    workers: int
    on_crash: OnCrash

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = {n: self._loop(f"worker-{n}", self._run) for n in range(self.workers)}
        self._watch = self._loop("spares", self._await_hold_ups)
        self._started = self.workers

    @property
    def size(self) -> int:
        """How many workers there are now, spare ones included."""
        return len(self._threads)

    def start(self) -> None:
        """Start the workers; a second time is a `RuntimeError`."""
        self._limit_late()
        for thread in self._threads.values():
            thread.start()
        self._watch.start()  # last: it adds others

    @property
    def threads(self) -> tuple[Loop, ...]:
        """The threads, which end after the queue's shut-down; the owner joins them."""
        with self._lock:
            return (*self._threads.values(), self._watch)

    def _run(self) -> None:
        while self.work(None):
            pass

    def _await_hold_ups(self) -> None:
        while self.queue.await_hold_up(STALL):
            for _ in range(min(self.workers, MOST * self.workers - self.size)):
                self._start_spare()
            self._limit_late()

    def _start_spare(self) -> None:
        with self._lock:
            number = self._started
            self._started += 1
            self._threads[number] = self._loop(f"spare-{number}", lambda: self._run_spare(number))
            self._threads[number].start()

    def _run_spare(self, number: int) -> None:
        try:
            while self.work(IDLE):
                pass
        finally:
            with self._lock:
                del self._threads[number]
            self._limit_late()

    def _limit_late(self) -> None:
        self.queue.allow_late(max(1, self.size - (self.workers + 1) // 2))

    def _loop(self, name: str, body: Callable[[], None]) -> Loop:
        return Loop(f"{self.name}-{name}", body, self.on_crash)
