"""The programs of etcd that restore a snapshot, and how they are run."""

import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from etcd_operator.archive.errors import ProgramFailed, ProgramMissing

_VERSION = re.compile(r"version: ([0-9]+)\.([0-9]+)\.([0-9]+)", re.IGNORECASE)
_ANSWER_SECONDS = 30.0
_FOLDER_OF_IMAGE = "usr/local/bin"
"""Of the programs, in etcd's images."""

_PAUSE_SECONDS = 0.2
"""Between two looks for the programs of another container."""

_FIRST = (3, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """etcd and etcdutl of the same minor version."""

    etcd: Path
    etcdutl: Path
    version: str

    @property
    def hashes_files(self) -> bool:
        """Whether this etcdutl can compute a HashKV from a file (3.6 and later)."""
        return _minor(self.version) >= (3, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Etcdutl:
    """etcdutl, which restores snapshots."""

    path: Path
    version: str

    def require(self, etcd_version: str) -> None:
        """Raise `ProgramMissing` unless it can restore a snapshot of `etcd_version` (empty: unknown).

        Older versions than `_FIRST` cannot raise the revisions of a snapshot.
        """
        needed = _minor(etcd_version) if etcd_version else (0, 0)
        if _minor(self.version) >= needed and tuple(map(int, self.version.split("."))) >= _FIRST:
            return
        of = f"etcd {etcd_version}" if etcd_version else "an unknown version"
        least = ".".join(map(str, max(needed, _FIRST)))
        raise ProgramMissing(
            f"{self.path} is {self.version}, and the snapshot is of {of}: "
            f"pass --etcd-bin DIR with etcdutl {least} or newer"
        )


def find_tool(folder: Path | None) -> Etcdutl:
    """The etcdutl in `folder`, or on the PATH. Raises `ProgramMissing`."""
    path = _find(folder, "etcdutl", "the one of etcd's release")
    return Etcdutl(path=path, version=_version(path, "version"))


def time_limit(size: int) -> float:
    """Seconds for each step with a database of `size` bytes: a minute, and 10 MB/s."""
    return 60.0 + size / 10e6


def find(folder: Path | None, etcd_version: str) -> Programs:
    """The programs in `folder`, or on the PATH; their minor version is that of `etcd_version` or newer.

    Raises `ProgramMissing`.
    """
    needed = ".".join(map(str, max(_minor(etcd_version), (3, 5))))
    etcd, etcdutl = (
        _find(folder, name, f"etcd and etcdutl {needed} or newer") for name in ("etcd", "etcdutl")
    )
    version, tool_version = _version(etcd, "--version"), _version(etcdutl, "version")
    if _minor(version) != _minor(tool_version):
        raise ProgramMissing(
            f"{etcd} is {version}, {etcdutl} is {tool_version}: pass --etcd-bin DIR with both of one version"
        )
    if _minor(version) < _minor(needed):
        raise ProgramMissing(
            f"{etcd} is {version}, and the backup is of etcd {etcd_version}: "
            f"pass --etcd-bin DIR with etcd and etcdutl {needed} or newer"
        )
    return Programs(etcd=etcd, etcdutl=etcdutl, version=version)


def folder_in_pod(
    processes: Path = Path("/proc"), *, pause: Callable[[float], None] = time.sleep, patience: float = 60.0
) -> Path:
    """The folder with etcd and etcdutl in another container of this pod, which shares its processes.

    The kernel permits it to the user of that container, if neither has capabilities. The kubelet starts a
    container that has ended again after 10 seconds or more: it is waited for. Raises `ProgramMissing` after
    `patience` seconds.
    """
    end = time.monotonic() + patience
    while (folder := _folder_now(processes)) is None:
        if time.monotonic() >= end:
            raise ProgramMissing(
                f"no container of this pod has /{_FOLDER_OF_IMAGE}/etcd and etcdutl, or this container may "
                "not see them"
            )
        pause(_PAUSE_SECONDS)
    return folder


def _folder_now(processes: Path) -> Path | None:
    for process in sorted(processes.glob("[0-9]*")):
        folder = process / "root" / _FOLDER_OF_IMAGE
        with suppress(OSError):  # the process of another user, or one that has ended
            if all((folder / name).is_file() for name in ("etcd", "etcdutl")):
                return folder
    return None


def run(command: list[str], *, folder: Path, log: Path, limit: float) -> str:
    """Run a program to its end in `folder`; its standard output.

    Raises `ProgramFailed` if it fails or takes more than `limit` seconds.
    """
    with started(command, folder=folder, log=log) as process:
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise ProgramFailed(f"{Path(command[0]).name} did not end within {limit:g} s") from None
    if code != 0:
        raise ProgramFailed(f"{Path(command[0]).name} failed: {last_line(log)}")
    return log.read_text(errors="replace")


@contextmanager
def started(command: list[str], *, folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in `folder`, its output in `log`; it is killed and reaped at the end of the context.

    It gets nothing of our environment, which may have ETCD_* variables, and no signals of our terminal.
    """
    with ExitStack() as stack:
        with _signals_held_back():
            with log.open("wb") as output:
                process = subprocess.Popen(  # noqa: S603 -- our own command line
                    command,
                    cwd=folder,
                    env={"HOME": str(folder)},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield process


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Handle signals at the end of the context: handlers may raise, which would leave a program running.

    Handlers run in the main thread only, whichever thread the kernel interrupts, so no mask would do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    come: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.signal(number, lambda number, _: come.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for received in come:
            signal.raise_signal(received)


def last_line(log: Path) -> str:
    """The last line of a program's output, at most 300 characters."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "no output"


def _find(folder: Path | None, name: str, wanted: str) -> Path:
    found = shutil.which(name, path=str(folder) if folder is not None else None)
    if found is None:
        where = f"in {folder}" if folder is not None else "on the PATH"
        raise ProgramMissing(f"no {name} {where}: pass --etcd-bin DIR with {wanted}")
    # Not `resolve`: the root of another container would become our own.
    return Path(found).absolute()


def _version(program: Path, argument: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 -- found above
            [program, argument], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramMissing(f"{program} does not run: {error}") from error
    match = _VERSION.search(done.stdout)
    if match is None:
        raise ProgramMissing(f"{program} {argument} does not print a version: is it etcd's?")
    return ".".join(match.groups())


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
