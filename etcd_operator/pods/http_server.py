"""What the HTTP servers of all processes have in common: one request per connection (HTTP/1.0).

Promises:
- a client has `header_seconds` for its whole request, however it sends it, and may then take nothing for
  `client_seconds`;
- with certificates it serves TLS only, and reads them again for each connection;
- at most `most_clients` connections: for another one the oldest that has not sent its request is closed; if
  all are being answered, the new one is answered with 503;
- a client that leaves is not reported.
"""

import io
import socket
import ssl
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from etcd_operator.pods.contract import SERVER_CERTIFICATE_FILE, SERVER_KEY_FILE

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BYTES = "application/octet-stream"

Headers = Mapping[str, str] | None


def listening_socket(port: int, *, host: str = "", backlog: int | None = None) -> socket.socket:
    """A listening socket; without a host at all addresses, IPv4 and IPv6 where the machine has both.

    port: 0 for any free one. Raises OSError.
    """
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=backlog)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=backlog)
    return socket.create_server(("", port), backlog=backlog)


class ListeningServer(ThreadingMixIn, TCPServer):
    """Serves each client of a listening socket, which it owns, on a thread of its own."""

    daemon_threads = False
    poll_seconds = 0.5
    """How long `stop` may take to be noticed. An idle server wakes as often."""
    most_clients = 32
    spares_answers = True
    """Whether a client that is being answered is kept, and not the newest one."""
    header_seconds = 5.0
    client_seconds = 60.0

    def __init__(self, listener: socket.socket, handler: "type[Handler]", *, tls: Path | None = None) -> None:
        """tls: the folder with its certificate and key (`pods.contract`); None for plain HTTP."""
        super().__init__(listener.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._tls = tls
        self._thread = threading.Thread(target=self.serve_forever, args=(self.poll_seconds,), name="http-api")
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, bool] = {}  # oldest first, each with whether it is being answered

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self.socket.getsockname()[1])

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, disconnect all clients, and join all threads that are no daemons."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection; its handshake is left to the thread of the client."""
        connection, address = super().get_request()
        if self._tls is None:
            return connection, address
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(self._tls / SERVER_CERTIFICATE_FILE, self._tls / SERVER_KEY_FILE)
            wrapped = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        except OSError:
            connection.close()
            raise
        return wrapped, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the client a thread; make room for it, or refuse it, if there are too many."""
        with self._lock:
            if len(self._clients) >= self.most_clients and not self._make_room():
                is_full = True
            else:
                is_full, self._clients[request] = False, False
        if is_full:
            self._refuse(request)
        else:
            super().process_request(request, client_address)

    def _make_room(self) -> bool:
        able = (c for c, is_answered in self._clients.items() if not (is_answered and self.spares_answers))
        oldest = next(able, None)
        if oldest is None:
            return False
        del self._clients[oldest]
        _cut(oldest)
        return True

    def _refuse(self, request: socket.socket) -> None:
        """A new connection takes that much at once; not with TLS, whose handshake would be waited for."""
        with suppress(OSError):
            if self._tls is None:
                request.sendall(
                    b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 10\r\nContent-Length: 0\r\n\r\n"
                )
        super().shutdown_request(request)

    def answers(self, request: socket.socket) -> None:
        """Its request has come: from now on it is not closed for others."""
        with self._lock:
            if request in self._clients:
                self._clients[request] = True

    def shutdown_request(self, request: Any) -> None:
        """Forget a client that was served."""
        with self._lock:
            self._clients.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stop listening, disconnect all clients, and join all threads that are no daemons."""
        with self._lock:
            for client in self._clients:
                _cut(client)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is normal; anything else is a bug."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _cut(client: socket.socket) -> None:
    """From another thread. Not by `SSLSocket.shutdown`: that thread would go on without encryption."""
    with suppress(OSError):
        socket.socket.shutdown(client, socket.SHUT_RDWR)


class _RequestReader(io.RawIOBase):
    """Reads from a socket until a deadline (monotonic). Raises TimeoutError after it."""

    def __init__(self, source: socket.socket, deadline: float) -> None:
        self._source, self._deadline = source, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request did not come in time")
        self._source.settimeout(left)
        return self._source.recv_into(buffer)


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: ListeningServer
    server_version = "etcd-operator"
    sys_version = ""

    def setup(self) -> None:
        """Give the client a deadline for its handshake and its request."""
        deadline = time.monotonic() + self.server.header_seconds
        if isinstance(self.request, ssl.SSLSocket):
            self.request.settimeout(self.server.header_seconds)
            self.request.do_handshake()
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_RequestReader(self.connection, deadline))

    def parse_request(self) -> bool:
        """Read the headers; what is left to do is to answer."""
        is_valid = super().parse_request()
        self.connection.settimeout(self.server.client_seconds)
        self.server.answers(self.connection)
        return is_valid

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name is http.server's
        """Requests are not logged: probes and scrapes come every few seconds."""

    def head(self, status: HTTPStatus, kind: str, size: int, more: Headers = None) -> None:
        """Send status and headers. kind: the Content-Type. size: bytes of the body."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(size), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def text(self, status: HTTPStatus, text: str, more: Headers = None) -> None:
        """Send a line."""
        self.respond(status, TEXT, text.encode() + b"\n", more)

    def respond(self, status: HTTPStatus, kind: str, body: bytes, more: Headers = None) -> None:
        """Send a whole response; to HEAD without its body."""
        self.head(status, kind, len(body), more)
        if self.command != "HEAD":
            self.wfile.write(body)
