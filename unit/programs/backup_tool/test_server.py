"""The HTTP API: what is served to whom, and how it ends."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.archive.manifest import manifest_name
from etcd_operator.pods import client
from etcd_operator.programs.backup_tool import server
from etcd_operator.programs.backup_tool.server import ApiServer
from etcd_operator.programs.backup_tool.worker import Worker
from etcd_operator.storage.directory import Directory
from unit.archive.samples import snapshot
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.programs.backup_tool.support import FOLDER, TOKEN, put, request, tool
from unit.waiting import eventually


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


@pytest.mark.parametrize("path", ["/backup", "/v1/backup", "/v1/backup?etcdVersion=3.6.16"])
def test_the_newest_backup_is_served(port: int, path: str) -> None:
    answer = request(port, path)
    assert (answer.status, answer.body) == (200, snapshot(5))
    assert (answer.headers["X-etcd-Version"], answer.headers["X-Revision"]) == ("3.6.16", "6")
    head = request(port, path, method="HEAD")
    assert (head.status, head.body) == (200, b"")
    for name in ("X-etcd-Version", "X-Revision", "Content-Length"):
        assert head.headers[name] == answer.headers[name]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("3.6.0", 200), ("v3.6.16", 200), ("3.7.3", 200), ("", 200),
        ("3.5.35", 400), ("3.8.0", 400), ("latest", 400), ("4.0.0", 400),
    ],
)  # fmt: skip
def test_a_backup_is_for_its_own_minor_and_the_next(port: int, asked: str, status: int) -> None:
    answer = request(port, f"/v1/backup?etcdVersion={asked}")
    assert answer.status == status
    if status == 400:
        assert asked in answer.body.decode()


def test_without_a_backup_there_is_none(root: Path) -> None:
    with tool(root, "127.0.0.1:1") as (_, api):
        answer = request(api.port, "/v1/backup")
        assert (answer.status, answer.body) == (404, b"there is no backup yet\n")


@pytest.mark.parametrize("path", ["/backup", "/v1/backup", "/backupnow", "/v1/backupnow", "/v1/status", "/x"])
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


def test_a_backup_is_taken_now(port: int, etcd: FakeEtcdCluster) -> None:
    etcd.revision = 9
    answer = request(port, "/backupnow")
    assert answer.status == 200
    assert (answer.document["newest"]["revision"], answer.document["count"]) == (9, 2)
    again = request(port, "/v1/backupnow")
    assert (again.status, again.document["count"]) == (200, 2)
    assert request(port, "/v1/backup").headers["X-Revision"] == "9"


def test_a_backup_that_fails_now_reports_why(port: int, etcd: FakeEtcdCluster) -> None:
    etcd.revision = 9
    etcd.damage = lambda _: b"nothing"
    answer = request(port, "/backupnow")
    assert answer.status == 502
    assert "damaged" in answer.body.decode()
    status = request(port, "/v1/status").document
    assert status["failure"]["reason"] == "SnapshotDamaged"
    assert status["count"] == 1


def test_a_turn_that_does_not_come_is_not_waited_for_for_ever(
    port: int, etcd: FakeEtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "TURN_SECONDS", 0.05)
    etcd.revision = 9
    etcd.damage = lambda _: snapshot(100)
    reached, resume = threading.Event(), threading.Event()

    def hold(index: int) -> None:
        if index == 1:
            reached.set()
            resume.wait(30)

    etcd.on_chunk = hold
    first = threading.Thread(target=request, args=(port, "/backupnow"))
    first.start()
    try:
        assert reached.wait(20)
        assert request(port, "/v1/status").document["isBackingUp"]
        answer = request(port, "/backupnow")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "10")
    finally:
        resume.set()
        first.join(20)


def test_what_differs_from_its_manifest_never_arrives_whole(port: int, root: Path) -> None:
    (path,) = (each for each in (root / FOLDER).iterdir() if not each.name.endswith(".json"))
    damaged = bytearray(path.read_bytes())
    damaged[5000] ^= 1
    path.write_bytes(damaged)
    answer = request(port, "/v1/backup")
    assert not answer.is_whole
    path.write_bytes(damaged[:-1])
    assert request(port, "/v1/backup").status == 404


def test_a_download_streams(port: int, root: Path, etcd: FakeEtcdCluster) -> None:
    """What comes before the damage is sent before it is found."""
    large = snapshot(100, value=30_000)
    etcd.revision, etcd.damage = 101, lambda _: large
    assert request(port, "/backupnow").status == 200
    assert request(port, "/v1/backup").body == large
    path = root / FOLDER / "3.6.16_0000000000000065_etcd.backup"
    path.write_bytes(large[:-1] + bytes([large[-1] ^ 1]))
    answer = request(port, "/v1/backup")
    assert not answer.is_whole
    assert len(large) > len(answer.body) >= 1 << 20


def test_a_store_that_is_gone_is_a_bad_gateway(port: int, root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    answer = request(port, "/v1/backup")
    assert answer.status == 502
    assert "does not exist" in answer.body.decode()
    assert request(port, "/v1/status").document["count"] == 1
    root.with_name("elsewhere").rename(root)


def test_more_downloads_than_allowed_are_sent_away(parts: tuple[Worker, ApiServer], port: int) -> None:
    downloads = parts[1].downloads
    for _ in range(server.MOST_DOWNLOADS):
        assert downloads.acquire(blocking=False)
    assert request(port, "/v1/backup").status == 503
    assert request(port, "/v1/backup", method="HEAD").status == 200
    assert request(port, "/v1/status").status == 200
    for _ in range(server.MOST_DOWNLOADS):
        downloads.release()
    assert request(port, "/v1/backup").status == 200


def test_more_clients_than_allowed_are_sent_away(port: int) -> None:
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(server.MOST_CLIENTS)]
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as late:
            assert late.recv(100).startswith(b"HTTP/1.0 503 ")
    finally:
        for each in silent:
            each.close()
    eventually(lambda: request(port, "/healthz", token=None).status == 200)


def test_paths_and_methods(port: int) -> None:
    assert request(port, "/nothing").status == 404
    assert request(port, "/v1/backups", method="DELETE", token=TOKEN).status == 200
    assert request(port, "/v1/backup", method="DELETE").status == 404
    assert request(port, "/backupnow", method="HEAD").status == 405
    assert request(port, "/v1/backup", method="POST").status == 501
    assert request(port, "/healthz", token=None).body == b"ok\n"


def test_all_backups_are_removed_on_request(port: int, root: Path) -> None:
    other = put(Directory(root), 5, folder="v1/default/c-2")
    report = client.clean_up(("127.0.0.1", port), TOKEN)
    assert report.count == 0
    assert not list((root / FOLDER).iterdir())
    assert (root / manifest_name(other)).exists()


def test_the_operator_reads_the_report(port: int) -> None:
    report = client.ask(("127.0.0.1", port), TOKEN)
    assert report.newest is not None
    assert (report.newest.revision, report.count, report.failure) == (6, 1, None)
    assert report.since_success is not None
    with pytest.raises(client.TokenRefused):
        client.ask(("127.0.0.1", port), "wrong")


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
            client.ask(("127.0.0.1", listener.getsockname()[1]), TOKEN)
        thread.join(20)


def test_a_tool_that_is_silent_or_gone_is_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, monkeypatch.context() as patch:
        port = listener.getsockname()[1]
        patch.setattr(client, "DEADLINE", 0.1)
        with pytest.raises(client.NoReport, match="no answer in time"):
            client.ask(("127.0.0.1", port), TOKEN)
    with pytest.raises(client.NoReport, match="refused"):
        client.ask(("127.0.0.1", port), TOKEN)
