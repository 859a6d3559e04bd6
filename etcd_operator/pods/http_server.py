"""What the HTTP servers of all processes have in common: one request per connection (HTTP/1.0)."""

import socket
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn

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

    def __init__(self, listener: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(listener.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._thread = threading.Thread(target=self.serve_forever, args=(self.poll_seconds,), name="http-api")

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self.socket.getsockname()[1])

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, and join all threads that are no daemons."""
        self.shutdown()
        self._thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server_version = "etcd-operator"
    sys_version = ""

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
