"""A total time for reading a response, headers included, however few bytes come at a time.

The timeout of a socket starts anew with every byte, and `http.client` reads whole lines: a server that sends
one byte every few seconds would keep a thread for hours. So each read of the socket gets only what is left of
the total time. No second thread is needed.
"""

import io
import socket
from typing import Any

from etcd_operator.clock import Clock


class Deadline:
    """When a response must have been read. One thread begins it and reads."""

    def __init__(self, clock: Clock) -> None:
        self.seconds = float("inf")
        self._clock = clock
        self._ends = float("inf")

    def begin(self, seconds: float) -> None:
        """So many seconds from now; replaces an earlier deadline."""
        self.seconds, self._ends = seconds, self._clock.monotonic() + seconds

    @property
    def has_passed(self) -> bool:
        """Whether nothing may be read any more."""
        return self._clock.monotonic() >= self._ends

    def limit(self, sock: socket.socket) -> None:
        """Have the next read of `sock` end in time. TimeoutError if nothing is left."""
        left = self._ends - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError(f"it took longer than {self.seconds:g} s")
        timeout = sock.gettimeout()
        if left < (float("inf") if timeout is None else timeout):
            sock.settimeout(left)


class Limited:
    """A socket as `http.client` reads a response from it: each read is limited by the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The bytes that come, buffered."""
        return io.BufferedReader(_Reader(self._sock, self._deadline))


class _Reader(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._deadline.limit(self._sock)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()  # releases the socket
        super().close()
