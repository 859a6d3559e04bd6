"""One turn: what is stored, what is removed, and what never is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from etcd_operator.archive.errors import NoQuorum, NotReachable, SnapshotDamaged
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import manifest_name
from etcd_operator.archive.prune import remove
from etcd_operator.formats import hex_id
from etcd_operator.programs.backup_tool.inventory import Inventory, Name
from etcd_operator.programs.backup_tool.restorable_backups import Storing
from etcd_operator.programs.backup_tool.runner import LEFTOVER_SECONDS, RevisionBehind, Runner, Stopped
from etcd_operator.programs.backup_tool.spool import ScratchFailed
from etcd_operator.storage.directory import Directory
from etcd_operator.storage.errors import NameTaken, StoreFull, Unreachable
from etcd_operator.storage.protocol import Store
from unit.archive.samples import FaultyStore, folder, snapshot
from unit.fakes.clock import FakeClock
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.programs.backup_tool.support import FOLDER, KEY, NOW, OWNER, put

THIS = 0xC0FFEE


class Bed:
    """A runner on a folder."""

    def __init__(self, root: Path, endpoint: str) -> None:
        self.store = folder(root / "backups")
        self.faulty = FaultyStore(self.store)
        self.scratch = root / "scratch"
        self.scratch.mkdir()
        self.clock = FakeClock()
        self.is_stopping = False
        self.endpoint = endpoint
        self.key = KEY
        self.keys = KeyRing()

    def runner(self, keep: int = 3, *, is_exclusive: bool = False) -> Runner:
        def opened() -> Store:
            return self.faulty

        return Runner(
            open_store=opened,
            folder=FOLDER,
            owner=OWNER,
            is_exclusive=is_exclusive,
            manifest_key=lambda: self.key,
            keys=lambda: self.keys,
            endpoint=self.endpoint,
            credentials=lambda: None,
            keep=keep,
            scratch=self.scratch,
            clock=self.clock,
            is_stopping=lambda: self.is_stopping,
            storing=Storing(),
        )

    @property
    def files(self) -> list[str]:
        return sorted(stored.name.removeprefix(f"{FOLDER}/") for stored in self.store.list(""))


@pytest.fixture
def bed(tmp_path: Path, endpoint: str) -> Bed:
    return Bed(tmp_path, endpoint)


def revisions(found: Inventory) -> list[int]:
    return [backup.name.revision for backup in found.backups]


def grow(etcd: FakeEtcdCluster, runner: Runner, *to: int) -> None:
    """A turn at each of these revisions."""
    for revision in to:
        etcd.revision = revision
        assert runner.turn().is_new


def test_a_backup_is_named_by_the_revision_of_its_snapshot(bed: Bed, etcd: FakeEtcdCluster) -> None:
    """Others write on while it is sent."""
    etcd.damage = lambda _: snapshot(8)
    turn = bed.runner().turn()
    assert (turn.is_new, revisions(turn.inventory)) == (True, [9])
    (backup,) = turn.inventory.backups
    assert (backup.manifest.revision, backup.manifest.etcd_version) == (9, "3.6.16")
    assert bed.files == [
        "3.6.16_0000000000000009_etcd.backup",
        "3.6.16_0000000000000009_etcd.backup.manifest.json",
    ]
    assert not list(bed.scratch.iterdir())


def test_the_etcd_cluster_that_runs_is_known_if_it_answers(bed: Bed, etcd: FakeEtcdCluster) -> None:
    assert bed.runner().running() == hex_id(THIS)
    bed.endpoint = "127.0.0.1:1"
    assert bed.runner().running() == ""


def test_nothing_is_stored_while_the_revision_does_not_grow(bed: Bed, etcd: FakeEtcdCluster) -> None:
    runner = bed.runner()
    assert runner.turn().is_new
    before = bed.files
    again = runner.turn()
    assert (again.is_new, revisions(again.inventory)) == (False, [6])
    assert bed.files == before
    grow(etcd, runner, 7)


def test_a_backup_that_is_ahead_of_its_cluster_is_reported(bed: Bed, etcd: FakeEtcdCluster) -> None:
    """Somebody has planted it, or has restored older data by hand: nothing would ever be stored again."""
    runner = bed.runner()
    grow(etcd, runner, 9)
    put(bed.store, 1 << 40, cluster=THIS)
    etcd.revision = 10
    before = bed.files
    with pytest.raises(RevisionBehind, match=f"has revision {1 << 40}, and etcd has only 10: somebody"):
        runner.turn()
    assert bed.files == before
    remove(bed.store, f"{FOLDER}/{Name('3.6.16', 1 << 40)}")
    assert runner.turn().is_new


def test_the_newest_are_kept(bed: Bed, etcd: FakeEtcdCluster) -> None:
    runner = bed.runner(keep=3)
    grow(etcd, runner, 9, 10, 17, 99, 100)
    assert revisions(runner.load()) == [100, 99, 17]
    assert len(bed.files) == 6


def test_nothing_is_removed_under_an_alarm_corrupt(bed: Bed, etcd: FakeEtcdCluster) -> None:
    runner = bed.runner(keep=2)
    grow(etcd, runner, 9, 10)
    etcd.alarms = {(0, "CORRUPT")}
    grow(etcd, runner, 11, 12)
    doubtful = runner.load()
    assert revisions(doubtful) == [12, 11, 10, 9]
    assert doubtful.newest is not None
    assert doubtful.newest.report().corrupt_alarm
    assert not doubtful.surplus(1), "not even if fewer are to be kept"
    etcd.alarms = set()
    grow(etcd, runner, 13)
    assert revisions(runner.load()) == [13, 12, 11, 10], "those two displace nothing"
    grow(etcd, runner, 14)
    assert revisions(runner.load()) == [14, 13, 11, 10], "and the last one before them is kept for a while"


def test_fewer_are_kept_from_the_next_backup_on(bed: Bed, etcd: FakeEtcdCluster) -> None:
    grow(etcd, bed.runner(keep=5), 7, 8, 9)
    fewer = bed.runner(keep=1)
    assert revisions(fewer.turn().inventory) == [9, 8, 7]
    etcd.revision = 10
    assert revisions(fewer.turn().inventory) == [10]


def test_a_recovery_makes_higher_revisions_and_a_new_cluster_lower_ones(
    bed: Bed, etcd: FakeEtcdCluster
) -> None:
    put(bed.store, 100, cluster=0xAAAA, minutes=-(10**6))
    put(bed.store, 90, cluster=0xAAAA, minutes=-(10**6))
    turn = bed.runner(keep=2).turn()
    assert turn.is_new
    assert revisions(turn.inventory) == [6, 100]
    newest = turn.inventory.newest
    assert newest is not None
    assert newest.manifest.cluster_id == hex_id(THIS)


def test_what_others_have_stored_there_is_left_alone(bed: Bed, etcd: FakeEtcdCluster) -> None:
    put(bed.store, 5, folder="v1/default/c-2")
    bed.store.put(f"{FOLDER}/notes.txt", iter([b"mine"]))
    without = put(bed.store, 3, cluster=0xAAAA)
    bed.store.delete(manifest_name(without))
    changed = put(bed.store, 4, cluster=0xAAAA)
    bed.store.delete(changed)
    bed.store.put(changed, iter([b"something else"]))
    grow(etcd, bed.runner(keep=1), 7, 8)
    assert "notes.txt" in bed.files
    assert without.rpartition("/")[2] in bed.files
    assert changed.rpartition("/")[2] in bed.files
    assert "v1/default/c-2/3.6.16_0000000000000005_etcd.backup" in bed.files


def test_a_cluster_that_was_given_up_removes_nothing_of_its_successor(
    bed: Bed, etcd: FakeEtcdCluster
) -> None:
    """Its quorum and its tool run on, cut off from the API server, and reach the bucket."""
    runner = bed.runner(keep=2)
    grow(etcd, runner, 7)
    minutes = (bed.clock.now() - NOW).total_seconds() / 60
    new = [put(bed.store, 10**9 + 7 + n, cluster=0xBBBB, minutes=minutes + 10 + n) for n in range(3)]
    for revision in range(8, 20):
        bed.clock.advance(3600.0)
        grow(etcd, runner, revision)
    found = runner.load()
    assert {each.path for each in found.backups if each.path in new} == set(new)
    assert sorted(revisions(found))[:3] == [7, 18, 19]


def test_a_removal_that_was_interrupted_goes_on(bed: Bed, etcd: FakeEtcdCluster) -> None:
    runner = bed.runner(keep=1)
    grow(etcd, runner, 7)
    bed.faulty.before = _fails("delete", manifest_name(""), Unreachable("no store"))
    grow(etcd, runner, 8)
    assert "3.6.16_0000000000000007_etcd.backup" not in bed.files
    assert "3.6.16_0000000000000007_etcd.backup.manifest.json" in bed.files
    bed.faulty.before = lambda _method, _name: None
    grow(etcd, runner, 9)
    assert [name for name in bed.files if "0000000009" not in name] == []


def _fails(method: str, end: str, error: Exception) -> Callable[[str, str], None]:
    def before(called: str, name: str) -> None:
        if called == method and name.endswith(end):
            raise error

    return before


@pytest.mark.parametrize("end", ["_etcd.backup", ".manifest.json"])
def test_a_store_that_is_full_leaves_the_older_ones(bed: Bed, etcd: FakeEtcdCluster, end: str) -> None:
    runner = bed.runner(keep=1)
    grow(etcd, runner, 7)
    etcd.revision = 8
    bed.faulty.before = _fails("put", end, StoreFull("no space"))
    with pytest.raises(Exception, match="no space"):
        runner.turn()
    assert revisions(runner.load()) == [7]
    bed.faulty.before = lambda _method, _name: None


def test_what_a_killed_tool_left_is_removed_once_it_is_old(bed: Bed, etcd: FakeEtcdCluster) -> None:
    left = put(bed.store, 6)
    bed.store.delete(manifest_name(left))
    runner = bed.runner()
    with pytest.raises(NameTaken):
        runner.turn()
    bed.clock.advance(LEFTOVER_SECONDS - 1)
    with pytest.raises(NameTaken):
        runner.turn()
    assert left.rpartition("/")[2] in bed.files
    bed.clock.advance(1)
    assert runner.turn().is_new
    assert revisions(runner.load()) == [6]


def test_a_name_of_an_earlier_cluster_is_not_overwritten(bed: Bed, etcd: FakeEtcdCluster) -> None:
    earlier = put(bed.store, 6, cluster=0xAAAA)
    with pytest.raises(NameTaken, match="another etcd cluster"):
        bed.runner().turn()
    grow(etcd, bed.runner(), 7)
    assert earlier.rpartition("/")[2] in bed.files


def test_without_a_quorum_nothing_is_stored_and_nothing_removed(bed: Bed, etcd: FakeEtcdCluster) -> None:
    grow(etcd, bed.runner(), 7, 8)
    before = bed.files
    with etcd.changed:
        etcd.add(etcd.member("m0"), ("http://127.0.0.2:2380",), is_learner=False)
    with pytest.raises((NoQuorum, NotReachable)):
        bed.runner(keep=1).turn()
    assert bed.files == before


def test_a_damaged_snapshot_leaves_nothing(bed: Bed, etcd: FakeEtcdCluster) -> None:
    etcd.damage = lambda _: snapshot(5)[:-1] + b"x"
    with pytest.raises(SnapshotDamaged):
        bed.runner().turn()
    etcd.damage = lambda _: snapshot(5)[:-32]
    with pytest.raises(SnapshotDamaged, match="hash"):
        bed.runner().turn()
    assert bed.files == []


def test_a_scratch_folder_that_is_missing_is_named(bed: Bed) -> None:
    bed.scratch.rmdir()
    with pytest.raises(ScratchFailed, match="scratch"):
        bed.runner().turn()


def test_a_tool_that_is_stopped_stops_in_the_middle(bed: Bed, etcd: FakeEtcdCluster) -> None:
    etcd.damage = lambda _: snapshot(100)

    def stop(index: int) -> None:
        bed.is_stopping = index > 2

    etcd.on_chunk = stop
    with pytest.raises(Stopped):
        bed.runner().turn()
    assert bed.files == []
    assert not list(bed.scratch.iterdir())


def test_cleaning_removes_the_backups_of_this_cluster_and_nothing_else(
    bed: Bed, etcd: FakeEtcdCluster
) -> None:
    put(bed.store, 5, folder="v1/default/c-2")
    bed.store.put(f"{FOLDER}/notes.txt", iter([b"mine"]))
    runner = bed.runner()
    grow(etcd, runner, 7, 8)
    left, bare = put(bed.store, 3), put(bed.store, 4)
    bed.store.delete(manifest_name(left))
    bed.store.delete(bare)
    assert runner.clean() == Inventory()
    assert bed.files == [
        "notes.txt",
        "v1/default/c-2/3.6.16_0000000000000005_etcd.backup",
        "v1/default/c-2/3.6.16_0000000000000005_etcd.backup.manifest.json",
    ]


def test_cleaning_removes_what_was_taken_under_an_alarm_corrupt(bed: Bed, etcd: FakeEtcdCluster) -> None:
    etcd.alarms = {(0, "CORRUPT")}
    grow(etcd, bed.runner(), 9)
    assert not bed.runner().clean().backups
    assert bed.files == []


def test_a_folder_that_is_gone_is_a_failure_not_an_empty_one(bed: Bed, tmp_path: Path) -> None:
    gone = Directory(tmp_path / "gone")
    bed.faulty.inner = gone
    with pytest.raises(Exception, match="does not exist"):
        bed.runner().load()
