"""The tool on a real etcd: what it stores can be restored, and what it keeps is the newest."""

import json
import subprocess
from pathlib import Path

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.etcd.channel import Channels
from unit.archive.conftest import binaries
from unit.etcd.conftest import channels, real
from unit.etcd.real import RealEtcdCluster
from unit.programs.backup_tool.support import FOLDER, request, tool
from unit.waiting import eventually

__all__ = ["binaries", "channels", "real"]


@pytest.fixture
def client(real: RealEtcdCluster, channels: Channels) -> KeyClient:
    real.bootstrap("m0", "m1", "m2")
    client = KeyClient(channels, real.endpoint("m0"))
    eventually(lambda: client.has_quorum(deadline=1.0))
    return client


def revisions(root: Path) -> list[int]:
    names = (path.name for path in (root / FOLDER).glob("*_etcd.backup"))
    return sorted(int(name.split("_")[1], 16) for name in names)


def test_every_second_the_last_three_are_kept(client: KeyClient, binaries: Path, tmp_path: Path) -> None:
    root = tmp_path / "backups"
    with tool(root, client.endpoint, interval=1.0, keep=3) as (worker, server):
        eventually(lambda: worker.report().count == 1)
        seen: list[int] = []
        for turn in range(5):
            written = client.put(b"key", str(turn).encode())
            eventually(lambda written=written: revisions(root)[-1:] == [written])  # type: ignore[misc]
            seen.append(written)
        eventually(lambda: revisions(root) == seen[-3:])
        eventually(lambda: request(server.port, "/v1/status").document["newest"]["revision"] == seen[-1])
        eventually(lambda: worker.report().count == 3)
        newest = request(server.port, "/v1/status").document["newest"]
        backup = request(server.port, f"/v1/backup?name={newest['name']}")

    file = tmp_path / "fetched.db"
    file.write_bytes(backup.body)
    command = [str(binaries / "etcdutl"), "snapshot", "status", str(file), "-w", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout.splitlines()[-1])["revision"] == seen[-1]


def test_deleted_and_compacted_keys_do_not_hide_a_change(
    real: RealEtcdCluster, client: KeyClient, tmp_path: Path
) -> None:
    """A compaction removes deleted keys with the entries that deleted them: the last entry is older."""
    root = tmp_path / "backups"
    client.put(b"a", b"1")
    client.put(b"b", b"2")
    with tool(root, client.endpoint) as (worker, _):
        eventually(lambda: worker.report().count == 1)
    real.ctl("del", "a", endpoint=client.endpoint)
    real.ctl("compact", "--physical", str(client.status().revision), endpoint=client.endpoint)
    for _ in range(2):
        with tool(root, client.endpoint, interval=0.1) as (worker, _):
            eventually(lambda worker=worker: not worker.report().is_starting)  # type: ignore[misc]
        assert revisions(root) == [3, 4]
