"""The commands with a bucket: what a plain folder cannot show."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from unit.archive.samples import chunks, snapshot
from unit.commands.conftest import Run
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.storage import moto_s3
from unit.waiting import eventually

LARGE = snapshot(3, value=8 << 20)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The query that leads to a bucket called `bucket`."""
    with moto_s3.served(monkeypatch) as server:
        yield f"?{moto_s3.query(server)}"


def test_from_a_backup_to_a_file(run: Run, endpoint: str, bucket: str, tmp_path: Path) -> None:
    ran = run("backup", "--endpoints", endpoint, "--to", f"s3://bucket/a/{bucket}", "--compress", "--json")
    assert (ran.code, ran.err) == (0, "")
    name = ran.document["name"]
    assert name.startswith("a/")
    run("backup", "--endpoints", endpoint, "--to", f"s3://bucket/a-b/other.db{bucket}")
    listed = run("list", f"s3://bucket/a{bucket}", "--json").document["backups"]
    assert [(each["name"], each["state"]) for each in listed] == [(name.removeprefix("a/"), "complete")]
    assert run("verify", f"s3://bucket/{name}{bucket}").code == 0
    assert run("fetch", f"s3://bucket/{name}{bucket}", tmp_path / "s.db").code == 0
    assert (tmp_path / "s.db").read_bytes() == snapshot()
    taken = run("backup", "--endpoints", endpoint, "--to", f"s3://bucket/{name}{bucket}")
    assert (taken.code, "exists already: choose another name" in taken.err) == (1, True)


def test_a_bucket_that_is_missing_is_one_line(run: Run, endpoint: str, bucket: str) -> None:
    ran = run("backup", "--endpoints", endpoint, "--to", f"s3://nowhere/one.db{bucket}")
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "nowhere" in ran.err
    assert "planted" not in ran.err


def test_a_signal_in_the_middle_leaves_no_parts(etcd: FakeEtcdCluster, endpoint: str, bucket: str) -> None:
    reached, resume = Event(), Event()
    etcd.damage = lambda _: LARGE
    last = len(list(chunks(LARGE))) - 1

    def hold(index: int) -> None:
        if index == last:
            reached.set()
            resume.wait(60)

    etcd.on_chunk = hold
    command = [sys.executable, "-m", "etcd_operator", "backup", "--endpoints", endpoint]
    command += ["--to", f"s3://bucket/one.db{bucket}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert reached.wait(60)
        eventually(lambda: moto_s3.uploads() != [])
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        resume.set()
    assert (process.returncode, err) == (143, "etcd-operator: interrupted by SIGTERM\n")
    assert moto_s3.uploads() == []
