"""Handshakes with servers of every kind: what they present, and what either side refuses."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from etcd_operator.errors import Unavailable
from etcd_operator.etcd import handshake
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.etcd.handshake import NO_TLS, shake
from etcd_operator.pki import profiles
from etcd_operator.pki.authority import KeyPair, issue, new_ca
from etcd_operator.pki.description import describe
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.names import names_of
from unit.etcd.real import RealEtcdCluster, free_address
from unit.etcd.support import open_files
from unit.pki.handshakes import context
from unit.waiting import eventually

DAY = timedelta(days=1)
NOW = datetime.now(UTC).replace(microsecond=0)
CA, OTHER = (new_ca(name, now=NOW - 9 * DAY, duration=90 * DAY) for name in ("a CA", "another"))
NAMES = names_of(["my-0"], namespace="ns", zone="cluster.local")
SERVER = profiles.server(NAMES)
LEAF = issue(CA, SERVER, now=NOW, duration=DAY)
ROOT = issue(CA, profiles.client("root"), now=NOW, duration=DAY)
OLD_ROOT = issue(CA, profiles.client("root"), now=NOW - 2 * DAY, duration=DAY)
FOREIGN = issue(OTHER, profiles.client("root"), now=NOW, duration=DAY)
DEADLINE = 20.0

Serve = Callable[[socket.socket], None]


def credentials(
    client: KeyPair | None = ROOT, *, ca: bytes = CA.certificate, name: str = "my-0"
) -> TlsCredentials:
    pair = (None, None) if client is None else (client.certificate, client.key)
    return TlsCredentials(ca=ca, certificate=pair[0], key=pair[1], server_name=name)


@contextmanager
def serving(serve: Serve) -> Iterator[str]:
    """A server for connections one after the other; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    if connection.recv(1, socket.MSG_PEEK) == b"x":
                        return
                    serve(connection)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        address = listener.getsockname()
        try:
            yield f"127.0.0.1:{address[1]}"
        finally:
            with socket.create_connection(address) as last:
                last.sendall(b"x")
                thread.join(30)
    assert not thread.is_alive()


def tls(leaf: KeyPair = LEAF, *, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, tickets: int = 2) -> Serve:
    """A server that requires certificates of the CA."""
    made = context(ssl.Purpose.CLIENT_AUTH, ca=CA.certificate, leaf=leaf)
    made.minimum_version = made.maximum_version = version
    made.num_tickets = tickets

    def serve(connection: socket.socket) -> None:
        try:
            with made.wrap_socket(connection, server_side=True) as secured:
                while secured.recv(4096):
                    secured.sendall(b"HTTP/1.1 404 Not Found\r\n\r\n")
        except OSError:
            pass

    return serve


VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])


@VERSIONS
@pytest.mark.parametrize("tickets", [0, 2])
def test_what_the_server_presents_is_read(version: ssl.TLSVersion, tickets: int) -> None:
    with serving(tls(version=version, tickets=tickets)) as endpoint:
        found = shake(endpoint, credentials(), deadline=DEADLINE)
    assert found.is_accepted
    assert found.leaf == describe(LEAF.certificate)


@VERSIONS
@pytest.mark.parametrize(
    ("client", "part"),
    [(None, "certificate|handshake"), (FOREIGN, "unknown ca"), (OLD_ROOT, "certificate expired")],
)
def test_why_the_server_refuses_is_read(version: ssl.TLSVersion, client: KeyPair | None, part: str) -> None:
    with serving(tls(version=version)) as endpoint:
        found = shake(endpoint, credentials(client), deadline=DEADLINE)
    assert any(each in found.refusal for each in part.split("|"))
    assert not found.distrust
    assert not found.is_accepted


@pytest.mark.parametrize(
    ("leaf", "given", "reason"),
    [
        (LEAF, credentials(ca=OTHER.certificate), "self-signed certificate in certificate chain"),
        (LEAF, credentials(name="my-1"), "Hostname mismatch, certificate is not valid for 'my-1'."),
        (
            issue(CA, SERVER, now=NOW - 2 * DAY, duration=DAY),
            credentials(),
            "certificate has expired",
        ),
        (issue(CA, SERVER, now=NOW + DAY, duration=DAY), credentials(), "certificate is not yet valid"),
    ],
)
def test_a_server_that_is_not_accepted_is_read_all_the_same(
    leaf: KeyPair, given: TlsCredentials, reason: str
) -> None:
    with serving(tls(leaf)) as endpoint:
        found = shake(endpoint, given, deadline=DEADLINE)
    assert (found.distrust, found.refusal) == (reason, "")
    assert found.leaf == describe(leaf.certificate)


def test_a_port_without_tls_is_reported() -> None:
    with serving(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as endpoint:
        assert shake(endpoint, credentials(), deadline=DEADLINE).refusal == NO_TLS


def test_a_server_that_closes_is_unavailable() -> None:
    with serving(lambda connection: None) as endpoint, pytest.raises(Unavailable, match="no TLS handshake"):
        shake(endpoint, credentials(), deadline=DEADLINE)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="Connection refused"):
        shake(free_address(), credentials(), deadline=DEADLINE)


def test_a_silent_server_is_waited_for_until_the_deadline() -> None:
    def silent(connection: socket.socket) -> None:
        while connection.recv(4096):
            pass

    begin = time.monotonic()
    with serving(silent) as endpoint, pytest.raises(Unavailable):
        shake(endpoint, credentials(), deadline=0.2)
    assert 0.2 <= time.monotonic() - begin < 15


def test_what_is_received_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "LARGEST", 100)
    with serving(tls()) as endpoint, pytest.raises(Unavailable, match="more than 100 bytes"):
        shake(endpoint, credentials(), deadline=DEADLINE)


@pytest.mark.parametrize(
    "given",
    [
        credentials(KeyPair(ROOT.certificate, LEAF.key)),
        credentials(KeyPair(b"x", b"y")),
        credentials(ca=b"no PEM"),
        credentials(ca=b"\xff"),
    ],
)
def test_credentials_that_cannot_be_used_are_an_error(given: TlsCredentials) -> None:
    with pytest.raises(BadCertificate, match="cannot be used") as caught:
        shake("127.0.0.1:1", given, deadline=DEADLINE)
    assert "PRIVATE" not in str(caught.value)


def test_no_file_stays_open() -> None:
    with serving(tls()) as endpoint:
        shake(endpoint, credentials(), deadline=DEADLINE)
        before = open_files()
        for _ in range(3):
            shake(endpoint, credentials(FOREIGN), deadline=DEADLINE)
            shake(endpoint, credentials(name="other"), deadline=DEADLINE)
        eventually(lambda: open_files() <= before)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Of a member that uses one leaf for both of its ports."""
    write(tmp_path, LEAF)
    (tmp_path / "ca").write_bytes(CA.certificate)
    peer = issue(CA, profiles.PEER_DIALING, now=NOW, duration=DAY)
    (tmp_path / "dial.crt").write_bytes(peer.certificate)
    (tmp_path / "dial.key").write_bytes(peer.key)
    return tmp_path


def write(folder: Path, leaf: KeyPair) -> None:
    (folder / "crt").write_bytes(leaf.certificate)
    (folder / "key").write_bytes(leaf.key)


@pytest.fixture
def member(binaries: Path, files: Path) -> Iterator[RealEtcdCluster]:
    """A real etcd whose ports both need certificates of the CA."""
    flags = {
        "cert-file": "crt",
        "key-file": "key",
        "trusted-ca-file": "ca",
        "peer-cert-file": "crt",
        "peer-key-file": "key",
        "peer-client-cert-file": "dial.crt",
        "peer-client-key-file": "dial.key",
        "peer-trusted-ca-file": "ca",
    }
    tls = [f"--{flag}={files / name}" for flag, name in flags.items()]
    cluster = RealEtcdCluster(
        binaries,
        files,
        tls=(*tls, "--client-cert-auth", "--peer-client-cert-auth", "--enable-grpc-gateway=false"),
    )
    peer_url = f"https://{free_address()}"
    cluster.start("a", peer_url, {"a": peer_url}, state="new")
    eventually(lambda: bool(shake(cluster.endpoint("a"), credentials())))
    yield cluster
    cluster.close()


def test_etcd_shows_its_leaf_and_why_it_refuses(member: RealEtcdCluster, files: Path) -> None:
    wrong_usage = issue(CA, SERVER, now=NOW, duration=DAY)
    expected = {
        ROOT: "",
        None: "certificate required",
        FOREIGN: "unknown ca",
        OLD_ROOT: "certificate expired",
        wrong_usage: "bad certificate",
    }
    client, peer = member.endpoint("a"), member.peer_url("a").removeprefix("https://")
    for endpoint in (client, peer):
        for pair, reason in expected.items():
            found = shake(endpoint, credentials(pair), deadline=DEADLINE)
            assert (found.refusal, found.distrust) == (reason, "")
            assert found.leaf == describe(LEAF.certificate)
    renewed = issue(CA, SERVER, now=NOW, duration=DAY)
    write(files, renewed)
    for endpoint in (client, peer):
        leaf = shake(endpoint, credentials(), deadline=DEADLINE).leaf
        assert leaf is not None
        assert leaf.serial == describe(renewed.certificate).serial
    old = issue(CA, SERVER, now=NOW - 2 * DAY, duration=DAY)
    write(files, old)
    found = shake(client, credentials(), deadline=DEADLINE)
    assert (found.distrust, found.refusal) == ("certificate has expired", "")
    (files / "key").write_bytes(ROOT.key)
    assert shake(client, credentials(), deadline=DEADLINE).refusal == "internal error"
