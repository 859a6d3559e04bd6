"""urllib3 connections that report their socket, so that another thread can end the request on it; what they
read is limited by the deadline of the request.

Why not `HTTPResponse.shutdown()`: it needs a response, so it cannot end a request whose response has not
begun; and on TLS it calls `SSLSocket.shutdown`, which removes the TLS object while another thread reads
through it. Here the connection reports its socket to the `Abort`, which shuts down the file descriptor only;
the reader sees the end of the stream.
"""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from etcd_operator.kube.deadline import Deadline, Limited


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

    def use(self, sock: socket.socket | None, *, reused: bool) -> None:
        """Note the socket that the request goes through, and whether it was kept alive."""
        if sock is not self.sock:
            self.sock, self.reused = sock, reused
            if self.abort is not None:
                self.abort.hold(sock)


in_flight = threading.local()
"""The request of each thread, as `current`. urllib3 opens connections itself and has no hook that reports the
socket, so a connection finds its request through the thread."""


def _flight() -> InFlight | None:
    return getattr(in_flight, "current", None)


def _use(sock: Any, *, reused: bool) -> None:
    flight = _flight()
    if flight is not None:
        flight.use(sock, reused=reused)


class _Response(HTTPResponse):
    """Also the one of a proxy that is asked for a tunnel."""

    def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
        flight = _flight()
        limited: Any = sock if flight is None else Limited(sock, flight.deadline)
        super().__init__(limited, *args, **kwargs)


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
