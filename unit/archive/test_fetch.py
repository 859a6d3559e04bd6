"""A fetched file is whole or not there, and an interrupted fetch continues."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from etcd_operator.archive import fetch as module
from etcd_operator.archive.create import Options
from etcd_operator.archive.errors import Damaged, FetchError, WrongKey
from etcd_operator.archive.fetch import fetch
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.storage.errors import Unreachable
from etcd_operator.storage.partial import write_all
from unit.archive.samples import FaultyStore, flip, folder, keys_of, snapshot, stored

KEYS = KeyRing([EncryptionKey(bytes(range(32)))])
DATA = snapshot(3, value=1 << 20)
FORMS = {"plain": Options(), "framed": Options(key=KEYS.newest)}
forms = pytest.mark.parametrize("options", FORMS.values(), ids=FORMS.keys())


class Interrupted(FaultyStore):
    """Reads of the object end after `limit` bytes; remembers the offsets that were asked for."""

    limit = 1 << 40

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        if name != "one":
            yield from self.inner.read(name, offset)
            return
        self.offsets = [*getattr(self, "offsets", []), offset]
        left = self.limit
        for chunk in self.inner.read(name, offset):
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                raise Unreachable("connection reset")


@pytest.fixture
def store(tmp_path: Path) -> Interrupted:
    return Interrupted(folder(tmp_path / "store"))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "snapshot.db"


@forms
def test_the_file_is_the_snapshot_for_its_owner_alone(
    store: Interrupted, target: Path, options: Options
) -> None:
    manifest = stored(store.inner, "one", DATA, options)
    seen: list[int] = []
    assert fetch(store, "one", target, keys_of(options), on_progress=seen.append) == manifest
    assert target.read_bytes() == DATA
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(target.parent.iterdir()) == [target]
    assert seen[-1] == manifest.stored_size


@forms
def test_an_interrupted_fetch_continues_where_it_ended(
    store: Interrupted, target: Path, options: Options
) -> None:
    stored(store.inner, "one", DATA, options)
    store.limit = 1_500_000
    with pytest.raises(Unreachable):
        fetch(store, "one", target, keys_of(options))
    assert not target.exists()
    store.limit = 1 << 40
    fetch(store, "one", target, keys_of(options))
    assert target.read_bytes() == DATA
    assert store.offsets == [0, 1_500_000]


@pytest.mark.parametrize("change", [b"\0" * 600_000, b"\0" * (len(DATA) + 10)], ids=["shorter", "longer"])
def test_a_part_that_is_damaged_on_disk_is_fetched_again(
    store: Interrupted, target: Path, change: bytes
) -> None:
    manifest = stored(store.inner, "one", DATA)
    partial = target.with_name(f".snapshot.db.{manifest.stored_sha256[:16]}.partial")
    partial.write_bytes(change)
    fetch(store, "one", target, KeyRing())
    assert target.read_bytes() == DATA


@forms
def test_a_damaged_object_leaves_no_file(store: Interrupted, target: Path, options: Options) -> None:
    stored(store.inner, "one", DATA, options)
    path = target.parent.parent / "store" / "one"
    flip(path, -40)
    with pytest.raises(Damaged):
        fetch(store, "one", target, keys_of(options))
    assert not target.exists()


def test_a_wrong_key_is_noticed_before_anything_is_fetched(store: Interrupted, target: Path) -> None:
    stored(store.inner, "one", DATA, FORMS["framed"])
    with pytest.raises(WrongKey):
        fetch(store, "one", target, KeyRing())
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("make", [lambda path: path.write_text("mine"), lambda path: path.symlink_to("x")])
def test_a_file_is_never_replaced(store: Interrupted, target: Path, make: object) -> None:
    stored(store.inner, "one")
    make(target)  # type: ignore[operator]
    with pytest.raises(FetchError, match="exists already: choose another name, or delete it"):
        fetch(store, "one", target, KeyRing())


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_replaced(
    store: Interrupted, target: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    if not has_links:
        monkeypatch.setattr(module.os, "link", refuse)  # type: ignore[attr-defined]
    stored(store.inner, "one")

    def appear(_done: int) -> None:
        target.write_text("mine")

    with pytest.raises(FetchError, match="was created meanwhile"):
        fetch(store, "one", target, KeyRing(), on_progress=appear)
    assert target.read_text() == "mine"


def test_two_fetches_to_one_file_do_not_mix(store: Interrupted, target: Path) -> None:
    manifest = stored(store.inner, "one")
    partial = target.with_name(f".snapshot.db.{manifest.stored_sha256[:16]}.partial")
    with partial.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(FetchError, match="another process fetches"):
            fetch(store, "one", target, KeyRing())


def test_too_little_space_is_noticed_before(
    store: Interrupted, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store.inner, "one", DATA)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))  # type: ignore[attr-defined]
    with pytest.raises(FetchError, match="has 1 MiB free, and 4 MiB are needed: free some space"):
        fetch(store, "one", target, KeyRing())


def test_a_folder_that_is_missing_keeps_nothing(store: Interrupted, tmp_path: Path) -> None:
    stored(store.inner, "one", DATA)
    target = tmp_path / "missing" / "snapshot.db"
    with pytest.raises(FetchError) as caught:
        fetch(store, "one", target, KeyRing())
    assert str(caught.value) == f"cannot write {target}: No such file or directory"


def test_a_full_disk_is_one_sentence_and_the_next_fetch_continues(
    store: Interrupted, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store.inner, "one", DATA)
    real = write_all

    def full(write: Any, data: bytes) -> None:
        if write.__self__.tell() > 1 << 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(write, data)

    monkeypatch.setattr(module, "write_all", full)
    with pytest.raises(FetchError, match=r"No space left on device\. What has arrived is kept"):
        fetch(store, "one", target, KeyRing())
    monkeypatch.setattr(module, "write_all", real)
    fetch(store, "one", target, KeyRing())
    assert target.read_bytes() == DATA
    assert store.offsets[1] > 0


def test_without_hard_links_the_file_is_renamed(
    store: Interrupted, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    stored(store.inner, "one", DATA)
    monkeypatch.setattr(module.os, "link", refuse)  # type: ignore[attr-defined]
    fetch(store, "one", target, KeyRing())
    assert target.read_bytes() == DATA
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "of another user"])
def test_a_file_that_waits_for_the_data_gets_nothing(
    store: Interrupted, target: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    manifest = stored(store.inner, "one", DATA)
    partial = target.with_name(f".snapshot.db.{manifest.stored_sha256[:16]}.partial")
    trap = target.with_name("trap")
    trap.touch(0o666)
    if kind == "symbolic link":
        partial.symlink_to(trap)
    elif kind == "hard link":
        partial.hardlink_to(trap)
    else:
        trap.rename(partial)
        trap = partial
        monkeypatch.setattr(module.os, "geteuid", lambda: partial.stat().st_uid + 1)  # type: ignore[attr-defined]
    with pytest.raises(FetchError):
        fetch(store, "one", target, KeyRing())
    assert trap.read_bytes() == b""


def test_a_part_that_others_may_read_becomes_private(store: Interrupted, target: Path) -> None:
    manifest = stored(store.inner, "one", DATA)
    target.with_name(f".snapshot.db.{manifest.stored_sha256[:16]}.partial").touch(0o666)
    fetch(store, "one", target, KeyRing())
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
