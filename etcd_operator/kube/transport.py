"""Bytes to and from the API server: deadlines, and what a failure means.

Promises
- Nothing waits without bound: connecting, each read, and a whole response have deadlines of their own
  (a server that sends one byte per second exceeds the last one, also within the headers: `connections`).
- Only `Unavailable` leaves this module for a request without a complete response. For a write it reports
  `maybe_applied` unless no connection was established: once bytes may have left, nobody on this side can
  know.
- A write is never sent twice. A read is sent once more, and only when a kept-alive connection turned out to
  have been dropped. (urllib3 notices a connection that the server closed *before* the request, and replaces
  it; nothing has been sent then, so this is safe for writes too.)
- A response that is longer than `LONGEST_RESPONSE` is not read to its end (`TooLarge`).
- An `Abort` triggered by another thread ends a request at once in every phase but the TCP/TLS handshake,
  which the connect deadline bounds (`connections`).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import urllib3
from urllib3.exceptions import HTTPError, ProtocolError
from urllib3.response import BaseHTTPResponse

from etcd_operator.clock import Clock
from etcd_operator.errors import Unavailable
from etcd_operator.kube.connections import POOLS, Abort, Deadline, InFlight, in_flight

Verb = Literal["get", "list", "watch", "discover", "create", "replace", "patch", "delete"]

_WRITES = {"create": "POST", "replace": "PUT", "patch": "PATCH", "delete": "DELETE"}

LONGEST_RESPONSE = 8 << 20
"""Bytes. The API server accepts no object of more than 3 MiB; several threads list at once in 512 MiB."""

_CHUNK_BYTES = 1 << 16


class NoResponse(Unavailable):
    """No HTTP response, or only a part of one: the server may be down, as opposed to unwilling."""


class TooLarge(Unavailable):
    """The response is longer than `LONGEST_RESPONSE`: request less at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """In seconds."""

    connect: float = 3.0  # for the handshake
    read: float = 35.0  # for each silence; an admission webhook may take 30 s
    total: float = 60.0  # for a whole response, or the headers of a stream: the API server's own limit
    silence: float = 90.0  # for a silent stream, see `watch`


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request."""

    verb: Verb
    resource: str  # its name in metrics
    target: str  # path and query
    label: str  # its name in error messages
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.verb in _WRITES


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A complete HTTP response of any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream:
    """The body of a response that arrives over minutes. Used and closed by one thread."""

    def __init__(self, response: BaseHTTPResponse, *, label: str, abort: Abort) -> None:
        self._response = response
        self._label = label
        self._abort = abort

    def chunks(self) -> Iterator[bytes]:
        """The bytes as they come, until the server ends the response.

        `TimeoutError` after a silence longer than the read deadline, or at the end of its life;
        `NoResponse` when the connection breaks.
        """
        while chunk := self._read():
            yield chunk

    def _read(self) -> bytes:
        try:
            return self._response.read1(_CHUNK_BYTES)
        except urllib3.exceptions.ReadTimeoutError as error:
            raise TimeoutError(f"{self._label}: silent, or too old") from error
        except (HTTPError, OSError) as error:
            raise NoResponse(f"{self._label}: the stream broke: {_text(error)}") from error

    def close(self) -> None:
        """Return the connection to the pool, closed: its response is unfinished."""
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
        pool.pool_classes_by_scheme = POOLS
        self._pool = pool
        self._base_url = base_url.rstrip("/")
        self._headers = headers
        self._clock = clock or Clock()

    def exchange(self, request: Request, timeouts: Timeouts, abort: Abort | None = None) -> Response:
        """Send a request and read the whole response, of any status. `Unavailable` if none comes."""
        flight = InFlight(abort, Deadline(self._clock))
        with self._guarded(flight, request):
            response = self._send(request, timeouts, flight)
            return _read_all(request, response)

    def stream(self, request: Request, timeouts: Timeouts, abort: Abort, *, life: float) -> Response | Stream:
        """Send a GET whose response is endless. A response that is not 200 is read whole.

        life: seconds after which the stream ends, whatever the server sends. The connection is not kept
        alive and never shared, so that cutting it affects no other request.
        """
        request = replace(request, headers={**request.headers, "Connection": "close"})
        flight = InFlight(abort, Deadline(self._clock))
        with self._guarded(flight, request, keep=True):
            response = self._send(request, timeouts, flight)
            if response.status != 200:
                whole = _read_all(request, response)
                abort.hold(None)
                return whole
            flight.deadline.begin(life)
            if flight.sock is not None:
                flight.sock.settimeout(timeouts.silence)
            return Stream(response, label=request.label, abort=abort)

    def _send(self, request: Request, timeouts: Timeouts, flight: InFlight) -> BaseHTTPResponse:
        headers = {**self._headers(), **request.headers}
        flight.deadline.begin(timeouts.total)
        try:
            return self._send_once(request, headers, timeouts, flight)
        except ProtocolError as error:
            if not _may_repeat(request, flight, error):
                raise
        return self._send_once(request, headers, timeouts, flight)

    def _send_once(
        self, request: Request, headers: Mapping[str, str], timeouts: Timeouts, flight: InFlight
    ) -> BaseHTTPResponse:
        if flight.abort is not None and flight.abort.triggered:
            raise NoResponse(f"{request.label}: stopped before it was sent")
        return self._pool.request(
            _WRITES.get(request.verb, "GET"),
            self._base_url + request.target,
            body=request.body,
            headers=headers,
            timeout=urllib3.Timeout(connect=timeouts.connect, read=timeouts.read),
            retries=False,
            redirect=False,
            preload_content=False,
        )

    @contextmanager
    def _guarded(self, flight: InFlight, request: Request, *, keep: bool = False) -> Iterator[None]:
        """Register the request as its thread's, translate failures, release the socket."""
        in_flight.current = flight
        done = False
        try:
            yield
            done = True
        except (HTTPError, OSError) as error:
            maybe = request.is_write and flight.sock is not None
            late = f"it took longer than {flight.deadline.seconds:g} s" if flight.deadline.has_passed else ""
            why = late or _text(error)
            raise NoResponse(f"{request.label}: no response: {why}", maybe_applied=maybe) from error
        finally:
            in_flight.current = None
            if flight.abort is not None and not (keep and done):
                flight.abort.hold(None)


def _read_all(request: Request, response: BaseHTTPResponse) -> Response:
    body = bytearray()
    try:
        while chunk := response.read1(_CHUNK_BYTES):
            body += chunk
            if len(body) > LONGEST_RESPONSE:
                text = f"{request.label}: the response is longer than {LONGEST_RESPONSE >> 20} MiB"
                raise TooLarge(text, maybe_applied=request.is_write)
    except BaseException:
        response.close()  # half read: not to be reused
        raise
    finally:
        response.release_conn()
    return Response(status=response.status, headers=response.headers, body=bytes(body))


def _may_repeat(request: Request, flight: InFlight, error: ProtocolError) -> bool:
    """Whether a read met a kept-alive connection that the server had dropped meanwhile."""
    dropped = any(isinstance(arg, ConnectionError) for arg in error.args)
    stopped = flight.abort is not None and flight.abort.triggered
    return not request.is_write and flight.reused and dropped and not stopped


def _text(error: BaseException) -> str:
    """urllib3's message in one line, without the addresses of its objects."""
    text = str(error) or type(error).__name__
    return " ".join(text.split(": ", 1)[-1].split() if " at 0x" in text else text.split())
