"""Reads a backup back, every byte, and checks it against its manifest and against itself.

This finds what is truncated, changed, swapped with another object or written by something else. That the
database can be restored is shown by `trial`. The checks raise `Damaged` at the latest when an iteration ends:
only bytes of an iteration that ended without an error are those of the backup.
"""

import hashlib
from collections.abc import Iterable, Iterator

from etcd_operator.archive import frames
from etcd_operator.archive.authenticity import require_authentic
from etcd_operator.archive.catalog import load
from etcd_operator.archive.database import DatabaseScan, DatabaseSummary
from etcd_operator.archive.errors import Damaged
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.streams import OnProgress, counted, ignore_progress
from etcd_operator.storage.errors import ObjectMissing
from etcd_operator.storage.protocol import Store


def verify(store: Store, name: str, keys: KeyRing, *, on_progress: OnProgress = ignore_progress) -> Manifest:
    """Read the backup `name` back and check everything.

    Raises `Damaged` if it is not what its manifest describes, `NotABackup`, `UnknownFormat`, `WrongKey`,
    `NotEncrypted`, and the store's errors.
    """
    manifest = load(store, name)
    for _ in snapshot(store, name, manifest, keys, on_progress=on_progress):
        pass
    return manifest


def snapshot(
    store: Store, name: str, manifest: Manifest, keys: KeyRing, *, on_progress: OnProgress = ignore_progress
) -> Iterator[bytes]:
    """The snapshot of the backup `name`, with all checks; see `verify` for the errors."""
    require_authentic(name, manifest, keys)
    chunks = _read(store, name, manifest)
    if manifest.is_framed:
        chunks = stored(chunks, manifest)
    scan = DatabaseScan()
    # Each hash takes a second or more for a GiB: that of the snapshot is computed by the scan.
    for chunk in counted(_unframed(chunks, manifest, keys), on_progress):
        scan.feed(chunk)
        yield chunk
    _compare(scan.finish(), manifest)


def same(store: Store, name: str, manifest: Manifest, keys: KeyRing) -> Iterator[bytes]:
    """The snapshot of the backup `name`: every byte as its manifest describes, but its content is not read.

    That is enough where a snapshot with that SHA-256 was verified before. See `verify` for the errors.
    """
    require_authentic(name, manifest, keys)
    yield from plain(stored(_read(store, name, manifest), manifest), manifest, keys)


def require(store: Store, name: str, manifest: Manifest) -> None:
    """Raise `Damaged` if the object is missing or has another size than its manifest names."""
    found = store.stat(name)
    if found is None:
        raise Damaged(f"the object {name} is missing, only its manifest exists: it was deleted")
    if found.size != manifest.stored_size:
        raise Damaged(
            f"the object {name} has {found.size} bytes, its manifest names {manifest.stored_size}: "
            "it was truncated or replaced"
        )


def stored(chunks: Iterable[bytes], manifest: Manifest) -> Iterator[bytes]:
    """Yield the stored bytes; `Damaged` if they are not those that the manifest names."""
    return _checked(chunks, manifest.stored_size, manifest.stored_sha256, "stored object")


def plain(chunks: Iterable[bytes], manifest: Manifest, keys: KeyRing) -> Iterator[bytes]:
    """The snapshot from the stored bytes; `Damaged` if it is not the one that the manifest names."""
    decoded = _unframed(chunks, manifest, keys)
    if not manifest.is_framed:
        return decoded
    return _checked(decoded, manifest.size, manifest.sha256, "snapshot in it")


def _read(store: Store, name: str, manifest: Manifest) -> Iterator[bytes]:
    require(store, name, manifest)
    try:
        yield from store.read(name)
    except ObjectMissing as error:
        raise Damaged(f"the object {name} was deleted while it was read") from error


def _unframed(chunks: Iterable[bytes], manifest: Manifest, keys: KeyRing) -> Iterator[bytes]:
    if not manifest.is_framed:
        return iter(chunks)
    return frames.decode(chunks, keys, compression=manifest.compression, encryption=manifest.encryption)


def _compare(found: DatabaseSummary, manifest: Manifest) -> None:
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


def _checked(chunks: Iterable[bytes], size: int, sha256: str, what: str) -> Iterator[bytes]:
    digest = hashlib.sha256()
    count = 0
    for chunk in chunks:
        digest.update(chunk)
        count += len(chunk)
        if count > size:
            raise Damaged(f"the {what} has more than the {size} bytes that its manifest names")
        yield chunk
    if count < size:
        raise Damaged(f"the {what} has {count} bytes, its manifest names {size}: it is truncated")
    if digest.hexdigest() != sha256:
        raise Damaged(f"the {what} does not match the SHA-256 in its manifest: it was changed or replaced")
