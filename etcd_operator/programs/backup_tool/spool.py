"""A snapshot in a scratch file, before it is stored.

The name of a backup contains the revision of its snapshot, which is known only at its end: writes go on while
etcd sends it. An object in S3 has its name from the beginning, so the snapshot waits in a file.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from etcd_operator.archive.database import DatabaseScan, DatabaseSummary
from etcd_operator.archive.errors import BackupError, Damaged, SnapshotDamaged
from etcd_operator.storage.partial import write_all

_BLOCK = 1 << 18


class ScratchFailed(BackupError):
    """The scratch folder cannot take the snapshot."""


@dataclass(frozen=True, slots=True)
class Spool:
    """A whole snapshot whose hash is right."""

    file: BinaryIO
    summary: DatabaseSummary

    def chunks(self) -> Iterator[bytes]:
        """The snapshot from its beginning. Raises `ScratchFailed`."""
        try:
            self.file.seek(0)
            while block := self.file.read(_BLOCK):
                yield block
        except OSError as error:
            raise ScratchFailed(f"the scratch file cannot be read: {error.strerror}") from error


@contextmanager
def spooled(snapshot: Iterable[bytes], folder: Path) -> Iterator[Spool]:
    """The snapshot in a file without a name, which is gone at the end, however that comes.

    Raises the errors of `snapshot`, `SnapshotDamaged`, and `ScratchFailed`.
    """
    with _file(folder) as file:
        yield Spool(file, _written(snapshot, file, folder))


@contextmanager
def _file(folder: Path) -> Iterator[BinaryIO]:
    try:
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 -- closed below
    except OSError as error:
        raise _failed(folder, error) from error
    with file:
        yield file


def _written(snapshot: Iterable[bytes], file: BinaryIO, folder: Path) -> DatabaseSummary:
    scan = DatabaseScan()
    try:
        for chunk in snapshot:
            scan.feed(chunk)
            _write(file, chunk, folder)
        summary = scan.finish()
        if not summary.has_hash:
            raise Damaged("it does not end with etcd's hash")
    except Damaged as error:
        raise SnapshotDamaged(f"the snapshot arrived damaged: {error}") from error
    return summary


def _write(file: BinaryIO, chunk: bytes, folder: Path) -> None:
    try:
        write_all(file.write, chunk)
    except OSError as error:
        raise _failed(folder, error) from error


def _failed(folder: Path, error: OSError) -> ScratchFailed:
    return ScratchFailed(f"the snapshot cannot be written to the scratch folder {folder}: {error.strerror}")
