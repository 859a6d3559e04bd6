"""Waiting for other threads without sleeping for a guessed time."""

import threading
import time
from collections.abc import Callable, Iterator

from etcd_operator.engine.workqueue import WorkQueue
from unit.fakes.clock import FakeClock

_PATIENCE = 30.0


def eventually(claim: Callable[[], bool], clock: FakeClock | None = None) -> None:
    """Return as soon as `claim` holds; fail when it never does.

    With a clock, its waiters are woken in between: one of them may have read the time just
    before the test moved it.
    """
    deadline = time.monotonic() + _PATIENCE
    pause = threading.Event()
    while not claim():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        if clock:
            clock.advance(0)
        pause.wait(0.002)


class Crashes(list[tuple[str, str]]):
    """An `on_crash` that remembers."""

    def __call__(self, name: str, error: BaseException) -> None:
        self.append((name, repr(error)))


def take_all(queue: WorkQueue[str]) -> Iterator[str]:
    """Take and finish each item that waits."""
    while queue.depth:
        item = queue.get()
        queue.done(item)
        yield item
