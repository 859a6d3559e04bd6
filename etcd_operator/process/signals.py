"""How a process learns that it is to end."""

import signal
import threading


def set_on_signal(ended: threading.Event) -> None:
    """From now on SIGTERM and SIGINT set `ended`; the first process of a container ignores them otherwise.

    In a thread: the signal may interrupt the main thread while it holds the lock that `set` needs. A handler
    runs only while the main thread does: it must not wait for ever in one call.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=ended.set, name="signal").start())
