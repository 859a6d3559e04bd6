"""Names, the order of backups, and what retention would remove."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from etcd_operator.archive.manifest import manifest_name
from etcd_operator.archive.retention import FORMER_KEPT
from etcd_operator.formats import hex_id
from etcd_operator.programs.backup_tool.inventory import Inventory, find, load, parse_name
from etcd_operator.storage.directory import Directory
from etcd_operator.storage.errors import AccessDenied
from unit.archive.samples import FaultyStore, folder
from unit.programs.backup_tool.support import FOLDER, NOW, OWNER, put

OLD, NEW = 0xAAAA, 0xBBBB


@pytest.fixture
def store(tmp_path: Path) -> Directory:
    return folder(tmp_path / "backups")


def revisions(found: Inventory) -> list[int]:
    return [backup.name.revision for backup in found.backups]


@pytest.mark.parametrize(
    "text", ["3.6.16_000000000000000a_etcd.backup", "3.7.0-rc.1_ffffffffffffffff_etcd.backup"]
)
def test_a_name_is_read_as_it_is_written(text: str) -> None:
    assert str(parse_name(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "one.db", "3.6.16_a_etcd.backup", "3.6.16_000000000000000A_etcd.backup",
        "3.6.16_000000000000000a_etcd.backup.manifest.json", "x/3.6.16_000000000000000a_etcd.backup",
        "3.6_000000000000000a_etcd.backup",
    ],
)  # fmt: skip
def test_other_names_are_left_alone(text: str) -> None:
    assert parse_name(text) is None


def test_a_cluster_that_was_created_again_begins_with_small_revisions(store: Directory) -> None:
    put(store, 500, cluster=OLD, minutes=0)
    put(store, 400, cluster=OLD, minutes=-1)
    put(store, 2, cluster=NEW, minutes=30)
    put(store, 3, cluster=NEW, minutes=60)
    found = load(store, FOLDER, now=NOW)
    assert revisions(found) == [3, 2, 500, 400]
    assert [each.name.revision for each in found.surplus(1)] == [400], "500 is kept, and what replaced it"
    assert found.newest_of(hex_id(OLD)) is not None
    assert found.newest_of("0" * 16) is None


@pytest.mark.parametrize("hours", [3, 24 * 365 * 5])
def test_a_time_in_the_future_makes_no_backup_the_newest(store: Directory, hours: int) -> None:
    """Taken on a node whose clock was ahead; the store received it before the others."""
    path = put(store, 9, cluster=OLD, minutes=60 * hours)
    received = (NOW - timedelta(days=1)).timestamp()
    os.utime(Path(store._root) / path, (received, received))
    put(store, 2, cluster=NEW, minutes=-1)
    assert revisions(load(store, FOLDER, now=NOW)) == [2, 9]


def test_what_the_successor_of_a_cluster_has_stored_is_no_surplus(store: Directory) -> None:
    """That cluster was given up, cannot hear of it, and still reaches the store."""
    for number in range(4):
        put(store, 500 + number, cluster=OLD, minutes=60 * number)
        put(store, 1_000_000_500 + number, cluster=NEW, minutes=60 * number + 30)
    found = load(store, FOLDER, now=NOW, running=hex_id(OLD))
    assert [each.name.revision for each in found.surplus(2, running=hex_id(OLD))] == [501]
    found = load(store, FOLDER, now=NOW, running=hex_id(NEW))
    assert [each.name.revision for each in found.surplus(2, running=hex_id(NEW))] == [
        500,
        501,
        502,
        1_000_000_501,
    ]


def test_a_deleted_cluster_is_no_successor_whatever_its_revisions(store: Directory) -> None:
    put(store, 1_000_000_500, cluster=OLD, minutes=0)
    put(store, 2, cluster=NEW, minutes=30)
    found = load(store, FOLDER, now=NOW, running=hex_id(NEW))
    assert not found.surplus(1, running=hex_id(NEW))
    begun = (NOW - FORMER_KEPT - timedelta(hours=1)).timestamp()
    for path in Path(store._root).rglob("*"):
        os.utime(path, (begun, begun))
    put(store, 3, cluster=NEW, minutes=60 * 24 * 30)
    late = load(store, FOLDER, now=NOW + FORMER_KEPT, running=hex_id(NEW))
    assert revisions(late) == [3, 2, 1_000_000_500]
    surplus = late.surplus(1, running=hex_id(NEW))
    assert [each.name.revision for each in surplus] == [1_000_000_500, 2]


def test_who_stores_backups_beside_this_resource_is_named(store: Directory) -> None:
    def at(path: str, minutes: float) -> None:
        time = (NOW + timedelta(minutes=minutes)).timestamp()
        os.utime(Path(store._root) / path, (time, time))

    def found() -> Inventory:
        return load(store, FOLDER, now=NOW, owner=OWNER)

    at(put(store, 5, owner="other"), -60)
    assert found().foreign_owner is None
    at(put(store, 6), -30)
    assert found().foreign_owner is None  # of a former cluster
    at(put(store, 7, owner="other"), -10)
    assert found().foreign_owner == "other"
    assert revisions(found()) == [6]
    assert find(store, FOLDER, "3.6.16_0000000000000007_etcd.backup", owner=OWNER) is None
    assert revisions(load(store, FOLDER, now=NOW)) == [7, 6, 5]


def test_only_the_folder_of_this_cluster_is_seen(store: Directory) -> None:
    put(store, 5)
    put(store, 6, folder="v1/default/c-2")
    put(store, 7, folder="v1/default/c/below")
    put(store, 8, folder="v1/other/c")
    store.put(f"{FOLDER}/notes.txt", iter([b"mine"]))
    assert revisions(load(store, FOLDER, now=NOW)) == [5]


def test_what_is_not_whole_does_not_count(store: Directory) -> None:
    put(store, 5)
    whole = load(store, FOLDER, now=NOW)
    bare, half = put(store, 6), put(store, 7)
    store.delete(bare)
    store.delete(manifest_name(half))
    changed = put(store, 8)
    store.delete(changed)
    store.put(changed, iter([b"something else"]))
    found = load(store, FOLDER, now=NOW)
    assert revisions(found) == [5]
    assert (found.bare, found.incomplete) == ((bare,), (half,))
    assert found.total_size == whole.total_size > 0
    assert found.newest == whole.newest


def test_nothing_is_concluded_while_a_manifest_may_not_be_read(store: Directory) -> None:
    put(store, 5)
    refusing = FaultyStore(store)
    newest = manifest_name(put(store, 6))

    def refuse(method: str, name: str) -> None:
        if (method, name) == ("read", newest):
            raise AccessDenied("no right")

    refusing.before = refuse
    with pytest.raises(AccessDenied, match="no right"):
        load(refusing, FOLDER, now=NOW)
