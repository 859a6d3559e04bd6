"""Snapshots of real members of every version, as `etcdutl snapshot status` sees them."""

import json
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.archive.database import DatabaseSummary
from etcd_operator.etcd.channel import Channels
from unit.archive.databases import scanned
from unit.etcd.conftest import programs
from unit.etcd.real import RealEtcdCluster
from unit.waiting import eventually

pytestmark = pytest.mark.etcd

COUNTS_ALL_BUCKETS = "3.5.35"
"""Later versions of etcdutl count the keys that exist instead of the entries of the database."""


class Member:
    """One real member, and the programs that judge its snapshots."""

    def __init__(self, version: str, folder: Path) -> None:
        self._folder = folder
        self._version = version
        self._channels = Channels()
        self._cluster = RealEtcdCluster(programs(version), folder)
        self._cluster.bootstrap("m0")
        self.client = KeyClient(self._channels, self._cluster.endpoint("m0"))
        eventually(lambda: self.client.has_quorum(deadline=1.0))

    def ctl(self, *words: str) -> None:
        self._cluster.ctl(*words, endpoint=self._cluster.endpoint("m0"))

    def check(self) -> DatabaseSummary:
        """Compare the scan of a snapshot with two versions of etcdutl."""
        file = self._folder / "snapshot.db"
        file.write_bytes(b"".join(self.client.snapshot(stall=10.0)))
        summary = scanned(file.read_bytes())
        assert summary.has_hash
        assert summary.revision == self._status(self._version, file)["revision"]
        counts = entries_by_bucket(file.read_bytes())
        assert sum(counts.values()) == self._status(COUNTS_ALL_BUCKETS, file)["totalKey"]
        assert summary.keys == counts[b"key"]
        assert summary.cluster_version == ".".join(self._version.split(".")[:2]) + ".0"
        return summary

    def offline(self) -> DatabaseSummary:
        """The scan of the file of the data folder, after the process has ended without a last commit."""
        self._cluster.kill("m0")
        return scanned((self._folder / "m0/member/snap/db").read_bytes())

    def close(self) -> None:
        self._cluster.close()
        self._channels.close()

    def _status(self, version: str, file: Path) -> dict[str, int]:
        command = [str(programs(version) / "etcdutl"), "snapshot", "status", str(file), "-w", "json"]
        done = subprocess.run(command, check=True, capture_output=True, timeout=30)
        found: dict[str, int] = json.loads(done.stdout)
        return found


def entries_by_bucket(file: bytes, size: int = 4096) -> dict[bytes, int]:
    """The count of entries of each bucket, by the plainest reading of the pages."""
    metas = [struct.unpack_from("<QQQQQ", file, at + 32) for at in (0, size)]
    root = max(metas, key=lambda meta: meta[4])[0]
    return {
        name: sum(1 for _ in _elements(file[begin * size :] if begin else value[16:], file, size))
        for name, value in _elements(file[root * size :], file, size)
        for begin in struct.unpack_from("<Q", value)
    }


def _elements(page: bytes, file: bytes, size: int) -> Iterator[tuple[bytes, bytes]]:
    _, flags, count, _ = struct.unpack_from("<QHHI", page)
    for at in range(16, 16 + 16 * count, 16):
        if flags == 1:
            (child,) = struct.unpack_from("<Q", page, at + 8)
            view = memoryview(file)[child * size :]
            yield from _elements(view, file, size)  # type: ignore[arg-type]
        else:
            _, position, key, value = struct.unpack_from("<IIII", page, at)
            key_end = at + position + key
            yield bytes(page[at + position : key_end]), bytes(page[key_end : key_end + value])


@pytest.fixture(params=["3.5.35", "3.6.16", "3.7.3"])
def member(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Member]:
    member = Member(request.param, tmp_path)
    yield member
    member.close()


def test_every_state_of_a_database_is_read_as_etcdutl_reads_it(member: Member) -> None:
    put = member.client.put
    empty = member.check()
    assert (empty.revision, empty.keys, empty.compacted) == (0, 0, 0)

    for number in range(1200):
        revision = put(b"key%d" % (number % 500), b"v" * (number % 300))
    assert revision == 1201
    for size in (5_000, 100_000, 1_400_000):
        put(b"large", b"v" * size)
    written = member.check()
    assert (written.revision, written.keys) == (1204, 1203)

    member.ctl("del", "key1", "--prefix")
    deleted = member.check()
    assert (deleted.revision, deleted.keys) == (1205, 1203 + 111)  # key1, key10-key19, key100-key199

    member.ctl("compact", "1205", "--physical")
    compacted = member.check()
    assert (compacted.revision, compacted.compacted) == (1205, 1205)
    assert (
        compacted.keys == 500 + 1
    )  # the last revision of each: also deletions, as they are of that revision

    member.ctl("defrag")
    defragmented = member.check()
    assert defragmented.size < compacted.size
    assert (defragmented.revision, defragmented.keys) == (compacted.revision, compacted.keys)

    put(b"key1", b"again")
    member.ctl("compact", "1206", "--physical")
    again = member.check()
    assert (again.revision, again.keys, again.compacted) == (1206, 500 + 1 - 111 + 1, 1206)

    copied = member.offline()
    assert not copied.has_hash
    assert (copied.revision, copied.keys) == (again.revision, again.keys)
