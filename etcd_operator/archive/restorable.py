"""What can be restored: a backup with its manifest, or a plain snapshot without one.

`etcdctl snapshot save` writes plain snapshots, with etcd's hash at their end. A copy of a member's database
file has no hash; only its structure can be checked then.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from etcd_operator.archive import frames
from etcd_operator.archive.authenticity import require_authentic
from etcd_operator.archive.catalog import load
from etcd_operator.archive.database import DatabaseScan, is_whole
from etcd_operator.archive.errors import Damaged, NotABackup
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.streams import OnProgress, counted, ignore_progress
from etcd_operator.archive.verify import same, snapshot
from etcd_operator.storage.errors import ObjectMissing
from etcd_operator.storage.protocol import Store


class Check(StrEnum):
    """What a snapshot was compared with."""

    MANIFEST = "manifest"
    HASH = "hash"  # of etcd, at its end; there is no manifest
    NONE = "none"  # neither: only the structure of the database was checked


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A plain snapshot that was checked."""

    etcd_version: str  # of the member that sent it; without a manifest as the database has it, or empty
    revision: int
    keys: int
    size: int
    sha256: str
    check: Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Restorable:
    """An object in a store."""

    store: Store
    name: str
    size: int  # of the plain snapshot, in bytes
    manifest: Manifest | None
    sha256: str = ""  # of the snapshot that was verified before, which this one has to be; empty for any

    def save(self, file: Path, keys: KeyRing, *, on_progress: OnProgress = ignore_progress) -> Snapshot:
        """Write the plain snapshot to a new file. Only a file whose writing ended without an error is whole.

        What is in a snapshot that was verified is not looked at again: it has the same bytes.
        Raises `Damaged`, `WrongKey`, `NotEncrypted`, the store's errors, and `OSError` of the file.
        """
        with file.open("xb") as output:
            if self.manifest is None or not self.sha256:
                return self._verified(keys, on_progress, output.write)
            found = self._same(of_manifest(self.manifest))
            chunks = same(self.store, self.name, self.manifest, keys)
            output.writelines(counted(chunks, on_progress))
        return found

    def check(self, keys: KeyRing, *, on_progress: OnProgress = ignore_progress) -> Snapshot:
        """Read everything, and keep nothing. Raises as `save`."""
        return self._verified(keys, on_progress, len)

    def _verified(self, keys: KeyRing, on_progress: OnProgress, write: Callable[[bytes], object]) -> Snapshot:
        if self.manifest is None:
            require_authentic(self.name, None, keys)
            return self._same(self._read_plain(on_progress, write))
        for chunk in snapshot(self.store, self.name, self.manifest, keys, on_progress=on_progress):
            write(chunk)
        return self._same(of_manifest(self.manifest))

    def _same(self, found: Snapshot) -> Snapshot:
        if self.sha256 and found.sha256 != self.sha256:
            raise Damaged(f"{self.name} has the SHA-256 {found.sha256}, not {self.sha256}: it was replaced")
        return found

    def _read_plain(self, on_progress: OnProgress, write: Callable[[bytes], object]) -> Snapshot:
        scan = DatabaseScan()
        try:
            for chunk in _scanned(self.store.read(self.name), self.name, scan, on_progress):
                write(chunk)
        except ObjectMissing as error:
            raise Damaged(f"the object {self.name} was deleted while it was read") from error
        found = scan.finish()
        if not found.has_hash and not is_whole(found.size):
            raise Damaged(f"{self.name} is truncated: it ends within the hash that etcd appended")
        return Snapshot(
            etcd_version=found.cluster_version,
            revision=found.last_revision,
            keys=found.keys,
            size=found.size,
            sha256=found.sha256,
            check=Check.HASH if found.has_hash else Check.NONE,
        )


def find(store: Store, name: str, *, sha256: str = "") -> Restorable:
    """What has that name, nothing of it checked yet.

    Raises `NotABackup` if there is nothing, `DamagedManifest`, `UnknownFormat`, and the store's errors.
    """
    try:
        manifest = load(store, name)
    except NotABackup:
        stored = store.stat(name)
        if stored is None:
            raise
        return Restorable(store=store, name=name, size=stored.size, manifest=None, sha256=sha256)
    return Restorable(store=store, name=name, size=manifest.size, manifest=manifest, sha256=sha256)


def of_manifest(manifest: Manifest) -> Snapshot:
    """The snapshot that a manifest describes."""
    return Snapshot(
        etcd_version=manifest.etcd_version,
        revision=manifest.revision,
        keys=manifest.keys,
        size=manifest.size,
        sha256=manifest.sha256,
        check=Check.MANIFEST,
    )


def _scanned(
    chunks: Iterable[bytes], name: str, scan: DatabaseScan, on_progress: OnProgress
) -> Iterator[bytes]:
    begin = b""
    for chunk in counted(chunks, on_progress):
        if len(begin) < len(frames.MAGIC):
            begin += chunk[: len(frames.MAGIC)]
            _refuse_other_formats(name, begin)
        scan.feed(chunk)
        yield chunk


_ARCHIVES = {
    "gzip": b"\x1f\x8b\x08",
    "zip": b"PK\x03\x04",
    "zstd": b"\x28\xb5\x2f\xfd",
    "xz": b"\xfd7zXZ\0",
    "bzip2": b"BZh",
}
"""What files of other tools begin with; a database begins with the number 0."""


def _refuse_other_formats(name: str, begin: bytes) -> None:
    if begin.startswith(frames.MAGIC):
        raise NotABackup(
            f"{name} is a compressed or encrypted backup without its manifest: it was interrupted, or the "
            "manifest was not copied"
        )
    for form, magic in _ARCHIVES.items():
        if begin.startswith(magic):
            raise NotABackup(f"{name} is packed ({form}), not by this operator: unpack it first")
