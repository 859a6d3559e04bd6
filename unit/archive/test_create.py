"""What is visible after a backup, whole or failed at any point."""

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from etcd_operator.archive import frames
from etcd_operator.archive.catalog import State
from etcd_operator.archive.create import Options, create
from etcd_operator.archive.errors import BackupError, ManifestMissing, SnapshotDamaged, SnapshotOld
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import SUFFIX
from etcd_operator.archive.verify import verify
from etcd_operator.storage.errors import NameTaken, StoreError, StoreFull, Unreachable
from unit.archive.samples import (
    NOW,
    FaultyStore,
    chunks,
    folder,
    keys_of,
    snapshot,
    source,
    states,
    stored,
)

NAME = "a/one.db"
KEY = EncryptionKey(bytes(range(32)))
FORMS = {
    "plain": Options(),
    "compressed": Options(compression="zstd"),
    "encrypted": Options(key=KEY),
    "both": Options(compression="zstd", key=KEY),
}


class Lost(Exception):
    """The end of this process, as far as the store is concerned."""


def files(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS.keys())
def test_what_is_stored_can_be_read_back(tmp_path: Path, options: Options) -> None:
    store, data = folder(tmp_path), snapshot(20)
    manifest = stored(store, NAME, data, options)
    content = b"".join(store.read(NAME))
    assert (manifest.stored_size, manifest.stored_sha256) == (
        len(content),
        hashlib.sha256(content).hexdigest(),
    )
    assert (manifest.size, manifest.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (manifest.revision, manifest.keys, manifest.time) == (21, 20, NOW)
    assert (manifest.cluster_id, manifest.member_id) == ("c0ffee", "1001")
    plain = (
        b"".join(
            frames.decode(
                [content], KeyRing([KEY]), compression=manifest.compression, encryption=manifest.encryption
            )
        )
        if options.is_framed
        else content
    )
    assert plain == data
    assert verify(store, NAME, keys_of(options)) == manifest
    assert files(tmp_path) == [NAME, NAME + SUFFIX]


def test_progress_counts_plain_bytes(tmp_path: Path) -> None:
    data = snapshot(3, value=1 << 20)
    seen: list[int] = []
    create(folder(tmp_path), NAME, chunks(data), source(), time=NOW, on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == len(data)


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(snapshot()[:-32], id="without the hash"),
        pytest.param(snapshot()[:-1000], id="cut off"),
        pytest.param(snapshot()[:8000] + b"x" + snapshot()[8001:], id="one byte changed"),
        pytest.param(b"no database" * 1000, id="not a database"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_not_a_whole_database_is_never_visible(tmp_path: Path, data: bytes, options: Options) -> None:
    with pytest.raises(SnapshotDamaged, match="the snapshot arrived damaged, run the backup again: "):
        stored(folder(tmp_path), NAME, data, options)
    assert files(tmp_path) == []


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("at", range(5))
def test_an_end_at_any_chunk_leaves_nothing(tmp_path: Path, at: int, options: Options) -> None:
    def broken() -> Iterator[bytes]:
        for index, chunk in enumerate(chunks(snapshot(60))):
            if index == at:
                raise KeyboardInterrupt
            yield chunk

    with pytest.raises(KeyboardInterrupt):
        create(folder(tmp_path), NAME, broken(), source(), time=NOW, options=options)
    assert files(tmp_path) == []


def test_a_name_is_never_used_twice(tmp_path: Path) -> None:
    store = folder(tmp_path)
    stored(store, NAME)
    before = {file: (tmp_path / file).read_bytes() for file in files(tmp_path)}
    with pytest.raises(NameTaken, match=r"a backup named a/one\.db exists already: choose another name"):
        stored(store, NAME, snapshot(9))
    assert {file: (tmp_path / file).read_bytes() for file in files(tmp_path)} == before


def test_the_name_of_a_manifest_is_no_name_of_a_backup(tmp_path: Path) -> None:
    with pytest.raises(NameTaken, match=r"choose another name, without \.manifest\.json"):
        stored(folder(tmp_path), NAME + SUFFIX)
    assert files(tmp_path) == []


def test_the_second_of_two_writers_of_one_name_loses(tmp_path: Path) -> None:
    store = folder(tmp_path)

    def meanwhile() -> Iterator[bytes]:
        stored(store, NAME, snapshot(9))
        yield from chunks(snapshot())

    with pytest.raises(NameTaken):
        create(store, NAME, meanwhile(), source(), time=NOW)
    assert verify(store, NAME, KeyRing()).keys == 9


@pytest.mark.parametrize("first", [NAME, NAME + SUFFIX], ids=["object", "manifest"])
def test_two_writers_of_the_same_bytes_leave_one_backup_and_bad_advice_to_nobody(
    tmp_path: Path, first: str
) -> None:
    """An idle member sends the same snapshot twice; the other run is a second earlier."""
    store = FaultyStore(folder(tmp_path))

    def overtaken(method: str, name: str) -> None:
        if (method, name) == ("put", first):
            store.before = lambda *_: None
            if first == NAME:
                create(store.inner, NAME, chunks(snapshot()), source(), time=NOW - timedelta(seconds=1))
            else:
                manifest = (tmp_path / "twin" / "one.db.manifest.json").read_bytes()
                (tmp_path / (NAME + SUFFIX)).write_bytes(manifest)

    create(folder(tmp_path / "twin"), "one.db", chunks(snapshot()), source(), time=NOW - timedelta(seconds=1))
    store.before = overtaken
    with pytest.raises(NameTaken) as raised:
        stored(store, NAME)
    assert "elete" not in str(raised.value)
    assert verify(store, NAME, KeyRing()).time == NOW - timedelta(seconds=1)


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS.keys())
def test_a_snapshot_older_than_its_source_is_not_stored(tmp_path: Path, options: Options) -> None:
    """The address of a Service may lead to another member, which lags behind."""
    old, store = chunks(snapshot(5)), folder(tmp_path)
    with pytest.raises(SnapshotOld, match=r"ends at revision 6, but its source had 7 before: "):
        create(store, NAME, old, source(revision=7), time=NOW, options=options)
    assert files(tmp_path) == []


@pytest.mark.parametrize(("keys", "revision"), [(5, 6), (0, 1)])
def test_a_snapshot_as_old_as_its_source_is_stored(tmp_path: Path, keys: int, revision: int) -> None:
    origin, store, data = source(revision=revision), folder(tmp_path), snapshot(keys)
    create(store, NAME, chunks(data), origin, time=NOW)
    manifest = verify(store, NAME, KeyRing())
    assert (manifest.keys, manifest.sha256) == (keys, hashlib.sha256(data).hexdigest())


CALLS = [("stat", NAME + SUFFIX), ("stat", NAME), ("put", NAME), ("put", NAME + SUFFIX)]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]} {call[1]}")
@pytest.mark.parametrize("error", [Unreachable("no route"), StoreFull("no space")], ids=["lost", "full"])
def test_a_request_that_never_arrives_leaves_no_backup(
    tmp_path: Path, call: tuple[str, str], error: StoreError
) -> None:
    store = FaultyStore(folder(tmp_path))

    def fail(*this: str) -> None:
        if this == call:
            raise error

    store.before = fail
    with pytest.raises((StoreError, ManifestMissing)):
        stored(store, NAME)
    assert set(states(store).values()) <= {State.INCOMPLETE}
    store.before = lambda *_: None
    stored(store, "a/two.db")
    assert states(store)["a/two.db"] is State.COMPLETE


@pytest.mark.parametrize("name", [NAME, NAME + SUFFIX])
@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS.keys())
def test_a_lost_reply_to_a_write_that_succeeded_is_a_success(
    tmp_path: Path, name: str, options: Options
) -> None:
    store = FaultyStore(folder(tmp_path))

    def lose(method: str, this: str) -> None:
        if (method, this) == ("put", name):
            raise Unreachable("connection reset")

    store.after = lose
    stored(store, NAME, options=options)
    assert states(store) == {NAME: State.COMPLETE}


def test_an_end_between_object_and_manifest_is_explained_by_the_next_run(tmp_path: Path) -> None:
    store = FaultyStore(folder(tmp_path))

    def end(method: str, name: str) -> None:
        if method == "put" and name.endswith(SUFFIX):
            raise Lost

    store.before = end
    with pytest.raises(Lost):
        stored(store, NAME)
    assert states(store) == {NAME: State.INCOMPLETE}
    store.before = lambda *_: None
    with pytest.raises(NameTaken, match="without a manifest: it is a backup that was interrupted"):
        stored(store, NAME)


def test_a_store_that_is_lost_after_the_object_reports_what_is_left(tmp_path: Path) -> None:
    store = FaultyStore(folder(tmp_path))

    def lose(method: str, _name: str) -> None:
        store.before = refuse if method == "put" else ignore

    def refuse(*_: str) -> None:
        raise Unreachable("no route")

    def ignore(*_: str) -> None:
        pass

    store.after = lose
    with pytest.raises(
        ManifestMissing, match=r"is stored, but its manifest is not, .*: no route\. Delete it"
    ):
        stored(store, NAME)


def test_a_store_that_keeps_nothing_is_noticed(tmp_path: Path) -> None:
    store = FaultyStore(folder(tmp_path))
    store.after = lambda method, name: (tmp_path / NAME).unlink() if method == "put" else None
    with pytest.raises(BackupError, match=r"accepted 40992 bytes as a/one\.db, but has nothing"):
        stored(store, NAME)


def test_a_store_that_does_not_read_to_the_end_is_noticed(tmp_path: Path) -> None:
    class Lazy(FaultyStore):
        def put(self, name: str, chunks: object) -> None:
            self.inner.put(name, iter([b"first"]))

    with pytest.raises(BackupError, match="did not read the snapshot to its end"):
        stored(Lazy(folder(tmp_path)), NAME)
