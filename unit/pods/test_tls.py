"""HTTP over TLS between the programs in pods and whoever asks them: who is trusted, and how it ends."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest

from etcd_operator.pki.authority import KeyPair, issue, new_ca
from etcd_operator.pki.names import names_of
from etcd_operator.pki.profiles import server as server_leaf
from etcd_operator.pods import http_client
from etcd_operator.pods.http_client import Download, Trust, call
from etcd_operator.pods.http_server import BYTES, Handler, ListeningServer, listening_socket
from unit.waiting import eventually

NAME = "c-backup-tool"
BODY = bytes(range(256)) * 4096


class Server(ListeningServer):
    daemon_threads = True
    poll_seconds = 0.01
    most_clients = 2
    header_seconds = 0.5


class Answering(Handler):
    def do_GET(self) -> None:
        self.respond(HTTPStatus.OK, BYTES, BODY)


def ca_named(name: str) -> KeyPair:
    return new_ca(name, now=datetime.now(UTC), duration=timedelta(days=1))


def write(folder: Path, ca: KeyPair, name: str = NAME) -> None:
    """The certificate of a server, as a Secret has it."""
    leaf = server_leaf(names_of((name,), namespace="default", zone="cluster.local"))
    pair = issue(ca, leaf, now=datetime.now(UTC), duration=timedelta(hours=1))
    (folder / "server.crt").write_bytes(pair.certificate)
    (folder / "server.key").write_bytes(pair.key)


@pytest.fixture
def ca() -> KeyPair:
    return ca_named("the CA")


@pytest.fixture
def server(ca: KeyPair, tmp_path: Path) -> Iterator[Server]:
    write(tmp_path, ca)
    made = Server(listening_socket(0, host="127.0.0.1"), Answering, tls=tmp_path)
    made.start()
    yield made
    made.stop()


def at(server: Server, ca: KeyPair, name: str = NAME) -> http_client.Server:
    trust = Trust(ca=ca.certificate, name=name)
    return http_client.Server(address=("127.0.0.1", server.port), token="t", trust=trust)


def asked(where: http_client.Server) -> tuple[int, bytes]:
    return call("GET /x", where, end=time.monotonic() + 20.0, largest=1 << 22)


@pytest.mark.parametrize("name", [NAME, f"{NAME}.default.svc"])
def test_a_server_with_the_name_of_this_ca_is_asked(server: Server, ca: KeyPair, name: str) -> None:
    assert asked(at(server, ca, name)) == (200, BODY)
    download = Download(at(server, ca, name), timeout=20.0)
    download.request("GET", "/x")
    assert download.getresponse().read() == BODY
    download.close()


def test_another_one_is_sent_nothing(server: Server, ca: KeyPair) -> None:
    for other in (at(server, ca, "another-tool"), at(server, ca_named("the CA"))):
        with pytest.raises(ssl.SSLCertVerificationError):
            asked(other)
        with pytest.raises(ssl.SSLCertVerificationError):
            Download(other, timeout=20.0).request("GET", "/x")


def test_a_client_without_tls_is_answered_nothing(server: Server) -> None:
    plain = http_client.Server(address=("127.0.0.1", server.port))
    with pytest.raises(OSError, match=r"reset|no HTTP|it does not answer"):
        asked(plain)


def test_a_renewed_certificate_is_used_and_one_that_is_missing_opens_nothing(
    server: Server, ca: KeyPair, tmp_path: Path
) -> None:
    other = ca_named("another CA")
    write(tmp_path, other)
    assert asked(at(server, other))[0] == 200
    key = (tmp_path / "server.key").read_bytes()
    (tmp_path / "server.key").unlink()
    with pytest.raises(OSError, match=r".*"):
        asked(at(server, other))
    (tmp_path / "server.key").write_bytes(key)
    assert asked(at(server, other))[0] == 200


def test_clients_without_a_handshake_hold_up_nobody(server: Server, ca: KeyPair) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(4)]
    assert asked(at(server, ca))[0] == 200
    for client in silent:
        assert client.recv(1) == b"", "it had its time"
        client.close()
    eventually(lambda: len([t for t in threading.enumerate() if "process_request" in t.name]) == 0)
