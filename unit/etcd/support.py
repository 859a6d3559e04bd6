"""Waiting for a condition with a deadline, and a list of what the process holds open."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from etcd_operator.errors import OperatorError


def eventually(claim: Callable[[], bool], *, within: float = 60.0, every: float = 0.02) -> None:
    """Return once `claim` holds; errors of ours count as not yet. Fails after `within` seconds."""
    deadline = time.monotonic() + within
    pause = threading.Event()
    last: OperatorError | None = None
    while time.monotonic() < deadline:
        try:
            if claim():
                return
        except OperatorError as error:
            last = error
        pause.wait(every)
    raise AssertionError(f"not within {within} s; last error: {last!r}")


def open_files() -> int:
    """How many file descriptors this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def native_threads() -> int:
    """How many threads this process has, gRPC's own included."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())
