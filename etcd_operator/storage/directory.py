"""A folder as a store, such as a mounted PersistentVolumeClaim.

Objects are files of the same relative path. Time limits do not apply: nothing can interrupt a filesystem that
hangs.
"""

import os
import stat as modes
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from io import FileIO
from pathlib import Path

from etcd_operator.storage.errors import InvalidURL, NameTaken, ObjectMissing
from etcd_operator.storage.partial import sync_folder, taken, translated, writing
from etcd_operator.storage.protocol import PARTIAL_PREFIX, Stored, check_name, check_prefix

_CHUNK = 1024 * 1024


class Directory:
    """The files below `root`, which must exist; folders below it are made as names need them.

    Implements `Store`. Symbolic links that lead out of `root` are refused, and not listed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def __repr__(self) -> str:
        return f"Directory({str(self._root)!r})"

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Store.put`: written aside, made durable, linked to its name."""
        target = self._path(name)
        with translated(target.parent):
            self._make_folder(target.parent)
            if os.path.lexists(target):
                raise NameTaken(taken(target))
        with writing(target.parent) as file:
            for chunk in chunks:
                file.write(chunk)
            file.publish(target)

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        """See `Store.read`."""
        path = self._path(name)
        if self.stat(name) is None:
            raise ObjectMissing(
                f"The file {path} does not exist. List the folder to see which files there are."
            )
        with translated(path):
            file = path.open("rb", buffering=0)
        with file:
            file.seek(offset)
            yield from iter(partial(_read, file, path), b"")

    def list(self, prefix: str) -> Iterator[Stored]:
        """See `Store.list`."""
        folder = self._root / check_prefix(prefix)
        self._check_root()
        for where, _, files in os.walk(folder, onerror=_unless_gone):
            for file in files:
                stored = self._stored(Path(where, file))
                if stored is not None and not file.startswith(PARTIAL_PREFIX):
                    yield stored

    def stat(self, name: str) -> Stored | None:
        """See `Store.stat`."""
        path = self._path(name)
        self._check_root()
        return self._stored(path)

    def delete(self, name: str) -> None:
        """See `Store.delete`; folders that become empty remain."""
        path = self._path(name)
        if self.stat(name) is None:
            return
        with translated(path):
            path.unlink(missing_ok=True)
            sync_folder(path.parent)

    def _check_root(self) -> None:
        """Raises `BucketMissing`: without the folder, nothing is known about its files."""
        with translated(self._root):
            self._root.stat()

    def _path(self, name: str) -> Path:
        """Where the object is; `InvalidURL` if a symbolic link leads out of the root."""
        path = self._root / check_name(name)
        with translated(path):
            inside = path.parent.resolve().is_relative_to(self._root.resolve())
        if not inside:
            raise InvalidURL(f"{path} leads out of {self._root} by a symbolic link. Choose another name.")
        return path

    def _make_folder(self, folder: Path) -> None:
        """Make the missing folders between the root and `folder` durable."""
        self._check_root()
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            sync_folder(each.parent)

    def _stored(self, path: Path) -> Stored | None:
        """The object at a path; None for folders, links and other special files."""
        with translated(path):
            try:
                found = path.lstat()
            except (FileNotFoundError, NotADirectoryError):
                return None
        if not modes.S_ISREG(found.st_mode):
            return None
        modified = datetime.fromtimestamp(found.st_mtime, UTC)
        return Stored(name=path.relative_to(self._root).as_posix(), size=found.st_size, modified=modified)


def _read(file: FileIO, path: Path) -> bytes:
    with translated(path):
        return file.read(_CHUNK)


def _unless_gone(error: OSError) -> None:
    """A folder that was removed, or never existed, has no objects; any other failure hides some."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        with translated(Path(error.filename)):
            raise error
