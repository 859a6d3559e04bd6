"""The tool with a bucket: names, neighbours, and what is served."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.programs.backup_tool.process import place
from unit.archive.samples import snapshot
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.programs.backup_tool.support import FOLDER, newest, request, tool
from unit.storage import moto_s3
from unit.waiting import eventually

FILE = "3.6.16_{:016x}_etcd.backup"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a prefix in a bucket."""
    with moto_s3.served(monkeypatch) as server:
        yield f"s3://bucket/etcd/main/?endpoint={server.address}&disableSSL=true&region=us-east-1"


def names(bucket: str) -> list[str]:
    store = place(bucket, "")[0]()
    return sorted(stored.name for stored in store.list("") if not stored.name.endswith(".json"))


def test_backups_in_a_bucket(bucket: str, endpoint: str, etcd: FakeEtcdCluster, tmp_path: Path) -> None:
    with tool(tmp_path / "unused", endpoint, interval=0.2, keep=2, to=bucket) as (worker, server):
        for revision in (6, 9, 10, 100):
            etcd.revision = revision
            eventually(lambda revision=revision: newest(worker) == revision)  # type: ignore[misc]
        kept = [f"etcd/main/{FOLDER}/{FILE.format(revision)}" for revision in (10, 100)]
        assert names(bucket) == kept
        answer = request(server.port, f"/v1/backup?name={FILE.format(100)}")
        assert (answer.status, answer.body) == (200, snapshot(99))
        other = place(bucket, "v1/default/c-2")[0]()
        other.put("etcd/main/v1/default/c-2/x", iter([b"y"]))
        assert request(server.port, "/v1/backups", method="DELETE").status == 200
        assert names(bucket) == ["etcd/main/v1/default/c-2/x"]


def test_a_bucket_without_a_prefix() -> None:
    assert place("s3://bucket/", FOLDER)[1] == FOLDER
    assert place("s3://bucket/a/", FOLDER)[1] == f"a/{FOLDER}"
    assert place("/var/etcd-backup/", FOLDER)[1] == FOLDER
