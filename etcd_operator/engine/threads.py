"""Threads with a name, an owner and an end.

A `Loop` is a named, non-daemon thread: it is joined, not abandoned, so that its resources are released in
order. A loop that ends with an exception is a bug, and the process lacks one of its parts; it is logged with
its traceback and reported to `on_crash`, so that the application stops and is restarted instead of running on
incomplete.

Not promised: that a thread can be ended by force. `join` reports those that exceed their deadline; as they
are no daemons, the interpreter would wait for them at exit, so the application must then call `os._exit`.
"""

import threading
import time
from collections.abc import Callable, Iterable

import structlog

log = structlog.get_logger()

OnCrash = Callable[[str, BaseException], None]
"""Called in the crashed thread with its name and the exception; it must not join that thread."""


class Loop:
    """A thread that runs `body` once; its owner must make `body` return."""

    def __init__(self, name: str, body: Callable[[], None], on_crash: OnCrash) -> None:
        self.name = name
        self._body = body
        self._on_crash = on_crash
        self._thread = threading.Thread(name=name, target=self._run, daemon=False)

    def start(self) -> None:
        """Start the thread; a second time is a `RuntimeError`."""
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for the end at most `seconds`; true if the thread has ended or was never started."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._body()
        except BaseException as error:  # no caller could catch it
            log.critical("thread_crashed", thread=self.name, exc_info=error)
            self._on_crash(self.name, error)


def join_all(loops: Iterable[Loop], seconds: float) -> tuple[str, ...]:
    """Join all `loops` within `seconds` in total; returns the names of those still running.

    Measures real time, whatever clock the loops use: it is real threads that have to end.
    """
    deadline = time.monotonic() + seconds
    return tuple(loop.name for loop in loops if not loop.join(deadline - time.monotonic()))
