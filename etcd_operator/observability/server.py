"""/metrics, /healthz and /readyz over HTTP.

What it promises:

- `/healthz` and `/readyz` respond with 200 `ok` if all their checks pass, else with 503 and the list of
  checks; `?verbose` always lists them. A check that raises has failed.
- `/metrics` responds to a scrape. HEAD is supported for every path; unknown paths are 404.
- A slow or silent client blocks no other (see `pods.http_server`).
- A client that cannot be accepted, because the process has no file descriptor left, waits in the backlog and
  uses no CPU.
- `stop` closes open connections and joins the threads. It waits for no client and does not poll.

Not promised: TLS or authentication. Nothing here is secret; a network policy may restrict access.
"""

import selectors
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

import structlog

from etcd_operator.errors import OperatorError
from etcd_operator.pods.http_server import TEXT, Handler, ListeningServer, listening_socket

log = structlog.get_logger()

HealthCheck = Callable[[], tuple[bool, str]]
"""Returns at once whether something is well, and a message for people."""
Render = Callable[[str], tuple[bytes, str]]
"""Takes an Accept header, returns body and content type."""
Page = Callable[[str, str], tuple[HTTPStatus, bytes, str]]
"""Takes a request target and an Accept header, returns status, body and content type."""

_MAX_CLIENTS = 64

FULL_SECONDS = 0.5
"""Until the next attempt after a client could not be accepted: its socket remains readable."""


class StatusServer:
    """Serves the three paths on one address, which it listens on from its creation until `stop`.

    Raises `OperatorError` if the address is malformed or not available.
    """

    def __init__(
        self,
        listen: str,
        *,
        metrics: Render,
        health: Mapping[str, HealthCheck],
        ready: Mapping[str, HealthCheck],
        client_timeout: float = 5.0,
    ) -> None:
        page = partial(_page, metrics, {"/healthz": health, "/readyz": ready})
        self._server = _Server(bind(listen), page, client_timeout)
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._thread = threading.Thread(name="status-server", target=self._serve, daemon=False)

    @property
    def port(self) -> int:
        """The port in use, also if any free one was requested (`:0`)."""
        return self._server.port

    def start(self) -> None:
        """Begin to serve; a second time is a `RuntimeError`."""
        self._thread.start()

    def stop(self, deadline: float) -> bool:
        """Close everything and join the threads within `deadline` seconds; false if one still runs."""
        self._wake_writer.close()
        if self._thread.ident is None:
            self._close()
        else:
            self._thread.join(deadline)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            while all(key.fileobj is self._server for key, _ in selector.select()):
                self._server.handle_request()
                if self._server.is_full:
                    self._pause()
        self._close()

    def _pause(self) -> None:
        self._wake_reader.settimeout(FULL_SECONDS)
        with suppress(TimeoutError):
            self._wake_reader.recv(1)  # ends at once when `stop` closes the other side

    def _close(self) -> None:
        self._server.server_close()
        self._wake_reader.close()


def _page(
    metrics: Render, checks: Mapping[str, Mapping[str, HealthCheck]], target: str, accept: str
) -> tuple[HTTPStatus, bytes, str]:
    url = urlsplit(target)
    if url.path == "/metrics":
        return HTTPStatus.OK, *metrics(accept)
    if url.path not in checks:
        return HTTPStatus.NOT_FOUND, b"not found\n", TEXT
    verbose = "verbose" in parse_qs(url.query, keep_blank_values=True)
    status, text = _run(url.path.removeprefix("/"), checks[url.path], verbose=verbose)
    return status, text.encode(), TEXT


def _run(page: str, checks: Mapping[str, HealthCheck], *, verbose: bool) -> tuple[HTTPStatus, str]:
    found = {name: _ask(name, check) for name, check in checks.items()}
    passed = all(ok for ok, _ in found.values())
    if passed and not verbose:
        return HTTPStatus.OK, "ok\n"
    lines = [f"[{'+' if ok else '-'}]{name}: {message}" for name, (ok, message) in found.items()]
    lines.append(f"{page} check {'passed' if passed else 'failed'}\n")
    return HTTPStatus.OK if passed else HTTPStatus.SERVICE_UNAVAILABLE, "\n".join(lines)


def _ask(name: str, check: HealthCheck) -> tuple[bool, str]:
    try:
        return check()
    except Exception as error:  # a broken check is a failed check
        log.exception("health_check_raised", check=name)
        return False, f"{type(error).__name__}: {error}"


def bind(listen: str) -> socket.socket:
    """A listening socket for `host:port`, `[v6]:port` or `:port` (all addresses, IPv4 and IPv6).

    Raises `OperatorError` in one line.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise OperatorError(f"listen address {listen!r} is not host:port")
    try:
        return listening_socket(
            int(port), host=host.removeprefix("[").removesuffix("]"), backlog=_MAX_CLIENTS
        )
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]  # without create_server's own repetition
        raise OperatorError(f"cannot listen on {listen}: {reason}") from error


class _Server(ListeningServer):
    """Accepts clients as long as there are file descriptors."""

    spares_answers = False  # a scrape that nobody reads must not keep the kubelet away
    timeout = 0  # `handle_request` is called when a client has connected; it must not wait if that has left

    def __init__(self, listener: socket.socket, page: Page, client_timeout: float) -> None:
        super().__init__(listener, _Handler)
        self.page = page
        self.header_seconds = self.client_seconds = client_timeout
        self.most_clients = _MAX_CLIENTS
        self.is_full = False

    def get_request(self) -> Any:
        """Accept a client; `is_full` while that fails."""
        self.is_full = True
        accepted = super().get_request()
        self.is_full = False
        return accepted

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver's signature
        """A client that disconnects is normal; anything else is a bug."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            log.error("status_request_failed", exc_info=error, client=str(client_address))


class _Handler(Handler):
    server: _Server

    def do_GET(self) -> None:
        """Respond with the page."""
        status, body, kind = self.server.page(self.path, self.headers.get("Accept", ""))
        self.respond(status, kind, body)

    do_HEAD = do_GET
