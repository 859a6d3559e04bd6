"""Copies a backup to a file, as a snapshot for `etcdutl snapshot restore`.

Promises:
- the file appears under its name only when it is complete and checked, and never replaces another one;
- a fetch that was interrupted continues where it ended: what has arrived is kept beside the file, under a
  hidden name that contains the hash of the object, so that it cannot be mixed with another one;
- nobody else may read the file: it contains all keys and values, also those of a Kubernetes API server.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from etcd_operator.archive.authenticity import require_authentic
from etcd_operator.archive.catalog import load
from etcd_operator.archive.errors import Damaged, FetchError
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.streams import OnProgress, counted, ignore_progress
from etcd_operator.archive.verify import plain, require, stored
from etcd_operator.storage.errors import NameTaken, StoreError
from etcd_operator.storage.partial import name_file, sync_folder, write_all
from etcd_operator.storage.protocol import Store

_BLOCK = 1 << 20


def fetch(
    store: Store, name: str, target: Path, keys: KeyRing, *, on_progress: OnProgress = ignore_progress
) -> Manifest:
    """Write the snapshot of the backup `name` to `target`; `on_progress` counts stored bytes.

    Raises `FetchError`, `Damaged`, `NotABackup`, `UnknownFormat`, `WrongKey`, `NotEncrypted`, and the store's
    errors.
    """
    manifest = load(store, name)
    require_authentic(name, manifest, keys)
    require(store, name, manifest)
    if os.path.lexists(target):
        raise FetchError(f"{target} exists already: choose another name, or delete it")
    partial = target.with_name(f".{target.name}.{manifest.stored_sha256[:16]}.partial")
    try:
        with _opened(partial) as file:
            _check_space(target, manifest, already=file.seek(0, os.SEEK_END))
            _download(store, name, manifest, file, on_progress)
            source = _decoded(partial, file, manifest, keys) if manifest.is_framed else partial
            _publish(source, target)
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise FetchError(f"cannot write {target}: {error.strerror or error}{_kept(partial)}") from error
    return manifest


def _kept(partial: Path) -> str:
    """What is reported of a part that has arrived; nothing if none has."""
    try:
        has_begun = partial.stat().st_size > 0
    except OSError:
        has_begun = False
    if not has_begun:
        return ""
    return f". What has arrived is kept in {partial.name}, and the next fetch goes on there"


@contextmanager
def _opened(partial: Path) -> Iterator[BinaryIO]:
    """The partial file, for this process only."""
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        _keep_private(file, partial)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FetchError(f"another process fetches to {partial.name} now: wait for it") from None
        yield file


def _keep_private(file: BinaryIO, partial: Path) -> None:
    """Another user, who waits with a file of that name, would read what is written to it."""
    found = os.fstat(file.fileno())
    if found.st_uid != os.geteuid() or not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise FetchError(
            f"{partial} was not made by a fetch of this user: delete it, or choose another folder"
        )
    os.fchmod(file.fileno(), 0o600)


def _check_space(target: Path, manifest: Manifest, *, already: int) -> None:
    needed = manifest.stored_size - already + (manifest.size if manifest.is_framed else 0)
    free = shutil.disk_usage(target.parent).free
    if needed > free:
        raise FetchError(
            f"{target.parent} has {free >> 20} MiB free, and {(needed >> 20) + 1} MiB are needed: "
            "free some space"
        )


def _download(store: Store, name: str, manifest: Manifest, file: BinaryIO, on_progress: OnProgress) -> None:
    """Complete the file with the stored bytes. What is wrong in an earlier part is fetched again, once."""
    offset = file.seek(0, os.SEEK_END)
    try:
        _append(store, name, manifest, file, min(offset, manifest.stored_size), on_progress)
    except Damaged:
        file.truncate(0)
        if offset == 0:
            raise
        _append(store, name, manifest, file, 0, on_progress)
    os.fsync(file.fileno())


def _append(
    store: Store, name: str, manifest: Manifest, file: BinaryIO, offset: int, on_progress: OnProgress
) -> None:
    file.truncate(offset)
    file.seek(0)

    def chunks() -> Iterator[bytes]:
        while block := file.read(_BLOCK):
            yield block
        for chunk in store.read(name, offset):
            write_all(file.write, chunk)
            yield chunk

    for _ in counted(stored(chunks(), manifest), on_progress):
        pass


def _decoded(partial: Path, file: BinaryIO, manifest: Manifest, keys: KeyRing) -> Path:
    """A second file with the snapshot out of its frames."""
    path = partial.with_suffix(".decoded")
    file.seek(0)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as decoded:
            for chunk in plain(iter(lambda: file.read(_BLOCK), b""), manifest, keys):
                write_all(decoded.write, chunk)
            os.fsync(decoded.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _publish(source: Path, target: Path) -> None:
    """Give the file its name, unless that exists."""
    try:
        name_file(source, target)
    except NameTaken:
        raise FetchError(_appeared(target)) from None
    except StoreError:  # it cannot be done in one step here
        if os.path.lexists(target):
            raise FetchError(_appeared(target)) from None
        source.rename(target)
    source.unlink(missing_ok=True)
    sync_folder(target.parent)


def _appeared(target: Path) -> str:
    return f"{target} was created meanwhile: choose another name, or delete it"
