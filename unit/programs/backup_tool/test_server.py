"""The HTTP API: what is served to whom, and how it ends."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.archive.manifest import manifest_name
from etcd_operator.pods import client
from etcd_operator.programs.backup_tool import server
from etcd_operator.programs.backup_tool.server import ApiServer, ProbeServer
from etcd_operator.programs.backup_tool.worker import Worker
from etcd_operator.storage.directory import Directory
from unit.archive.samples import flip, snapshot
from unit.programs.backup_tool.support import FOLDER, TOKEN, at, put, request, tool
from unit.waiting import eventually

NAME = "3.6.16_0000000000000006_etcd.backup"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def parts(root: Path, endpoint: str) -> Iterator[tuple[Worker, ApiServer]]:
    """A tool that has stored its first backup, at revision 6."""
    with tool(root, endpoint) as running:
        worker, _ = running
        eventually(lambda: worker.report().count == 1)
        yield running


@pytest.fixture
def port(parts: tuple[Worker, ApiServer]) -> int:
    return parts[1].port


def test_a_backup_is_served_by_its_name(port: int) -> None:
    answer = request(port, f"/v1/backup?name={NAME}")
    assert (answer.status, answer.body) == (200, snapshot(5))
    for path in ("/v1/backup", f"/v1/backup?name=x{NAME}"):
        assert request(port, path).status == 404


@pytest.mark.parametrize("path", ["/v1/backup", "/v1/restorable", "/v1/status", "/x"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x"])
def test_nothing_is_reported_without_the_token(port: int, path: str, token: str | None) -> None:
    answer = request(port, path, token=token)
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert TOKEN not in answer.body.decode()
    assert request(port, "/v1/backups", method="DELETE", token=token).status == 401


def test_a_token_that_was_changed_is_used_and_an_empty_one_opens_nothing(port: int, root: Path) -> None:
    token = root.parent / "token"
    token.write_text("another")
    assert request(port, "/v1/status").status == 401
    assert request(port, "/v1/status", token="another").status == 200
    token.write_text("\n")
    assert request(port, "/v1/status", token="").status == 401
    token.unlink()
    assert request(port, "/v1/status", token="another").status == 401


def test_what_differs_from_its_manifest_never_arrives_whole(port: int, root: Path) -> None:
    (path,) = (each for each in (root / FOLDER).iterdir() if not each.name.endswith(".json"))
    flip(path, 5000)
    answer = request(port, f"/v1/backup?name={NAME}")
    assert not answer.is_whole
    path.write_bytes(path.read_bytes()[:-1])
    assert request(port, f"/v1/backup?name={NAME}").status == 404


def test_a_download_streams(port: int, root: Path) -> None:
    """What comes before the damage is sent before it is found."""
    large = snapshot(100, value=30_000)
    path = root / put(Directory(root), 101, data=large)
    assert request(port, f"/v1/backup?name={path.name}").body == large
    path.write_bytes(large[:-1] + bytes([large[-1] ^ 1]))
    answer = request(port, f"/v1/backup?name={path.name}")
    assert not answer.is_whole
    assert len(large) > len(answer.body) >= 1 << 20


def test_a_store_that_is_gone_is_a_bad_gateway(port: int, root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    answer = request(port, f"/v1/backup?name={NAME}")
    assert answer.status == 502
    assert "does not exist" in answer.body.decode()
    assert request(port, "/v1/status").document["count"] == 1
    root.with_name("elsewhere").rename(root)


def test_more_downloads_than_allowed_are_sent_away(parts: tuple[Worker, ApiServer], port: int) -> None:
    downloads = parts[1].downloads
    for _ in range(server.MOST_DOWNLOADS):
        assert downloads.acquire(blocking=False)
    answer = request(port, f"/v1/backup?name={NAME}")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "10")
    assert request(port, "/v1/status").status == 200
    for _ in range(server.MOST_DOWNLOADS):
        downloads.release()
    assert request(port, f"/v1/backup?name={NAME}").status == 200


def test_silent_clients_keep_nobody_from_the_api_or_from_the_probe(port: int) -> None:
    probes = ProbeServer(lambda: True, port=0)
    probes.start()
    silent = [
        socket.create_connection(("127.0.0.1", each))
        for each in (port, probes.port)
        for _ in range(2 * ApiServer.most_clients)
    ]
    try:
        assert request(port, "/v1/status").status == 200
        assert request(probes.port, "/healthz", token=None).status == 200
    finally:
        for each in silent:
            each.close()
        probes.stop()


@pytest.mark.parametrize(("is_alive", "status", "body"), [(True, 200, b"ok\n"), (False, 503, b"dead\n")])
def test_the_probe_reports_whether_backups_are_taken(is_alive: bool, status: int, body: bytes) -> None:
    probes = ProbeServer(lambda: is_alive, port=0)
    probes.start()
    try:
        answer = request(probes.port, "/healthz", token=None)
    finally:
        probes.stop()
    assert (answer.status, answer.body) == (status, body)


def test_paths_and_methods(port: int) -> None:
    assert request(port, "/nothing").status == 404
    assert request(port, "/v1/backups", method="DELETE", token=TOKEN).status == 200
    assert request(port, "/v1/backup", method="DELETE").status == 404
    assert request(port, "/v1/backups").status == 404
    assert request(port, "/v1/backup", method="POST").status == 501


def test_all_backups_are_removed_on_request(port: int, root: Path) -> None:
    other = put(Directory(root), 5, folder="v1/default/c-2")
    report = client.clean_up(at(port))
    assert report.count == 0
    assert not list((root / FOLDER).iterdir())
    assert (root / manifest_name(other)).exists()
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(client.NoReport, match=r"502 .*does not exist"):
        client.clean_up(at(port))


def test_the_operator_reads_the_report(port: int) -> None:
    report = client.ask(at(port))
    assert report.newest is not None
    assert (report.newest.revision, report.count, report.failure) == (6, 1, None)
    assert report.since_success is not None
    with pytest.raises(client.TokenRefused):
        client.ask(at(port, "wrong"))


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (b"", "does not answer with HTTP"),
        (b"SSH-2.0-OpenSSH\r\n", "does not answer with HTTP"),
        (b"HTTP/1.0 502 Bad Gateway\r\n\r\nno store", r"502 \(no store\)"),
        (b"HTTP/1.0 500 Oops\r\n\r\n", "500"),
        (b"HTTP/1.0 200 OK\r\n\r\n{", "cannot be read"),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 70_000, "too long"),
    ],
)
def test_what_is_no_report(reply: bytes, problem: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(client.NoReport, match=problem):
            client.ask(at(listener.getsockname()[1]))
        thread.join(20)


def test_a_tool_that_is_silent_or_gone_is_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, monkeypatch.context() as patch:
        port = listener.getsockname()[1]
        patch.setattr(client, "DEADLINE", 0.1)
        with pytest.raises(client.NoReport, match="no answer in time"):
            client.ask(at(port))
    with pytest.raises(client.NoReport, match="refused"):
        client.ask(at(port))
