"""A thread that does one step after the other at a steady pace."""

import threading
import time
from collections.abc import Callable


class Paced:
    """Calls `step` every `interval` seconds until it is stopped; what was missed is not made up for."""

    def __init__(self, step: Callable[[], None], *, interval: float, name: str) -> None:
        self._step = step
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; once."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let the step under way be the last one; does not wait for its end."""
        self._stop.set()

    def stop(self, *, within: float = 120.0) -> None:
        """The same, and wait for its end."""
        self.ask_to_stop()
        self._thread.join(within)
        assert not self._thread.is_alive(), f"{self._thread.name} does not end"

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self._step()
            due = max(due + self._interval, time.monotonic())
