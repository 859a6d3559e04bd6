"""Makes one backup: snapshot, scan, frames, store; then the manifest.

Promises:
- the object becomes visible only after etcd's SHA-256 was verified and the database was read through;
- the manifest is written last: a backup exists once its manifest does, and nothing else is one;
- neither an object nor a manifest is ever overwritten;
- a write whose reply is lost is read back before it is called failed;
- an error of the source, of the store or of the caller (also `KeyboardInterrupt`) leaves nothing visible,
  unless it comes between the object and its manifest: then the next run on that name explains it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from etcd_operator import __version__
from etcd_operator.archive import frames
from etcd_operator.archive.authenticity import authenticated
from etcd_operator.archive.database import DatabaseScan, DatabaseSummary
from etcd_operator.archive.errors import BackupError, Damaged, ManifestMissing, SnapshotDamaged, SnapshotOld
from etcd_operator.archive.keys import EncryptionKey
from etcd_operator.archive.manifest import SUFFIX, Compression, Manifest, decode, encode, manifest_name
from etcd_operator.archive.source import Source
from etcd_operator.archive.streams import OnProgress, counted, ignore_progress, read_ahead
from etcd_operator.storage.errors import NameTaken, StoreError
from etcd_operator.storage.protocol import Store

_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the snapshot is stored. With a key it is encrypted. series, owner: see `Manifest`.

    manifest_key: what authenticates the manifest of a backup that is not encrypted.
    """

    compression: Compression = ""
    key: EncryptionKey | None = None
    manifest_key: EncryptionKey | None = None
    series: str = ""
    owner: str = ""

    @property
    def is_framed(self) -> bool:
        """Whether the object is a container of frames."""
        return bool(self.compression) or self.key is not None


def create(
    store: Store,
    name: str,
    snapshot: Iterable[bytes],
    source: Source,
    *,
    time: datetime,
    options: Options | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Manifest:
    """Store `snapshot` as the backup `name`; `time` is when it began.

    `snapshot` ends with etcd's hash, which is verified here. Raises its errors, `SnapshotDamaged`,
    `SnapshotOld`, those of the store, and `ManifestMissing`.
    """
    check_free(store, name)
    transfer = _Transfer(snapshot, source.status.revision, options or Options(), on_progress)
    try:
        store.put(name, transfer.chunks())
    except StoreError:
        if not transfer.is_at(store, name):
            raise
    manifest = transfer.manifest(name, source, time)
    try:
        _check_stored(store, name, manifest)
        _write_manifest(store, name, manifest)
    except StoreError as error:
        _refuse_twin(store, name, manifest)
        raise ManifestMissing(
            f"{name} is stored, but its manifest is not, so it does not count as a backup: {error}. "
            "Delete it, and run the backup again"
        ) from error
    return manifest


def check_free(store: Store, name: str) -> None:
    """Raise `NameTaken` if something is stored as `name` or as its manifest, or if `name` is a manifest's."""
    if name.endswith(SUFFIX):
        raise NameTaken(f"{name} is the name of a manifest: choose another name, without {SUFFIX}")
    if store.stat(manifest_name(name)) is not None:
        raise NameTaken(f"a backup named {name} exists already: choose another name")
    if store.stat(name) is not None:
        raise NameTaken(
            f"{name} exists already, without a manifest: it is a backup that was interrupted, or is still "
            "being written. If it is not needed, delete it; or choose another name"
        )


class _Transfer:
    """The bytes of one backup on their way, and what is known of them once they have ended."""

    def __init__(
        self, snapshot: Iterable[bytes], revision: int, options: Options, on_progress: OnProgress
    ) -> None:
        self._snapshot = snapshot
        self._revision = revision
        self._options = options
        self._on_progress = on_progress
        self._scan = DatabaseScan()
        self._summary: DatabaseSummary | None = None
        self._digest = hashlib.sha256()
        self._size = 0
        self._has_ended = False

    def chunks(self) -> Iterator[bytes]:
        """The bytes to be stored."""
        if not self._options.is_framed:
            yield from self._plain()
        else:
            options = self._options
            for chunk in frames.encode(self._plain(), compression=options.compression, key=options.key):
                self._digest.update(chunk)
                self._size += len(chunk)
                yield chunk
        self._has_ended = True

    def is_at(self, store: Store, name: str) -> bool:
        """Whether the object has exactly these bytes: an upload that succeeded, its reply being lost."""
        if not self._has_ended:
            return False
        size, sha256 = self._stored()
        try:
            found = store.stat(name)
            return found is not None and found.size == size and _hash(store.read(name)) == sha256
        except StoreError:
            return False

    def manifest(self, name: str, source: Source, time: datetime) -> Manifest:
        """What was stored."""
        summary = self._ended()
        size, sha256 = self._stored()
        key = self._options.key
        made = Manifest(
            name=name,
            operator_version=__version__,
            etcd_version=source.status.version,
            cluster_id=source.status.cluster_id,
            member_id=source.status.member_id,
            revision=summary.revision,
            keys=summary.keys,
            size=summary.size,
            sha256=summary.sha256,
            stored_size=size,
            stored_sha256=sha256,
            time=time,
            compression=self._options.compression,
            encryption="AES-256-GCM" if key is not None else "",
            key_id=key.id if key is not None else "",
            corrupt_alarm=source.has_corrupt_alarm,
            quorum=source.has_quorum,
            series=self._options.series,
            owner=self._options.owner,
        )
        authenticating = key or self._options.manifest_key
        return authenticated(made, authenticating) if authenticating is not None else made

    def _plain(self) -> Iterator[bytes]:
        for block in counted(read_ahead(_blocks(self._snapshot)), self._on_progress):
            with _damage_of_transfer():
                self._scan.feed(block)
            yield block
        with _damage_of_transfer():
            self._summary = self._scan.finish()
            if not self._summary.has_hash:
                raise Damaged(f"it does not end with etcd's hash after {self._summary.size} bytes")
        _check_age(self._summary, self._revision)

    def _stored(self) -> tuple[int, str]:
        if self._options.is_framed:
            return self._size, self._digest.hexdigest()
        summary = self._ended()
        return summary.size, summary.sha256

    def _ended(self) -> DatabaseSummary:
        if self._summary is None:
            raise BackupError("the store did not read the snapshot to its end")
        return self._summary


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks joined to larger ones: etcd sends 32 KiB at a time, and each step costs time for each."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= _BLOCK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


@contextmanager
def _damage_of_transfer() -> Iterator[None]:
    try:
        yield
    except Damaged as error:
        raise SnapshotDamaged(f"the snapshot arrived damaged, run the backup again: {error}") from error


def _check_age(found: DatabaseSummary, expected: int) -> None:
    """An address of a Service or proxy may lead to one member first, and to another for the snapshot."""
    if found.etcd_revision < expected:
        raise SnapshotOld(
            f"the snapshot ends at revision {found.etcd_revision}, but its source had {expected} before: "
            "the endpoint leads to several members, and one lags behind. Pass the addresses of the members "
            "themselves"
        )


def _hash(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _check_stored(store: Store, name: str, manifest: Manifest) -> None:
    found = store.stat(name)
    if found is None or found.size != manifest.stored_size:
        size = "nothing" if found is None else f"{found.size} bytes"
        raise BackupError(
            f"the store accepted {manifest.stored_size} bytes as {name}, but has {size}: "
            "check whether something else writes or deletes there"
        )


def _write_manifest(store: Store, name: str, manifest: Manifest) -> None:
    data = encode(manifest)
    try:
        store.put(manifest_name(name), iter([data]))
    except StoreError:
        if not _is_written(store, manifest_name(name), data):
            raise


def _refuse_twin(store: Store, name: str, manifest: Manifest) -> None:
    """Raise `NameTaken` if another writer of this name stored the same bytes and their manifest.

    An idle member sends the same snapshot twice. Nobody may be advised to delete what is a backup.
    """
    try:
        other = decode(b"".join(store.read(manifest_name(name))))
    except (StoreError, BackupError):
        return
    if (other.stored_size, other.stored_sha256) == (manifest.stored_size, manifest.stored_sha256):
        raise NameTaken(
            f"another run stored the same backup as {name} at the same time, and it is complete: "
            "choose another name"
        )


def _is_written(store: Store, name: str, data: bytes) -> bool:
    try:
        return b"".join(store.read(name)) == data
    except StoreError:
        return False
