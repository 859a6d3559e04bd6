"""Backups that somebody has put into the folder who can write to the store, and does not have the token."""

from pathlib import Path

import pytest

from etcd_operator.archive.keys import EncryptionKey
from etcd_operator.archive.manifest import manifest_name
from etcd_operator.archive.prune import remove
from etcd_operator.clock import Clock
from etcd_operator.formats import hex_id
from etcd_operator.programs.backup_tool.runner import UnknownBackup
from etcd_operator.programs.backup_tool.worker import Worker
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.programs.backup_tool.support import put
from unit.programs.backup_tool.test_runner import THIS, Bed, grow, revisions

OTHERS = EncryptionKey.of_text("another token")


@pytest.fixture
def bed(tmp_path: Path, endpoint: str) -> Bed:
    return Bed(tmp_path, endpoint)


def plant(bed: Bed, revision: int, key: EncryptionKey | None = None) -> str:
    """With the ID of the cluster, and the UID of the resource."""
    return put(bed.store, revision, cluster=THIS, key=key)


@pytest.mark.parametrize("key", [None, OTHERS])
def test_a_planted_backup_is_not_the_newest_and_stops_no_backup(
    bed: Bed, etcd: FakeEtcdCluster, key: EncryptionKey | None
) -> None:
    runner = bed.runner()
    grow(etcd, runner, 7)
    plant(bed, 1 << 40, key)
    grow(etcd, runner, 8)
    found = bed.runner().load(hex_id(THIS))
    assert revisions(found) == [8, 7, 1 << 40]
    assert found.newest is not None
    assert found.newest.report().is_authentic
    assert found.unknown == found.backups[-1]


def test_a_manifest_that_was_copied_from_an_own_one_is_not_its_own(bed: Bed, etcd: FakeEtcdCluster) -> None:
    """An older backup under the name of a newer one."""
    grow(etcd, bed.runner(), 7)
    (own,) = bed.runner().load().backups
    path = own.path.replace("0000000007", "0000000009")
    for name, copy in ((own.path, path), (manifest_name(own.path), manifest_name(path))):
        bed.store.put(copy, bed.store.read(name))
    found = bed.runner().load()
    assert (revisions(found), found.unknown) == ([7, 9], found.backups[1])


def test_planted_backups_displace_nothing(bed: Bed, etcd: FakeEtcdCluster) -> None:
    runner = bed.runner(keep=2)
    grow(etcd, runner, 10, 100)
    planted = [plant(bed, revision) for revision in (20, 30, 40)]
    grow(etcd, runner, 101)
    assert revisions(runner.load()) == [101, 100, 40, 30, 20]
    for path in planted:
        remove(bed.store, path)
    assert runner.load().unknown is None


def test_a_planted_backup_in_the_place_of_the_next_one_is_no_success(bed: Bed, etcd: FakeEtcdCluster) -> None:
    runner = bed.runner()
    plant(bed, 6)
    chunks: list[int] = []
    etcd.on_chunk = chunks.append
    with pytest.raises(UnknownBackup, match=r"taken by 3\.6\.16_0000000000000006_etcd\.backup, which this"):
        runner.turn()
    assert chunks == []  # it is tried again every half minute
    etcd.on_chunk = None
    grow(etcd, runner, 7)


def test_a_backup_of_before_the_token_was_replaced_is_unknown_until_the_next_one(
    bed: Bed, etcd: FakeEtcdCluster
) -> None:
    grow(etcd, bed.runner(), 7)
    bed.key = OTHERS
    found = bed.runner().load()
    assert found.unknown == found.newest
    grow(etcd, bed.runner(), 8)
    assert bed.runner().load().unknown is None


def test_on_a_volume_all_is_trusted(bed: Bed, etcd: FakeEtcdCluster) -> None:
    plant(bed, 9)
    assert bed.runner(is_exclusive=True).load().unknown is None


def test_a_tool_that_starts_beside_a_planted_backup_stores_one_at_once(
    bed: Bed, etcd: FakeEtcdCluster
) -> None:
    plant(bed, 5)
    worker = Worker(bed.runner(), interval=3600.0, clock=Clock())
    worker._load()
    assert worker.report().since_success is None
    assert worker.report().unknown is not None
