"""A folder that another resource uses, too, and listings that are late: what a turn leaves alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.archive.manifest import manifest_name
from etcd_operator.programs.backup_tool.runner import LEFTOVER_SECONDS
from etcd_operator.storage.errors import NameTaken
from etcd_operator.storage.protocol import Stored
from unit.archive.samples import FaultyStore
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.programs.backup_tool.support import FOLDER, put
from unit.programs.backup_tool.test_runner import Bed, grow, revisions

OTHER = "uid-in-another-kubernetes"


@pytest.fixture
def bed(tmp_path: Path, endpoint: str) -> Bed:
    return Bed(tmp_path, endpoint)


def test_backups_of_another_resource_in_the_same_folder_are_left_alone(
    bed: Bed, etcd: FakeEtcdCluster
) -> None:
    """A cluster of the same namespace and name in another Kubernetes uses the same prefix in the bucket."""
    theirs = [put(bed.store, 500 + number, cluster=0xAAAA, owner=OTHER) for number in range(3)]
    runner = bed.runner(keep=1)
    grow(etcd, runner, 7, 8)
    found = runner.load()
    assert revisions(found) == [8]
    assert sorted(each.path for each in found.others) == theirs
    assert revisions(runner.clean()) == []
    assert [name for name in bed.files if name.endswith(".backup")] == [
        path.removeprefix(f"{FOLDER}/") for path in theirs
    ]


def test_what_cannot_be_assigned_stays_beside_backups_of_others(bed: Bed, etcd: FakeEtcdCluster) -> None:
    put(bed.store, 500, cluster=0xAAAA, owner=OTHER)
    half = put(bed.store, 501, cluster=0xAAAA, owner=OTHER)
    bed.store.delete(manifest_name(half))
    gone = put(bed.store, 502, cluster=0xAAAA, owner=OTHER)
    bed.store.delete(gone)
    before = bed.files
    runner = bed.runner(keep=1)
    grow(etcd, runner, 7)
    runner.clean()
    assert bed.files == before


class _LateListing(FaultyStore):
    """A store whose listings do not have these names yet."""

    late: tuple[str, ...] = ()

    def list(self, prefix: str) -> Iterator[Stored]:
        return (each for each in super().list(prefix) if each.name not in self.late)


def test_a_late_listing_removes_neither_manifests_nor_objects(bed: Bed, etcd: FakeEtcdCluster) -> None:
    first, second = put(bed.store, 2), put(bed.store, 3)
    bed.faulty = store = _LateListing(bed.store)
    store.late = (first, manifest_name(second))
    runner = bed.runner()
    grow(etcd, runner, 7)
    bed.clock.advance(LEFTOVER_SECONDS + 1)
    grow(etcd, runner, 8)
    store.late = ()
    assert revisions(runner.load()) == [8, 7, 3, 2]


def test_on_a_volume_backups_of_a_former_resource_count(bed: Bed, etcd: FakeEtcdCluster) -> None:
    put(bed.store, 500, cluster=0xAAAA, minutes=-(10**6), owner=OTHER)
    put(bed.store, 501, cluster=0xAAAA, minutes=-(10**6), owner=OTHER)
    assert revisions(bed.runner(keep=2, is_exclusive=True).turn().inventory) == [6, 501]


def test_a_name_that_another_resource_uses_is_free_after_the_next_write(
    bed: Bed, etcd: FakeEtcdCluster
) -> None:
    put(bed.store, 6, cluster=0xAAAA, owner=OTHER)
    with pytest.raises(NameTaken, match="of another etcd cluster of this name: the next write"):
        bed.runner().turn()
    grow(etcd, bed.runner(), 7)
