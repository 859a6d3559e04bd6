"""A file of a folder that is still being written, and how it gets its name.

It is written aside in the folder of its name, made durable, and linked to the name, which fails if the name
exists. A process that is killed leaves the file aside: never listed, and removed by a later write into that
folder once it is an hour old and nobody holds its lock.
"""

import contextlib
import errno
import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from etcd_operator.storage.errors import AccessDenied, BucketMissing, NameTaken, StoreError, StoreFull
from etcd_operator.storage.protocol import PARTIAL_PREFIX

LEFTOVER_SECONDS = 3600.0

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1


def write_all(write: Callable[[memoryview], int], chunk: bytes) -> None:
    """Have all of a chunk written by what may take only a part of it."""
    rest = memoryview(chunk)
    while rest:
        rest = rest[write(rest) :]


class PartialFile:
    """A file that is being written into `folder`, open and locked. Made by `writing`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"{PARTIAL_PREFIX}{uuid.uuid4().hex}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # filesystems without locks: only the age protects the file
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, chunk: bytes) -> None:
        """Append all of the chunk."""
        with translated(self._folder):
            write_all(lambda rest: os.write(self._file, rest), chunk)

    def publish(self, target: Path) -> None:
        """Make the file durable and give it the name `target`; `NameTaken` if that exists."""
        with translated(self._folder):
            os.fsync(self._file)
            name_file(self._path, target)
            sync_folder(self._folder)

    def discard(self) -> None:
        """Close the file and remove the name aside, if it is still there."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.close(self._file)

    def remove_leftovers(self) -> None:
        """Remove the files that ended processes left in this folder.

        Ages are differences of times that the filesystem gave: the clock of this machine does not matter.
        """
        now = os.fstat(self._file).st_mtime
        for path in self._folder.glob(f"{PARTIAL_PREFIX}*"):
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > LEFTOVER_SECONDS:
                    _remove_unlocked(path)


@contextmanager
def writing(folder: Path) -> Iterator[PartialFile]:
    """A new file of `folder`, whose name aside is gone at the end, however that comes."""
    with translated(folder):
        partial = PartialFile(folder)
    try:
        partial.remove_leftovers()
        yield partial
    finally:
        partial.discard()


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Failures of the filesystem as errors of a store."""
    try:
        yield
    except OSError as error:
        raise _translate(error, path) from error


def taken(target: Path) -> str:
    """The message for a name that exists."""
    return f"The file {target} exists already and was not changed. Choose another name, or remove that file."


def name_file(path: Path, target: Path) -> None:
    """Give a file the name `target`; it may keep the old one. Raises as `rename_if_absent`."""
    try:
        os.link(path, target)
    except FileExistsError as error:
        if not _is_same(path, target):  # NFS repeats a request whose reply was lost
            raise NameTaken(taken(target)) from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        rename_if_absent(path, target)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # some network filesystems: names are durable
            raise
    finally:
        os.close(descriptor)


def rename_if_absent(path: Path, target: Path) -> None:
    """For filesystems without hard links, such as SMB: `NameTaken` if the target exists.

    `StoreError` if the filesystem cannot do that, `OSError` for any other failure.
    """
    import ctypes  # slow to import, and rarely needed

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    code = errno.ENOSYS
    if rename is not None:
        names = (_AT_FDCWD, os.fsencode(path), _AT_FDCWD, os.fsencode(target))
        code = 0 if rename(*names, _RENAME_NOREPLACE) == 0 else ctypes.get_errno()
    if code == errno.EEXIST:
        raise NameTaken(taken(target))
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        raise StoreError(
            f"The filesystem of {target} can neither link nor rename a file without replacing another. "
            "Use a volume of another kind."
        )
    if code:
        raise OSError(code, os.strerror(code))


def _translate(error: OSError, path: Path) -> StoreError:
    if error.errno in _FULL:
        return StoreFull(f"No space is left for {path}. Free some, or enlarge the volume.")
    if error.errno in _DENIED:
        return AccessDenied(f"No right to use {path}: {error.strerror}. Change its owner or its mode.")
    if error.errno == errno.ENOENT:
        return BucketMissing(f"The folder {path} does not exist. Create it, or correct the path.")
    return StoreError(f"The filesystem failed at {path}: {error.strerror}.")


def _is_same(path: Path, target: Path) -> bool:
    try:
        return path.samefile(target)
    except OSError:
        return False


def _remove_unlocked(path: Path) -> None:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:  # a filesystem without locks
            pass
        path.unlink()
