"""What is read of the metrics page that a member serves by HTTP."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch

import pytest

from etcd_operator.etcd import metrics_page
from etcd_operator.etcd.metrics_page import read
from etcd_operator.etcd.values import UNREAD, MetricsPage

SAVED = b"etcd_debugging_snap_save_total_duration_seconds_count"
LEADERS = b"etcd_server_leader_changes_seen_total"
AGREED = b'etcd_cluster_version{cluster_version="%s"} %d\n'
DEADLINE = 3.0
SLACK = 15.0
"""Seconds that a busy machine may take longer."""

Handle = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(*hosts: str, by: Handle) -> Iterator[None]:
    """Listeners on these loopback addresses, all at one port of their own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            by(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class
            """Nothing on the terminal."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in hosts[0] else socket.AF_INET

    servers = [Server((hosts[0], 0), Handler)]
    port = servers[0].server_address[1]
    servers += [Server((host, port), Handler) for host in hosts[1:]]
    threads = [threading.Thread(target=server.serve_forever, args=(0.02,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        with patch.object(metrics_page, "METRICS_PORT", port):
            yield
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()


def answering(body: bytes, status: int = 200) -> Handle:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return handle


def at(*hosts: str) -> list[str]:
    return [f"{host}:2379" for host in hosts]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (SAVED + b" 0\n", MetricsPage(snapshots_saved=0)),
        (b"# HELP\n" + SAVED + b" 1.2e+01\n", MetricsPage(snapshots_saved=12)),
        (SAVED + b"_else 3\n", UNREAD),
        (LEADERS + b" 0\n", MetricsPage(leaders_seen=0)),
        (LEADERS + b" 2\n" + SAVED + b" 1\n", MetricsPage(leaders_seen=2, snapshots_saved=1)),
        (AGREED % (b"3.5", 0) + AGREED % (b"3.6", 1), MetricsPage(cluster_version="3.6.0")),
        (AGREED % (b"3.10", 1), MetricsPage(cluster_version="3.10.0")),
        ((AGREED % (b"3.6", 1))[:-1], UNREAD),
        (LEADERS + b" " + b"9" * 5000 + b"\n", UNREAD),
        (AGREED % (b"3." + b"9" * 5000, 1), UNREAD),
        (b"etcd_debugging_auth_revision 1e+06\n", MetricsPage(auth_revision=1_000_000)),
        (b"", UNREAD),
    ],
)
def test_facts_are_known_only_where_the_page_reports_so(body: bytes, found: MetricsPage) -> None:
    with serving("127.0.0.1", by=answering(body)):
        assert read(at("127.0.0.1")) == {"127.0.0.1:2379": found}


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_a_page_at_an_ipv6_address_is_requested_by_that_address_in_brackets() -> None:
    requested: list[str] = []

    def handle(request: BaseHTTPRequestHandler) -> None:
        requested.append(request.headers["Host"])
        answering(LEADERS + b" 0\n")(request)

    with serving("::1", by=handle):
        assert read(at("[::1]")) == {"[::1]:2379": MetricsPage(leaders_seen=0)}
    assert requested == ["[::1]"]


def test_a_page_that_is_refused_reports_nothing() -> None:
    with patch.object(metrics_page, "METRICS_PORT", 1):
        assert read(at("127.0.0.1")) == {"127.0.0.1:2379": UNREAD}


def test_an_answer_that_is_no_page_reports_nothing() -> None:
    with serving("127.0.0.1", by=answering(LEADERS + b" 0\n", status=503)):
        assert read(at("127.0.0.1")) == {"127.0.0.1:2379": UNREAD}


def test_nothing_is_read_where_nothing_is_requested() -> None:
    assert read([]) == {}


def test_one_that_hangs_hides_no_other_and_holds_nobody_up() -> None:
    release = threading.Event()

    def handle(request: BaseHTTPRequestHandler) -> None:
        if request.connection.getsockname()[0] == "127.0.0.1":
            assert release.wait(30)
        answering(LEADERS + b" 0\n")(request)

    with serving("127.0.0.1", "127.0.0.2", by=handle):
        began = time.monotonic()
        try:
            found = read(at("127.0.0.1", "127.0.0.2"), deadline=DEADLINE)
            took = time.monotonic() - began
        finally:
            release.set()
    assert found == {"127.0.0.1:2379": UNREAD, "127.0.0.2:2379": MetricsPage(leaders_seen=0)}
    assert took < DEADLINE + SLACK


def test_a_page_that_drips_is_given_up_at_the_deadline() -> None:
    """One byte at a time keeps every single read of a socket within its time."""
    release = threading.Event()

    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000000")
        request.end_headers()
        while not release.wait(DEADLINE / 10):
            request.wfile.write(b"#")

    with serving("127.0.0.1", by=handle):
        began = time.monotonic()
        try:
            assert read(at("127.0.0.1"), deadline=DEADLINE) == {"127.0.0.1:2379": UNREAD}
            took = time.monotonic() - began
        finally:
            release.set()
    assert took < DEADLINE + SLACK


def test_a_page_without_end_is_given_up() -> None:
    with serving("127.0.0.1", by=answering(b"#" * (5 * 1024 * 1024))):
        assert read(at("127.0.0.1"), deadline=30.0) == {"127.0.0.1:2379": UNREAD}
