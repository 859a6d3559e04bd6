"""Waiting for other threads and processes without sleeping for a guessed time."""

import threading
import time
from collections.abc import Callable

from etcd_operator.errors import OperatorError
from unit.fakes.clock import FakeClock


def eventually(
    claim: Callable[[], object],
    what: str = "what was waited for",
    *,
    clock: FakeClock | None = None,
    within: float = 60.0,
    every: float = 0.005,
) -> None:
    """Return as soon as `claim` holds; errors of ours count as not yet. Fails after `within` seconds.

    clock: its waiters are woken in between: one of them may have read the time just before the test moved it.
    every: seconds between two checks.
    """
    deadline = time.monotonic() + within
    pause = threading.Event()
    while True:
        last: OperatorError | None = None
        try:
            if claim():
                return
        except OperatorError as error:
            last = error
        assert time.monotonic() < deadline, f"not within {within} s: {what}; last error: {last!r}"
        if clock:
            clock.advance(0)
        pause.wait(every)
