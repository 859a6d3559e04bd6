"""What is read of a member's metrics page."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch

import pytest

from etcd_operator.etcd import vitals

SAVED = b"etcd_debugging_snap_save_total_duration_seconds_count"
LEADERS = b"etcd_server_leader_changes_seen_total"


@contextmanager
def page(body: bytes) -> Iterator[None]:
    """A metrics page at 127.0.0.1, at a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        with patch.object(vitals, "METRICS_PORT", server.server_address[1]):
            yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("body", "saved"),
    [
        (SAVED + b" 0\n", 0),
        (b"# HELP\n" + SAVED + b" 1.2e+01\n", 12),
        (SAVED + b"_else 3\n", None),
        (b"", None),
    ],
)
def test_saved_raft_snapshots_are_counted_where_the_page_says_so(body: bytes, saved: int | None) -> None:
    with page(body):
        assert vitals.snapshots_saved("127.0.0.1") == saved


@pytest.mark.parametrize(
    ("body", "never"), [(LEADERS + b" 0\n", True), (LEADERS + b" 2\n", False), (b"", False)]
)
def test_a_leader_was_never_seen_only_where_the_page_says_so(body: bytes, never: bool) -> None:
    with page(body):
        assert vitals.has_never_led("127.0.0.1") is never


def test_a_page_that_does_not_answer_tells_nothing() -> None:
    with patch.object(vitals, "METRICS_PORT", 1):
        assert vitals.snapshots_saved("127.0.0.1") is None
        assert vitals.has_never_led("127.0.0.1") is False
