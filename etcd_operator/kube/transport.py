"""Bytes to and from the API server: sockets, deadlines, cutting off, and what a failure means.

Promises
- Nothing waits without bound: connecting, each read, and a whole answer have their own
  deadline (a server that drips one byte a second trips the last one).
- Only `Unavailable` leaves this module for a request that got no complete answer. For a write
  it says `maybe_applied` unless no connection was ever established: once bytes may have left,
  nobody on this side can know.
- A write is never sent twice. A read is sent once more, and only when a kept-alive connection
  turned out to have been dropped. (A connection that the server closed *before* the request is
  noticed by urllib3's look at the socket and replaced; nothing has been sent then, so this is
  safe for writes too.)
- An `Abort` triggered by another thread ends a request at once in every phase but the TCP/TLS
  handshake, which the connect deadline bounds.

Why not `HTTPResponse.shutdown()`: it needs a response, so it cannot end a request whose answer
has not begun; and on TLS it goes through `SSLSocket.shutdown`, which takes the TLS object away
from under the thread that reads. Here the connection tells its socket to the `Abort`, and the
abort shuts down the file descriptor only; the reader sees the end of the stream.
"""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, ProtocolError
from urllib3.response import BaseHTTPResponse

from etcd_operator.clock import Clock, SystemClock
from etcd_operator.errors import Unavailable

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

_CHUNK_BYTES = 1 << 16


class NoAnswer(Unavailable):
    """No HTTP answer came, or it broke off: the server may be away, as opposed to unwilling."""


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
        """Take the socket that `trigger` shuts down; None when the request is over."""
        with self._lock:
            self._socket = sock
            if self._triggered:
                self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # already closed: that was the purpose
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@dataclass(slots=True)
class _Flight:
    """What is known of the connection of the request that this thread is making."""

    abort: Abort | None
    sock: socket.socket | None = None
    reused: bool = False

    def use(self, sock: socket.socket | None, *, reused: bool) -> None:
        if sock is not self.sock:
            self.sock, self.reused = sock, reused
            if self.abort is not None:
                self.abort.hold(sock)


class _Flights(threading.local):
    current: _Flight | None = None


# urllib3 makes connections itself and has no parameter for "tell me your socket": the request
# of a thread is found through the thread.
_flights = _Flights()


def _use(sock: Any, *, reused: bool) -> None:
    if _flights.current is not None:
        _flights.current.use(sock, reused=reused)


class _PlainConnection(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _use(self.sock, reused=False)

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            _use(self.sock, reused=True)
        super().request(*args, **kwargs)


class _SecureConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _use(self.sock, reused=False)

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            _use(self.sock, reused=True)
        super().request(*args, **kwargs)


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """In seconds: for the handshake, for each silence, for a whole answer, for a silent stream.

    `read` is above the 30 s that an admission webhook may take, `total` is the API server's own
    limit for a request, `silence` is explained in `watch`.
    """

    connect: float = 3.0
    read: float = 35.0
    total: float = 60.0
    silence: float = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request; `label` names it in error messages."""

    method: Method
    target: str
    label: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete HTTP answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream:
    """The body of an answer that arrives over minutes. Used by one thread; closed by the same."""

    def __init__(self, response: BaseHTTPResponse, *, label: str, abort: Abort) -> None:
        self._response = response
        self._label = label
        self._abort = abort

    def chunks(self) -> Iterator[bytes]:
        """The bytes as they come, until the server ends the answer.

        `TimeoutError` after a silence longer than the read deadline; `NoAnswer` when the
        connection breaks.
        """
        while chunk := self._read():
            yield chunk

    def _read(self) -> bytes:
        try:
            return self._response.read1(_CHUNK_BYTES)
        except urllib3.exceptions.ReadTimeoutError as error:
            raise TimeoutError(f"{self._label}: silent") from error
        except (HTTPError, OSError) as error:
            raise NoAnswer(f"{self._label}: the stream broke: {_text(error)}") from error

    def close(self) -> None:
        """Give the connection back, closed: an unfinished answer cannot be followed by another."""
        self._abort.hold(None)
        self._response.close()
        self._response.release_conn()


class Transport:
    """A pool of connections to one API server. Thread-safe.

    `headers` is called for every request, so that a token may change at any time; it may raise
    one of our errors.
    """

    def __init__(
        self,
        *,
        pool: urllib3.PoolManager,
        base_url: str,
        headers: Callable[[], Mapping[str, str]] = dict,
        clock: Clock | None = None,
    ) -> None:
        pool.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}
        self._pool = pool
        self._base_url = base_url.rstrip("/")
        self._headers = headers
        self._clock = clock or SystemClock()

    def exchange(self, request: Request, timeouts: Timeouts, abort: Abort | None = None) -> Answer:
        """Send a request and read the whole answer, of any status. `Unavailable` if none comes."""
        flight = _Flight(abort)
        with self._flying(flight, request):
            response = self._send(request, timeouts, flight)
            return self._read_all(response, timeouts)

    def stream(self, request: Request, timeouts: Timeouts, abort: Abort) -> Answer | Stream:
        """Send a GET whose answer is endless. An answer that is not 200 comes back whole.

        The connection is not kept alive: it is used by nobody else, ever, so that cutting it can
        hurt nobody else.
        """
        headers = {**request.headers, "Connection": "close"}
        request = Request(method="GET", target=request.target, label=request.label, headers=headers)
        flight = _Flight(abort)
        with self._flying(flight, request, keep=True):
            response = self._send(request, timeouts, flight)
            if response.status != 200:
                answer = self._read_all(response, timeouts)
                abort.hold(None)
                return answer
            if flight.sock is not None:
                flight.sock.settimeout(timeouts.silence)
            return Stream(response, label=request.label, abort=abort)

    def _send(self, request: Request, timeouts: Timeouts, flight: _Flight) -> BaseHTTPResponse:
        try:
            return self._send_once(request, timeouts, flight)
        except ProtocolError as error:
            if not _may_repeat(request, flight, error):
                raise
        return self._send_once(request, timeouts, flight)

    def _send_once(self, request: Request, timeouts: Timeouts, flight: _Flight) -> BaseHTTPResponse:
        if flight.abort is not None and flight.abort.triggered:
            raise NoAnswer(f"{request.label}: stopped before it was sent")
        return self._pool.request(
            request.method,
            self._base_url + request.target,
            body=request.body,
            headers={**self._headers(), **request.headers},
            timeout=urllib3.Timeout(connect=timeouts.connect, read=timeouts.read),
            retries=False,
            redirect=False,
            preload_content=False,
        )

    def _read_all(self, response: BaseHTTPResponse, timeouts: Timeouts) -> Answer:
        ends = self._clock.monotonic() + timeouts.total
        body = bytearray()
        try:
            while chunk := response.read1(_CHUNK_BYTES):
                body += chunk
                if self._clock.monotonic() > ends:
                    raise TimeoutError(f"the answer took longer than {timeouts.total:g} s")
        except BaseException:
            response.close()  # half-read: never to be reused
            raise
        finally:
            response.release_conn()
        return Answer(status=response.status, headers=response.headers, body=bytes(body))

    @contextmanager
    def _flying(self, flight: _Flight, request: Request, *, keep: bool = False) -> Iterator[None]:
        """Own the thread's flight, translate what goes wrong, let go of the socket."""
        _flights.current = flight
        done = False
        try:
            yield
            done = True
        except (HTTPError, OSError) as error:
            maybe = request.method != "GET" and flight.sock is not None
            raise NoAnswer(f"{request.label}: no answer: {_text(error)}", maybe_applied=maybe) from error
        finally:
            _flights.current = None
            if flight.abort is not None and not (keep and done):
                flight.abort.hold(None)


def _may_repeat(request: Request, flight: _Flight, error: ProtocolError) -> bool:
    """Whether a read met a kept-alive connection that the server had dropped meanwhile."""
    dropped = any(isinstance(arg, ConnectionError) for arg in error.args)
    stopped = flight.abort is not None and flight.abort.triggered
    return request.method == "GET" and flight.reused and dropped and not stopped


def _text(error: BaseException) -> str:
    """One line of what urllib3 says, without the addresses of its objects."""
    text = str(error) or type(error).__name__
    return " ".join(text.split(": ", 1)[-1].split() if " at 0x" in text else text.split())
