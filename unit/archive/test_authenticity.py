"""What a reader with keys accepts: only what somebody has stored who has them."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from etcd_operator.archive.authenticity import is_authentic
from etcd_operator.archive.create import Options
from etcd_operator.archive.errors import Damaged, NotEncrypted
from etcd_operator.archive.fetch import fetch
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import SUFFIX, Manifest, decode, encode
from etcd_operator.archive.restorable import find
from etcd_operator.archive.verify import verify
from unit.archive.samples import NOW, folder, snapshot, stored

KEY = EncryptionKey(bytes(range(32)))
KEYS = KeyRing([KEY])
NOT_ENCRYPTED = "one is not encrypted, although keys are given.*read it without --encryption-keys"


@pytest.mark.parametrize("options", [Options(), Options(compression="zstd")], ids=["plain", "compressed"])
def test_with_keys_nothing_is_accepted_that_was_stored_without(tmp_path: Path, options: Options) -> None:
    store = folder(tmp_path / "store")
    manifest = stored(store, "one", options=options)
    with pytest.raises(NotEncrypted, match=NOT_ENCRYPTED):
        verify(store, "one", KEYS)
    with pytest.raises(NotEncrypted, match=NOT_ENCRYPTED):
        fetch(store, "one", tmp_path / "fetched", KEYS)
    for sha256 in ("", manifest.sha256):
        with pytest.raises(NotEncrypted, match=NOT_ENCRYPTED):
            find(store, "one", sha256=sha256).save(tmp_path / f"saved{sha256}", KEYS)
    with pytest.raises(NotEncrypted, match=NOT_ENCRYPTED):
        find(store, "one").check(KEYS)
    assert find(store, "one").check(KeyRing()).revision == 6


def test_with_keys_no_snapshot_without_a_manifest_is_accepted(tmp_path: Path) -> None:
    """Who may write to the store can take the manifest away, and put other data in place of the object."""
    store = folder(tmp_path)
    stored(store, "one", options=Options(key=KEY))
    (tmp_path / f"one{SUFFIX}").unlink()
    (tmp_path / "one").write_bytes(snapshot())
    with pytest.raises(NotEncrypted, match="one has no manifest, although keys are given"):
        find(store, "one").check(KEYS)
    assert find(store, "one").check(KeyRing()).revision == 6


CHANGES: dict[str, Any] = {
    "cluster_id": "c1",
    "member_id": "c1",
    "revision": 1 << 40,
    "time": NOW + timedelta(days=1),
    "sha256": "0" * 64,
    "stored_sha256": "0" * 64,
    "quorum": False,
    "corrupt_alarm": True,
    "name": "two",
    "series": "another",
    "owner": "another",
    "etcd_version": "3.6.17",
    "mac": "",
}


@pytest.mark.parametrize("field", CHANGES)
def test_no_field_of_an_authenticated_manifest_can_be_changed(tmp_path: Path, field: str) -> None:
    store = folder(tmp_path)
    manifest = stored(store, "one", options=Options(key=KEY))
    assert verify(store, "one", KEYS) == manifest
    changed = msgspec.structs.replace(manifest, **{field: CHANGES[field]})
    (tmp_path / f"one{SUFFIX}").write_bytes(encode(changed))
    with pytest.raises(Damaged, match="the manifest of one was changed, or written by somebody without"):
        verify(store, "one", KEYS)


@pytest.mark.parametrize("field", [name for name in CHANGES if "sha256" not in name])
def test_a_manifest_is_authenticated_without_encryption_too(tmp_path: Path, field: str) -> None:
    store = folder(tmp_path)
    manifest = stored(store, "one", options=Options(manifest_key=KEY))
    assert verify(store, "one", KeyRing()) == manifest
    assert is_authentic("one", manifest, KEY)
    assert not is_authentic("one", manifest, EncryptionKey.of_text("another"))
    assert not is_authentic("one", msgspec.structs.replace(manifest, **{field: CHANGES[field]}), KEY)


def copy(root: Path, name: str, to: str) -> None:
    """Object and manifest under another name."""
    (root / to).parent.mkdir(parents=True, exist_ok=True)
    for suffix in ("", SUFFIX):
        shutil.copy(root / f"{name}{suffix}", root / f"{to}{suffix}")


@pytest.mark.parametrize("name", ["b/a/two", "b/one", "c/a/one"])
def test_an_older_backup_does_not_pass_as_a_newer_one(tmp_path: Path, name: str) -> None:
    store = folder(tmp_path)
    stored(store, "b/a/one", options=Options(key=KEY))
    copy(tmp_path, "b/a/one", name)
    with pytest.raises(Damaged, match=f"{name} was stored as b/a/one: it was renamed, or put in the place"):
        verify(store, name, KEYS)


@pytest.mark.parametrize("name", ["one", "archive/b/a/one"])
def test_a_copy_with_its_path_is_the_same_backup(tmp_path: Path, name: str) -> None:
    store = folder(tmp_path)
    stored(store, "b/a/one", options=Options(key=KEY))
    copy(tmp_path, "b/a/one", name)
    verify(store, name, KEYS)


def test_the_code_does_not_depend_on_how_the_manifest_is_written(tmp_path: Path) -> None:
    store = folder(tmp_path)
    manifest = stored(store, "one", options=Options(key=KEY))
    file = tmp_path / f"one{SUFFIX}"
    file.write_bytes(msgspec.json.encode(dict(reversed(msgspec.json.decode(file.read_bytes()).items()))))
    found: Manifest = decode(file.read_bytes())
    assert found == manifest
    verify(store, "one", KEYS)
