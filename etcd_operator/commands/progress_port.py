"""`GET /v1/progress` of a command that runs in a pod: how far it is, for the operator.

It answers with numbers of bytes, which need no protection. A client that is slow delays neither others nor
the command.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from etcd_operator.commands.outcome import report
from etcd_operator.commands.progress import ProgressBar
from etcd_operator.pods.http_server import JSON, Handler, ListeningServer, listening_socket

CLIENT_SECONDS = 2.0


@contextmanager
def served(port: int, progress: ProgressBar) -> Iterator[ProgressBar]:
    """Enter `progress`, and serve it at a port of all addresses (0: nowhere)."""
    with progress as shown:
        server = _server(port, shown) if port else None
        if server is None:
            yield shown
            return
        server.start()
        try:
            yield shown
        finally:
            server.stop()


class _Server(ListeningServer):
    daemon_threads = True
    poll_seconds = 0.01  # a restore, and whoever waits for it, would wait for the end of this server
    progress: ProgressBar

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that disconnects is normal."""


class ProgressHandler(Handler):
    """Answers one request."""

    server: _Server
    timeout = CLIENT_SECONDS

    def do_GET(self) -> None:
        """Answer, whatever is asked."""
        import msgspec

        shown = self.server.progress
        body = {"step": shown.verb, "bytes": shown.done, "totalBytes": shown.total}
        self.respond(HTTPStatus.OK, JSON, msgspec.json.encode(body))


def _server(port: int, progress: ProgressBar) -> _Server | None:
    """None if there cannot be one: what the command does is more important."""
    try:
        server = _Server(listening_socket(port), ProgressHandler)
    except OSError as error:
        report(f"warning: progress is not served at port {port}: {error.strerror}")
        return None
    server.progress = progress
    return server
