"""Reads a backup back, every byte, and checks it against its manifest and against itself.

This finds what is truncated, changed, swapped with another object or written by something else. That the
database can be restored is shown by `trial`.
"""

from collections.abc import Iterable, Iterator

from etcd_operator.archive import contents
from etcd_operator.archive.catalog import load
from etcd_operator.archive.database import DatabaseScan, DatabaseSummary
from etcd_operator.archive.errors import Damaged
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.progress import OnProgress, counted, ignore_progress
from etcd_operator.storage.errors import ObjectMissing
from etcd_operator.storage.protocol import Store


def verify(store: Store, name: str, keys: KeyRing, *, on_progress: OnProgress = ignore_progress) -> Manifest:
    """Read the backup `name` back and check everything.

    Raises `Damaged` if it is not what its manifest describes, `NotABackup`, `UnknownFormat`, `WrongKey`, and
    the store's errors.
    """
    manifest = load(store, name)
    for _ in snapshot(store, name, manifest, keys, on_progress=on_progress):
        pass
    return manifest


def snapshot(
    store: Store,
    name: str,
    manifest: Manifest,
    keys: KeyRing,
    *,
    on_progress: OnProgress = ignore_progress,
) -> Iterator[bytes]:
    """The snapshot of the backup `name`, with all checks; see `verify` for the errors."""
    chunks = _read(store, name, manifest)
    if manifest.is_framed:
        chunks = contents.stored(chunks, manifest)
    # Each hash takes a second or more for a GiB: that of the snapshot is computed by the scan.
    yield from scanned(contents.unframed(chunks, manifest, keys), manifest, on_progress=on_progress)


def same(store: Store, name: str, manifest: Manifest, keys: KeyRing) -> Iterator[bytes]:
    """The snapshot of the backup `name`: every byte as its manifest describes, but its content is not read.

    That is enough where a snapshot with that SHA-256 was verified before. See `verify` for the errors.
    """
    yield from contents.plain(contents.stored(_read(store, name, manifest), manifest), manifest, keys)


def _read(store: Store, name: str, manifest: Manifest) -> Iterator[bytes]:
    contents.require(store, name, manifest)
    try:
        yield from store.read(name)
    except ObjectMissing as error:
        raise Damaged(f"the object {name} was deleted while it was read") from error


def scanned(
    chunks: Iterable[bytes], manifest: Manifest, *, on_progress: OnProgress = ignore_progress
) -> Iterator[bytes]:
    """Yield the plain chunks; `Damaged` at the end if the database in them is not that of the manifest."""
    scan = DatabaseScan()
    for chunk in counted(chunks, on_progress):
        scan.feed(chunk)
        yield chunk
    check(scan.finish(), manifest)


def check(found: DatabaseSummary, manifest: Manifest) -> None:
    """Raise `Damaged` if the database is not the one that the manifest names."""
    if found.sha256 != manifest.sha256:
        raise Damaged("the snapshot does not match the SHA-256 in its manifest: it was changed or replaced")
    wrong = [
        f"{what} {is_}, not {named}"
        for what, is_, named in (
            ("size", found.size, manifest.size),
            ("revision", found.revision, manifest.revision),
            ("number of keys", found.keys, manifest.keys),
        )
        if is_ != named
    ]
    if wrong:
        raise Damaged(f"the snapshot does not fit its manifest: {', '.join(wrong)}")
