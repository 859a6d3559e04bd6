"""Damage of every kind is found when a backup is read back."""

import hashlib
import shutil
from pathlib import Path

import msgspec
import pytest

from etcd_operator.archive.catalog import load
from etcd_operator.archive.create import Options
from etcd_operator.archive.errors import Damaged, WrongKey
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import SUFFIX, encode
from etcd_operator.archive.verify import verify
from unit.archive.samples import FaultyStore, flip, folder, keys_of, snapshot, stored

KEYS = KeyRing([EncryptionKey(bytes(range(32)))])
FORMS = {"plain": Options(), "compressed": Options(compression="zstd"), "encrypted": Options(key=KEYS.newest)}
forms = pytest.mark.parametrize("options", FORMS.values(), ids=FORMS.keys())


@forms
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 1.0])
def test_one_changed_bit_is_found(tmp_path: Path, share: float, options: Options) -> None:
    stored(folder(tmp_path), "one", options=options)
    file = tmp_path / "one"
    flip(file, int(share * (file.stat().st_size - 1)))
    with pytest.raises((Damaged, WrongKey)):
        verify(folder(tmp_path), "one", keys_of(options))


@forms
@pytest.mark.parametrize("rest", [0, 1, 100, -1])
def test_a_truncated_object_is_found(tmp_path: Path, rest: int, options: Options) -> None:
    stored(folder(tmp_path), "one", options=options)
    content = (tmp_path / "one").read_bytes()
    (tmp_path / "one").write_bytes(content[:rest])
    with pytest.raises(Damaged, match="it was truncated or replaced"):
        verify(folder(tmp_path), "one", keys_of(options))


@forms
def test_two_swapped_objects_of_one_size_are_found(tmp_path: Path, options: Options) -> None:
    for name, fill in (("one", b"1"), ("two", b"2")):
        stored(folder(tmp_path), name, snapshot(fill=fill), options)
    one, two = (tmp_path / "one").read_bytes(), (tmp_path / "two").read_bytes()
    (tmp_path / "one").write_bytes(two)
    if len(one) == len(two):
        with pytest.raises(Damaged, match="changed or replaced"):
            verify(folder(tmp_path), "one", keys_of(options))
    else:
        with pytest.raises(Damaged, match="truncated or replaced"):
            verify(folder(tmp_path), "one", keys_of(options))


def test_a_foreign_object_with_a_manifest_that_fits_its_bytes_is_found(tmp_path: Path) -> None:
    manifest = stored(folder(tmp_path), "one")
    foreign = b"foreign".ljust(manifest.size, b"!")
    sha256 = hashlib.sha256(foreign).hexdigest()
    changed = msgspec.structs.replace(manifest, sha256=sha256, stored_sha256=sha256)
    (tmp_path / "one").write_bytes(foreign)
    (tmp_path / f"one{SUFFIX}").write_bytes(encode(changed))
    with pytest.raises(Damaged, match="not a database of etcd"):
        verify(folder(tmp_path), "one", KeyRing())


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"revision": 7}, "does not fit its manifest: revision 6, not 7"),
        ({"keys": 4}, "does not fit its manifest: number of keys 5, not 4"),
    ],
)
def test_an_edited_manifest_is_found(tmp_path: Path, changes: dict[str, int], text: str) -> None:
    manifest = stored(folder(tmp_path), "one")
    changed = msgspec.structs.replace(manifest, **changes)
    (tmp_path / f"one{SUFFIX}").write_bytes(encode(changed))
    with pytest.raises(Damaged, match=text):
        verify(folder(tmp_path), "one", KeyRing())


def test_an_object_that_is_deleted_before_or_while_it_is_read_is_found(tmp_path: Path) -> None:
    store = FaultyStore(folder(tmp_path))
    stored(store.inner, "one")
    shutil.copytree(tmp_path, tmp_path / "copy")
    store.before = lambda method, name: (
        (tmp_path / "one").unlink() if (method, name) == ("read", "one") else None
    )
    with pytest.raises(Damaged, match="deleted while it was read"):
        verify(store, "one", KeyRing())
    with pytest.raises(Damaged, match="the object one is missing, only its manifest exists"):
        verify(folder(tmp_path), "one", KeyRing())


def test_another_key_is_no_damage(tmp_path: Path) -> None:
    stored(folder(tmp_path), "one", options=FORMS["encrypted"])
    for keys in (KeyRing(), KeyRing([EncryptionKey(bytes(32))])):
        with pytest.raises(WrongKey, match=load(folder(tmp_path), "one").key_id):
            verify(folder(tmp_path), "one", keys)
