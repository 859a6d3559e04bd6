"""What all HTTP servers do with clients that are silent, slow, too many, or leave."""

import socket
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from etcd_operator.pods.http_server import BYTES, Handler, ListeningServer, listening_socket
from unit.waiting import eventually

LARGE = bytes(1 << 24)
GET = b"GET /%s HTTP/1.0\r\n\r\n"


class Server(ListeningServer):
    """`/large` streams more than a socket buffers; all else is answered at once."""

    daemon_threads = True
    poll_seconds = 0.01
    most_clients = 4


class Answering(Handler):
    def do_GET(self) -> None:
        if self.path == "/large":
            self.respond(HTTPStatus.OK, BYTES, LARGE)
        else:
            self.text(HTTPStatus.OK, "ok")


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(listening_socket(0, host="127.0.0.1"), Answering)
    made.start()
    yield made
    made.stop()


def connected(server: Server, sent: bytes = b"") -> socket.socket:
    """A client that has sent this."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    client.sendall(sent)
    return client


def answer(server: Server) -> bytes:
    """What another client is answered."""
    with connected(server, GET % b"x") as client:
        received = b""
        while block := client.recv(4096):
            received += block
        return received


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_of_too_many_silent_clients_the_oldest_makes_room(server: Server) -> None:
    first, *others = [connected(server) for _ in range(Server.most_clients)]
    assert answer(server).endswith(b"ok\n")
    assert is_closed(first)
    for each in others:
        each.sendall(GET % b"x")
        assert each.recv(12) == b"HTTP/1.0 200"
    for each in (first, *others):
        each.close()


def test_whoever_is_being_answered_is_not_disconnected_for_others(server: Server) -> None:
    readers = [connected(server, GET % b"large") for _ in range(Server.most_clients - 1)]
    for each in readers:
        assert each.recv(12) == b"HTTP/1.0 200"
    with connected(server) as silent:
        assert answer(server).endswith(b"ok\n")
        assert is_closed(silent)
    with connected(server, GET % b"large") as last:
        assert last.recv(12) == b"HTTP/1.0 200"
        with connected(server) as late:
            assert late.recv(100).startswith(b"HTTP/1.0 503 ")
    for each in readers:
        received = 12
        while block := each.recv(1 << 20):
            received += len(block)
        assert received > len(LARGE)
        each.close()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.0\r\nA: b\r\n"], ids=["request line", "headers"])
def test_a_header_that_comes_byte_by_byte_has_one_deadline(
    server: Server, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server, "header_seconds", 0.3)
    with connected(server, sent) as client:
        began = time.monotonic()
        client.settimeout(0.05)
        while not _is_dropped(client):
            assert time.monotonic() < began + 20


def _is_dropped(client: socket.socket) -> bool:
    try:
        client.sendall(b"x")
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_a_client_that_leaves_is_not_reported(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    for _ in range(3):
        with connected(server, GET % b"large") as client:
            assert client.recv(12) == b"HTTP/1.0 200"
    eventually(lambda: threading.active_count() <= before)
    shown = capfd.readouterr()
    assert (shown.out, shown.err) == ("", "")
