"""Restores a backup, or a plain snapshot of anybody, into the data directory of one member.

Promises:
- the data directory appears under its name only when it is complete, and never replaces one with data;
- the snapshot is checked while it is fetched, and `etcdutl` runs only on one that passed;
- an error leaves nothing; what a killed process left is removed by the next restore to the same directory;
- with a marker beside it, a data directory is recognized as that of this very member of this very cluster;
- nobody else may read what is restored: it contains all keys and values.

Everything is prepared beside the data directory, in a folder that is removed at the end.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from etcd_operator.archive.errors import ProgramFailed, RestoreError
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.programs import Etcdutl, last_line, started, time_limit
from etcd_operator.archive.restorable import Restorable, Snapshot
from etcd_operator.archive.streams import OnProgress, ignore_progress
from etcd_operator.storage.partial import sync_folder

_POLL_SECONDS = 0.2
_LOG_SIZE = 64 << 20
"""Bytes of etcd's log, which etcdutl allocates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMember:
    """The member that starts on the data."""

    name: str
    initial_cluster: dict[str, tuple[str, ...]]  # peer URLs by name, the same for all members
    token: str  # the same for all members
    # How much higher the revisions of the new cluster are. By this, clients that have seen later revisions
    # than the backup has learn that they have to read everything again.
    revision_bump: int


def restore(  # noqa: PLR0913 -- what, where, for whom, with what
    source: Restorable,
    data_dir: Path,
    member: NewMember,
    keys: KeyRing,
    tool: Etcdutl,
    *,
    scratch: Path | None = None,
    writes_marker: bool = False,
    on_stage: Callable[[str], None] = lambda _verb: None,
    on_progress: OnProgress = ignore_progress,
) -> Snapshot:
    """Restore `source` to `data_dir`, which does not exist or is empty; what was restored.

    scratch: a folder for the snapshot until it is restored; None for a place beside the data directory.
    writes_marker: write whose data it is beside the data directory, for `is_restored`.
    on_stage: called with what begins, `fetching` and `restoring`. on_progress: with the bytes of the snapshot
    that have arrived, then with those of the new database.
    Raises `RestoreError`, `Damaged`, `WrongKey`, `ProgramFailed`, and the store's errors.
    """
    target = data_dir.resolve()
    require_absent(target)
    try:
        with _scratch(target) as folder, _space_for_snapshot(folder, scratch) as place:
            _check_space(target.parent, source.size * (1 if scratch else 2) + _LOG_SIZE)
            _check_space(place, source.size)
            file, made = place / "snapshot.db", folder / "data"
            on_stage("fetching")
            found = source.save(file, keys, on_progress=on_progress)
            tool.require(found.etcd_version)
            on_stage("restoring")
            _run_tool(folder, file, made, member, found, tool, on_progress)
            file.unlink()
            _sync(made)
            require_absent(target)
            if writes_marker:
                _write_marker(target, member)
            made.rename(target)  # replaces an empty folder, and nothing else
            sync_folder(target.parent)
    except OSError as error:
        raise RestoreError(f"cannot restore to {target}: {error.strerror or error}") from error
    return found


def require_absent(data_dir: Path) -> None:
    """Raise `RestoreError` unless the data directory is missing or empty, and can be replaced."""
    if data_dir.is_mount():
        raise RestoreError(f"{data_dir} is a mount point: pass a folder in it as --data-dir")
    if is_filled(data_dir):
        raise RestoreError(f"{data_dir} exists already, and is not empty: pass another --data-dir")


def is_filled(data_dir: Path) -> bool:
    """Whether something is in the way of a new data directory. Raises `RestoreError`."""
    try:
        return os.path.lexists(data_dir) and (not data_dir.is_dir() or any(data_dir.iterdir()))
    except OSError as error:
        raise RestoreError(f"cannot read {data_dir}: {error.strerror}") from error


def is_restored(data_dir: Path, member: NewMember) -> bool:
    """Whether `data_dir` was restored, with a marker, for this member of this cluster.

    Raises `RestoreError` if it has other data, which nothing may be started on.
    """
    target = data_dir.resolve()
    if not is_filled(target):
        return False
    try:
        if _marker_of(target).read_text(errors="replace") == _marker_text(member):
            return True
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RestoreError(f"cannot read {_marker_of(target)}: {error.strerror}") from error
    raise RestoreError(
        f"the volume was not empty: {data_dir} has data that this restore has not written; that data is left "
        "unchanged: use another volume, or empty this one"
    )


def _write_marker(target: Path, member: NewMember) -> None:
    """Write and sync the marker while there is no data yet: data that was there before never gets one."""
    with _marker_of(target).open("w") as file:
        file.write(_marker_text(member))
        file.flush()
        os.fsync(file.fileno())
    sync_folder(target.parent)


def _marker_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.restored")


def _marker_text(member: NewMember) -> str:
    return f"{member.token} {member.name}\n"


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """An empty folder beside `target` for this process only, removed at the end.

    Its name is always the same, so that what a killed process left does not fill the disk.
    """
    folder = target.with_name(f".{target.name}.restoring")
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise RestoreError(f"{folder} was not made by a restore of this user: delete it")
        os.fchmod(descriptor, 0o700)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RestoreError(f"another process restores to {target} now: wait for it") from None
        try:
            _empty(folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


@contextmanager
def _space_for_snapshot(folder: Path, scratch: Path | None) -> Iterator[Path]:
    if scratch is None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="etcd-restore-", dir=scratch) as place:
        yield Path(place)


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise RestoreError(
            f"a restore needs {(needed >> 20) + 1} MiB in {folder}, which has {free >> 20} MiB free: "
            "free some space"
        )


def _run_tool(
    folder: Path,
    file: Path,
    made: Path,
    member: NewMember,
    found: Snapshot,
    tool: Etcdutl,
    on_progress: OnProgress,
) -> None:
    """Run `etcdutl snapshot restore`. It is ended when it has written nothing for as long as all may take."""
    log, database, limit = folder / "log", made / "member" / "snap" / "db", time_limit(found.size)
    with started(_command(file, made, member, tool), folder=folder, log=log) as process:
        code = _await(process, lambda: _size_of(database), limit, on_progress)
    if code is None:
        raise ProgramFailed(f"etcdutl made no progress for {limit:g} s")
    if code != 0:
        raise ProgramFailed(f"etcdutl {tool.version} cannot restore the snapshot: {last_line(log)}")


def _await(
    process: subprocess.Popen[bytes], size: Callable[[], int], limit: float, on_progress: OnProgress
) -> int | None:
    """The exit code of a process; None if `size` has not changed for `limit` seconds."""
    last, silent = -1, 0.0
    while silent < limit:
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            now = size()
            silent = silent + _POLL_SECONDS if now == last else 0.0
            last = now
            on_progress(now)
    return None


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _command(file: Path, made: Path, member: NewMember, tool: Etcdutl) -> list[str]:
    peers = (f"{name}={url}" for name, urls in member.initial_cluster.items() for url in urls)
    flags = {
        "data-dir": str(made),
        "name": member.name,
        "initial-cluster": ",".join(peers),
        "initial-cluster-token": member.token,
        "initial-advertise-peer-urls": ",".join(member.initial_cluster[member.name]),
        "bump-revision": str(member.revision_bump),
    }
    # etcd's hash was checked while the file was written: etcdutl would read all of it once more for that.
    command = [str(tool.path), "snapshot", "restore", str(file), "--mark-compacted", "--skip-hash-check"]
    return [*command, *(f"--{flag}={value}" for flag, value in flags.items())]


def _sync(folder: Path) -> None:
    """Make everything in the folder durable, before its name is."""
    for where, _, files in os.walk(folder):
        for file in files:
            descriptor = os.open(Path(where, file), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(where))
