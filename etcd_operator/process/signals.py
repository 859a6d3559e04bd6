"""How the process learns that it is to end, and ends in time whatever its threads do."""

import os
import signal
import threading

import structlog

log = structlog.get_logger()


def set_on_signal(ended: threading.Event) -> None:
    """From now on SIGTERM and SIGINT set `ended`; the first process of a container ignores them otherwise.

    In a thread: the signal may interrupt the main thread while it holds the lock that `set` needs. A handler
    runs only while the main thread does: it must not wait for ever in one call.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=ended.set, name="signal").start())


def end_in(seconds: float, *, code: int) -> threading.Timer:
    """Exit after `seconds`, whatever threads still run, unless the timer is cancelled first."""

    def end() -> None:
        log.critical("ended_by_force", threads=[t.name for t in threading.enumerate() if not t.daemon])
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer
