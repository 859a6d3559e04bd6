import contextlib
import errno
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from socketserver import TCPServer

import pytest
from structlog.testing import capture_logs

from etcd_operator.errors import OperatorError
from etcd_operator.observability import server as module
from etcd_operator.observability.metrics import Metrics
from etcd_operator.observability.server import HealthCheck, StatusServer, bind
from unit.waiting import eventually

Answer = tuple[int, str, dict[str, str]]
Make = Callable[..., StatusServer]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[StatusServer] = []

    def start(
        listen: str = "127.0.0.1:0",
        *,
        health: Mapping[str, HealthCheck] | None = None,
        ready: Mapping[str, HealthCheck] | None = None,
        client_timeout: float = 5,
    ) -> StatusServer:
        server = StatusServer(
            listen,
            metrics=Metrics().render,
            health=health or {},
            ready=ready or {},
            client_timeout=client_timeout,
        )
        made.append(server)
        server.start()
        return server

    yield start
    for server in made:
        assert server.stop(30)


def ask(server: StatusServer, path: str, *, method: str = "GET", host: str = "127.0.0.1") -> Answer:
    connection = http.client.HTTPConnection(host, server.port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode(), dict(response.getheaders())


def well() -> tuple[bool, str]:
    return True, "fine"


def ill() -> tuple[bool, str]:
    return False, "lease lost"


def broken() -> tuple[bool, str]:
    raise KeyError("oops")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_page_without_failing_checks_is_ok(path: str, make: Make) -> None:
    status, body, _ = ask(make(health={"a": well}, ready={"b": well}), path)
    assert (status, body) == (200, "ok\n")


def test_verbose_lists_the_checks(make: Make) -> None:
    status, body, _ = ask(make(ready={"leader": well, "caches": well}), "/readyz?verbose")
    assert (status, body) == (200, "[+]leader: fine\n[+]caches: fine\nreadyz check passed\n")


def test_a_failing_check_fails_its_page_only_and_reports_why(make: Make) -> None:
    server = make(health={"threads": well}, ready={"caches": well, "leader": ill})
    status, body, _ = ask(server, "/readyz")
    assert (status, body) == (503, "[+]caches: fine\n[-]leader: lease lost\nreadyz check failed\n")
    assert ask(server, "/healthz")[0] == 200


def test_a_check_that_raises_has_failed(make: Make) -> None:
    with capture_logs() as logs:
        status, body, _ = ask(make(health={"a": broken, "b": well}), "/healthz")
    assert status == 503
    assert "[-]a: KeyError: 'oops'\n[+]b: fine\n" in body
    assert [log["event"] for log in logs] == ["health_check_raised"]


def test_metrics_are_served_in_the_format_of_prometheus(make: Make) -> None:
    status, body, headers = ask(make(), "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    assert "process_cpu_seconds_total" in body


def test_other_paths_are_not_found(make: Make) -> None:
    assert ask(make(), "/")[0] == 404


@pytest.mark.parametrize("path", ["/healthz", "/nothing", "/readyz"])
def test_head_answers_as_get_without_a_body(path: str, make: Make) -> None:
    server = make(ready={"a": ill})
    status, body, headers = ask(server, path)
    head_status, head_body, head_headers = ask(server, path, method="HEAD")
    assert (head_status, head_body) == (status, "")
    assert head_headers["Content-Length"] == headers["Content-Length"] == str(len(body))


def test_other_methods_are_refused(make: Make) -> None:
    assert ask(make(), "/healthz", method="POST")[0] == 501


def test_a_bug_in_a_page_is_logged_and_stops_nothing(make: Make) -> None:
    def breaks(_: str) -> tuple[bytes, str]:
        raise ZeroDivisionError

    server = make()
    server._server.page = partial(module._page, breaks, {"/healthz": {}})
    with capture_logs() as logs:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, "/metrics")
        eventually(lambda: [log["log_level"] for log in logs] == ["error"])
    assert ask(server, "/healthz")[0] == 200


@contextlib.contextmanager
def silent_clients(server: StatusServer, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        clients: list[socket.socket] = []
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            clients.append(stack.enter_context(client))
            client.sendall(b"GET /heal")
            eventually(lambda: len(server._server._clients) >= len(clients))
        yield clients


def test_silent_clients_do_not_block_others(make: Make) -> None:
    server = make()
    with silent_clients(server, 10):
        assert ask(server, "/healthz")[0] == 200


def test_a_silent_client_is_dropped_when_its_time_is_over(make: Make) -> None:
    server = make(client_timeout=0.02)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"GET /heal")
        assert client.recv(100) == b""


def test_the_oldest_of_too_many_clients_makes_room(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_CLIENTS", 4)
    server = make(client_timeout=60)
    with silent_clients(server, 4) as clients:
        assert ask(server, "/healthz")[0] == 200
        assert clients[0].recv(100) == b""
        clients[3].sendall(b"thz HTTP/1.0\r\n\r\n")
        assert clients[3].recv(100).startswith(b"HTTP/1.0 200")


def test_stopping_waits_for_no_client_and_ends_all_threads(make: Make) -> None:
    before = set(threading.enumerate())
    server = make(client_timeout=60)
    with silent_clients(server, 3) as clients:
        assert server.stop(30)
        assert all(client.recv(100) == b"" for client in clients)
    assert set(threading.enumerate()) == before


def test_the_thread_has_a_name_and_is_no_daemon(make: Make) -> None:
    server = make()
    assert server._thread.name == "status-server"
    assert not server._thread.daemon


def test_a_port_is_free_again_after_the_stop_also_of_a_server_never_started(make: Make) -> None:
    started = make()
    port = started.port
    assert started.stop(30)
    idle = StatusServer(f"127.0.0.1:{port}", metrics=Metrics().render, health={}, ready={})
    assert idle.stop(30)
    bind(f"127.0.0.1:{port}").close()


def test_a_port_in_use_is_reported_in_one_line(make: Make) -> None:
    listen = f"127.0.0.1:{make().port}"
    with pytest.raises(OperatorError) as caught:
        make(listen)
    assert str(caught.value) == f"cannot listen on {listen}: Address already in use"


@pytest.mark.parametrize("listen", ["8080", "", "host:", "host:http", "host:70000", ":-1"])
def test_a_malformed_address_is_refused(listen: str) -> None:
    with pytest.raises(OperatorError, match="is not host:port"):
        bind(listen)


def test_a_name_that_does_not_resolve_is_refused_in_one_line() -> None:
    with pytest.raises(OperatorError, match=r"^cannot listen on no-such-host\.invalid:0: .+$"):
        bind("no-such-host.invalid:0")


def test_no_host_means_every_address(make: Make) -> None:
    server = make(":0")
    assert ask(server, "/healthz")[0] == 200
    if socket.has_dualstack_ipv6():
        assert ask(server, "/healthz", host="::1")[0] == 200


def test_a_kernel_without_ipv6_is_served_on_ipv4(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    assert ask(make(":0"), "/healthz")[0] == 200


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_an_ipv6_address_is_written_in_brackets(make: Make) -> None:
    assert ask(make("[::1]:0"), "/healthz", host="::1")[0] == 200


def test_a_client_that_cannot_be_accepted_is_left_waiting_without_a_busy_loop(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a free file descriptor the client remains in the backlog, and its socket readable."""
    tries: list[float] = []
    accept = TCPServer.get_request

    def refused(server: TCPServer) -> object:
        tries.append(time.monotonic())
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(TCPServer, "get_request", refused)
    server = make(health={"a": well})
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        eventually(lambda: len(tries) >= 3)
        assert tries[2] - tries[0] >= module.FULL_SECONDS * 1.9
        monkeypatch.setattr(TCPServer, "get_request", accept)
        assert b"200 OK" in client.recv(100)


def test_a_server_that_cannot_accept_stops_at_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def refused(server: TCPServer) -> object:
        tried.set()
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(module, "FULL_SECONDS", 3600.0)
    monkeypatch.setattr(TCPServer, "get_request", refused)
    server = make()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30):
        assert tried.wait(30)
        assert server.stop(30)
