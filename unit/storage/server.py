"""An HTTP server with the fakes of services behind it, which misbehaves on request."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True, kw_only=True)
class Request:
    method: str
    target: str  # path and query, as sent
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, str]:
        parsed = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        return {name: values[0] for name, values in parsed.items()}


@dataclass(frozen=True, kw_only=True)
class Response:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


App = Callable[[Request], Response]
Where = Callable[[Request], bool]


@dataclass(kw_only=True)
class Fault:
    """What happens to the next `times` requests that match; others pass.

    `applied`: whether the service processes the request. `answer`: what it sends instead of its own answer;
    `keep`: how many bytes of the body of the answer are sent before the connection closes (-1: not even the
    status). `hang`: the connection stays open, silent, instead of closing.
    """

    where: Where = lambda _: True
    times: float = float("inf")
    applied: bool = True
    answer: Response | None = None
    keep: int | None = None
    hang: bool = False
    hits: int = 0

    def takes(self, request: Request) -> bool:
        return self.hits < self.times and self.where(request)


def answers_with(status: int, body: bytes = b"", **how: Any) -> Fault:
    """The service refuses with this status."""
    return Fault(applied=False, answer=Response(status=status, body=body), **how)


def closes(**how: Any) -> Fault:
    """The connection closes before the request was processed."""
    return Fault(applied=False, keep=-1, **how)


def loses_reply(**how: Any) -> Fault:
    """The request is processed, and the connection closes without an answer."""
    return Fault(keep=-1, **how)


def cuts_off(keep: int, **how: Any) -> Fault:
    """The connection closes in the middle of the answer."""
    return Fault(keep=keep, **how)


def hangs(**how: Any) -> Fault:
    """The request is not processed, and the connection stays open in silence."""
    return Fault(applied=False, keep=-1, hang=True, **how)


class Server:
    """The service at `address` (host:port), what it was asked, and its faults."""

    def __init__(self, address: str, app: App) -> None:
        self.address = address
        self.app = app
        self.faults: list[Fault] = []
        self.seen: list[Request] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()

    def count(self, where: Where) -> int:
        return sum(map(where, self.seen))

    def fault(self, request: Request) -> Fault:
        with self._lock:
            self.seen.append(request)
            found = next((each for each in self.faults if each.takes(request)), Fault())
            found.hits += 1
            return found

    def respond(self, request: Request, fault: Fault) -> Response:
        if not fault.applied:
            return fault.answer or Response(status=200)
        with self._lock:
            reply = self.app(request)
        return fault.answer or reply


@contextmanager
def serving(app: App, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    class Handler(_Handler):
        server_state: ClassVar[Server]

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads, http.block_on_close = True, False
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    Handler.server_state = server = Server(f"127.0.0.1:{http.server_port}", app)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        http.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server_state: ClassVar[Server]
    protocol_version = "HTTP/1.1"
    timeout = 10  # an idle connection ends with the test

    def _serve(self) -> None:
        try:
            self._exchange()
        except (ConnectionError, TimeoutError, ssl.SSLError):
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def _exchange(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self._read_body(headers)
        request = Request(method=self.command, target=self.path, headers=headers, body=body)
        fault = self.server_state.fault(request)
        response = self.server_state.respond(request, fault)
        if fault.keep == -1:
            self._end(fault)
            return
        self._send(response, fault)

    def _read_body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(headers.get("content-length", 0)))
        return b"".join(iter(self._read_chunk, b""))

    def _read_chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _send(self, response: Response, fault: Fault) -> None:
        self.send_response(response.status)
        names = {name.lower() for name in response.headers}
        for name, value in response.headers.items():
            self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body[: fault.keep])
        if fault.keep is not None:
            self._end(fault)

    def _end(self, fault: Fault) -> None:
        if fault.hang:
            self.wfile.flush()
            self.server_state.closing.wait()
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""
