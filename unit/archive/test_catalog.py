"""What is listed, and as what."""

from pathlib import Path

import pytest

from etcd_operator.archive import catalog
from etcd_operator.archive.catalog import State
from etcd_operator.archive.errors import DamagedManifest, NotABackup, UnknownFormat
from etcd_operator.archive.manifest import SUFFIX
from etcd_operator.storage.errors import AccessDenied
from unit.archive.samples import FaultyStore, folder, snapshot, stored


def listed(path: Path, prefix: str = "") -> dict[str, State]:
    return {entry.name: entry.state for entry in catalog.entries(folder(path), prefix)}


def test_backups_below_a_prefix_and_no_others(tmp_path: Path) -> None:
    store = folder(tmp_path)
    for name in ("a/one.db", "a/b/two.db", "a-b/three.db", "four.db"):
        stored(store, name)
    assert listed(tmp_path, "a") == {"a/one.db": State.COMPLETE, "a/b/two.db": State.COMPLETE}
    assert len(listed(tmp_path)) == 4


def test_what_only_looks_like_a_backup_is_listed_as_what_it_is(tmp_path: Path) -> None:
    store = folder(tmp_path)
    for name in ("no-manifest", "no-object", "replaced", "damaged", "newer", "large"):
        stored(store, name)
    (tmp_path / f"no-manifest{SUFFIX}").unlink()
    (tmp_path / "no-object").unlink()
    (tmp_path / "replaced").write_bytes(snapshot(9))
    (tmp_path / f"damaged{SUFFIX}").write_text("{}")
    newer = (tmp_path / f"newer{SUFFIX}").read_text().replace('"formatVersion": 1', '"formatVersion": 2')
    (tmp_path / f"newer{SUFFIX}").write_text(newer)
    (tmp_path / f"large{SUFFIX}").write_bytes(b" " * 100_000)
    assert listed(tmp_path) == {
        "damaged": State.DAMAGED_MANIFEST,
        "large": State.DAMAGED_MANIFEST,
        "newer": State.UNKNOWN_FORMAT,
        "no-manifest": State.INCOMPLETE,
        "no-object": State.OBJECT_MISSING,
        "replaced": State.WRONG_SIZE,
    }
    assert all(entry.problem for entry in catalog.entries(store, ""))
    with pytest.raises(UnknownFormat):
        catalog.load(store, "newer")
    with pytest.raises(DamagedManifest, match="more than 65536 bytes"):
        catalog.load(store, "large")


@pytest.mark.parametrize("name", ["bad\udcff", "two\nlines"])
def test_a_name_that_no_backup_can_have_ends_nothing(tmp_path: Path, name: str) -> None:
    stored(folder(tmp_path), "one.db")
    (tmp_path / f"{name}{SUFFIX}").write_text("{}")
    assert listed(tmp_path) == {"one.db": State.COMPLETE, name: State.DAMAGED_MANIFEST}


def test_a_manifest_that_may_not_be_read_is_one_entry_of_many(tmp_path: Path) -> None:
    store = FaultyStore(folder(tmp_path))
    for name in ("archived.db", "one.db"):
        stored(store.inner, name)

    def refuse(method: str, name: str) -> None:
        if (method, name) == ("read", f"archived.db{SUFFIX}"):
            raise AccessDenied("No right to use it.")

    store.before = refuse
    archived, one = catalog.entries(store, "")
    assert (archived.state, archived.problem) == (State.UNREADABLE, "No right to use it.")
    assert one.state is State.COMPLETE


def test_a_manifest_that_is_deleted_while_listing_ends_nothing(tmp_path: Path) -> None:
    store = FaultyStore(folder(tmp_path))
    stored(store.inner, "one.db")
    store.before = lambda method, name: (tmp_path / name).unlink() if method == "read" else None
    (entry,) = catalog.entries(store, "")
    assert entry.state is State.INCOMPLETE


def test_no_backup_of_that_name_reports_what_is_there(tmp_path: Path) -> None:
    store = folder(tmp_path)
    with pytest.raises(NotABackup, match=r"no backup named one\.db: see `etcd-operator list`"):
        catalog.load(store, "one.db")
    (tmp_path / "one.db").write_bytes(snapshot())
    with pytest.raises(NotABackup, match=r"one\.db has no manifest"):
        catalog.load(store, "one.db")
