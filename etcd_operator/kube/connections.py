"""urllib3 connections that report their socket, so that another thread can end the request on it; what they
read is limited by the deadline of the request.

The deadline is a total time for reading a response, headers included. The timeout of a socket starts anew
with every byte, and `http.client` reads whole lines: a server that sends one byte every few seconds would
keep a thread for hours. So each read of the socket gets only what is left of the total time.

Why not `HTTPResponse.shutdown()`: it needs a response, so it cannot end a request whose response has not
begun; and on TLS it calls `SSLSocket.shutdown`, which removes the TLS object while another thread reads
through it. Here the connection reports its socket to the `Abort`, which shuts down the file descriptor only;
the reader sees the end of the stream.
"""

import io
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

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


class _Reader(io.RawIOBase):
    """The bytes of a socket, as `http.client` reads a response: each read is limited by the deadline."""

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


class Abort:
    """Ends the requests that hold it, from another thread; once triggered, for good."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._triggered = False

    @property
    def triggered(self) -> bool:
        """Whether requests that hold this may no longer run."""
        return self._triggered

    def trigger(self) -> None:
        """End the request in flight, if any, and refuse all later ones. Never blocks."""
        with self._lock:
            self._triggered = True
            self._shut()

    def hold(self, sock: socket.socket | None) -> None:
        """Set the socket that `trigger` shuts down; None when the request is over."""
        with self._lock:
            self._socket = sock
            if self._triggered:
                self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # already closed: that was the purpose
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@dataclass(slots=True)
class InFlight:
    """The connection of the request that this thread is making."""

    abort: Abort | None
    deadline: Deadline
    sock: socket.socket | None = None
    reused: bool = False


in_flight = threading.local()
"""The request of each thread, as `current`. urllib3 opens connections itself and has no hook that reports the
socket, so a connection finds its request through the thread."""


def _flight() -> InFlight | None:
    return getattr(in_flight, "current", None)


def _use(sock: Any, *, reused: bool) -> None:
    """Note the socket that the request goes through, and whether it was kept alive."""
    flight = _flight()
    if flight is not None and sock is not flight.sock:
        flight.sock, flight.reused = sock, reused
        if flight.abort is not None:
            flight.abort.hold(sock)


class _Response(HTTPResponse):
    """Also the one of a proxy that is asked for a tunnel."""

    def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        if (flight := _flight()) is not None:
            self.fp.close()
            self.fp = io.BufferedReader(_Reader(sock, flight.deadline))


class _PlainConnection(HTTPConnection):
    response_class = _Response

    def connect(self) -> None:
        super().connect()
        _use(self.sock, reused=False)

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            _use(self.sock, reused=True)
        super().request(*args, **kwargs)


class _SecureConnection(_PlainConnection, HTTPSConnection):
    """The same over TLS: `super()` of what is inherited is `HTTPSConnection` here."""


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


POOLS = {"http": _PlainPool, "https": _SecurePool}
"""The pools of a `urllib3.PoolManager` whose connections report their sockets."""
