"""A bucket that fails, and commands that are killed: what is visible then, and the backup after it."""

import subprocess
import sys
from pathlib import Path

import pytest

from unit.archive.samples import chunks, snapshot
from unit.commands.conftest import Bucket, Run
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.storage.server import Fault, Request, answers_with, closes, hangs

LARGE = snapshot(3, value=6 << 20)
"""Sent in three parts."""

WRITES = 6
"""Of a large backup: begin, three parts, end, manifest."""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """etcd always replies here, on a busy machine after a while."""
    monkeypatch.setattr("etcd_operator.archive.source.PATIENCE", 60.0)


def states(run: Run, url: object) -> dict[str, str]:
    return {each["name"]: each["state"] for each in run("list", url, "--json").document["backups"]}


def check_next(run: Run, endpoint: str, url: object) -> None:
    """The next backup, which has another name, works."""
    ran = run("backup", "--endpoints", endpoint, "--to", url, "--quiet")  # a slow machine shows progress
    assert (ran.code, ran.err) == (0, "")
    assert run("verify", url).code == 0


def is_write(request: Request) -> bool:
    return request.method in ("PUT", "POST")


def is_of_manifest(request: Request) -> bool:
    return is_write(request) and request.path.endswith(".json")


FAULTS = {
    "500": answers_with(500, where=is_of_manifest),
    "403": answers_with(403, where=is_of_manifest),
    "full": answers_with(507, where=is_of_manifest),
    "hangs": hangs(where=is_of_manifest),
    "cut off": closes(where=is_of_manifest),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_bucket_that_takes_no_manifest(
    run: Run, endpoint: str, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What is there is no backup, and the error describes what to do with it."""
    bucket.server.faults = [FAULTS[name]]
    with monkeypatch.context() as brief:
        brief.setattr("etcd_operator.commands.flags.STALL_SECONDS", 5.0)
        ran = run("backup", "--endpoints", endpoint, "--to", bucket.url("one.db"), "--json")
    assert (ran.code, ran.document["reason"]) == (1, "ManifestMissing")
    assert "Delete it, and run the backup again" in ran.document["error"]
    bucket.server.faults = []
    assert states(run, bucket.url()) == {"one.db": "incomplete"}
    check_next(run, endpoint, bucket.url("two.db"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_applied", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, WRITES + 1))
def test_killed_at_each_write_to_a_bucket(
    run: Run, etcd: FakeEtcdCluster, endpoint: str, bucket: Bucket, at: int, is_applied: bool
) -> None:
    etcd.damage = lambda _: LARGE
    processes: list[subprocess.Popen[bytes]] = []
    count = 0

    def matches(request: Request) -> bool:
        nonlocal count
        count += is_write(request)
        if not is_write(request) or count != at:
            return False
        processes[0].kill()
        return True

    bucket.server.faults = [Fault(where=matches, applied=is_applied, keep=-1)]
    processes.append(start(endpoint, bucket.url("one.db")))
    assert processes[0].wait(60) == -9
    bucket.server.faults = []
    expected = {5: "incomplete", 6: "complete"} if is_applied else {6: "incomplete"}
    assert states(run, bucket.url()) == ({"one.db": expected[at]} if at in expected else {})
    if expected.get(at) == "complete":
        assert run("verify", bucket.url("one.db")).code == 0
    check_next(run, endpoint, bucket.url("two.db"))


@pytest.mark.exhaustive
def test_killed_at_each_chunk_into_a_folder(
    run: Run, etcd: FakeEtcdCluster, endpoint: str, backups: Path
) -> None:
    data = snapshot(100)
    etcd.damage = lambda _: data
    for at in range(len(list(chunks(data)))):
        processes: list[subprocess.Popen[bytes]] = []
        etcd.on_chunk = lambda index, at=at, running=processes: running[0].kill() if index == at else None
        processes.append(start(endpoint, str(backups / "one.db")))
        assert processes[0].wait(60) == -9
        assert states(run, backups) == {}
        assert not (backups / "one.db").exists()
        etcd.on_chunk = None
        check_next(run, endpoint, backups / f"next-{at}.db")
        for path in backups.iterdir():
            path.unlink()


def start(endpoint: str, to: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "etcd_operator", "backup", "--endpoints", endpoint, "--to", to]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
