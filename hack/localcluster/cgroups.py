"""The cgroups of an instance: where its pods live, and how its processes are found again.

Every process of an instance is started inside its cgroup and everything that it starts in turn (containerd's
shims, containers) remains below the instance's folder. So the folder is a complete list of the instance's
processes, kept by the kernel: tear-down needs no names, no parent relations and no trust in old records.

Promises: works on cgroup v1 (all hierarchies), v2 and the hybrid of both; `remove` may be repeated.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .console import RefusalError

_V2_CONTROLLERS = ("cpu", "cpuset", "io", "memory", "pids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """One mounted cgroup hierarchy."""

    root: Path
    is_v2: bool


def hierarchies(mountinfo: str) -> tuple[Hierarchy, ...]:
    """Return the hierarchies that the text of `/proc/self/mountinfo` names."""
    found = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind = right.split(" ")[0]
        if kind in {"cgroup", "cgroup2"}:
            found.append(Hierarchy(root=Path(left.split(" ")[4]), is_v2=kind == "cgroup2"))
    return tuple(found)


class Cgroups:
    """The folder `PREFIX` in every hierarchy.

    The pods of a node run in `PREFIX/NODE`, its daemons (and what they start outside of pods) in
    `PREFIX/daemons-NODE`; the control plane's group is called `hub`.
    """

    def __init__(self, prefix: str, mounted: tuple[Hierarchy, ...] | None = None) -> None:
        self._prefix = prefix
        if mounted is None:
            mounted = hierarchies(Path("/proc/self/mountinfo").read_text())
        self._mounted = mounted

    def create(self, group: str) -> None:
        """Make the folders of a node or of the hub in every hierarchy, ready to take processes."""
        if not self._mounted:
            raise RefusalError("no cgroup hierarchy is mounted: mount cgroup2 on /sys/fs/cgroup")
        for hierarchy in self._mounted:
            top = hierarchy.root / self._prefix
            for folder in (top, top / group, top / f"daemons-{group}"):
                folder.mkdir(exist_ok=True)
                _inherit(hierarchy, folder.parent, folder)

    def procs_file(self, group: str) -> Path:
        """Return the file that a daemon writes its pid to before it becomes itself."""
        return self._tracking().root / self._prefix / f"daemons-{group}" / "cgroup.procs"

    def cgroup_root(self, node: str) -> str:
        """Return kubelet's `cgroupRoot` for a node."""
        return f"/{self._prefix}/{node}"

    def pids(self) -> set[int]:
        """Return all processes of the instance."""
        return _pids_below(self._tracking().root / self._prefix) if self._mounted else set()

    def remove_group(self, group: str) -> None:
        """Kill the daemons and the pods of a node (daemons first) and remove its folders."""
        self._remove(f"daemons-{group}")
        self._remove(group)

    def remove(self) -> None:
        """Kill every process of the instance and remove all folders."""
        self._remove("")

    def _remove(self, name: str, *, deadline: float = 20.0) -> None:
        end = time.monotonic() + deadline
        while not self._is_removed(name):
            if time.monotonic() > end:
                left = sorted(self.pids())[:5]
                raise RefusalError(f"cgroup {self._prefix} could not be emptied, pids {left}: run down again")
            time.sleep(0.02)

    def _is_removed(self, name: str) -> bool:
        is_gone = True
        for hierarchy in self._mounted:
            top = hierarchy.root / self._prefix / name
            if not top.is_dir():
                continue
            for pid in _pids_below(top):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for folder in _deepest_first(top):
                with contextlib.suppress(OSError):  # busy until the killed processes have ended
                    folder.rmdir()
            is_gone = is_gone and not top.exists()
        return is_gone

    def _tracking(self) -> Hierarchy:
        """Choose the hierarchy that lists processes: `pids` of v1 if there is one, else v2."""
        for hierarchy in self._mounted:
            if not hierarchy.is_v2 and "pids" in hierarchy.root.name.split(","):
                return hierarchy
        for hierarchy in self._mounted:
            if hierarchy.is_v2:
                return hierarchy
        raise RefusalError("neither cgroup2 nor the cgroup v1 controller 'pids' is mounted")


def _inherit(hierarchy: Hierarchy, parent: Path, folder: Path) -> None:
    """Give a fresh folder what it needs: v1 cpusets start empty, v2 controllers start off."""
    if hierarchy.is_v2:
        available = _read(parent / "cgroup.controllers").split()
        for controller in _V2_CONTROLLERS:
            if controller in available:
                with contextlib.suppress(OSError):
                    (parent / "cgroup.subtree_control").write_text(f"+{controller}")
        return
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (folder / file).exists() and not _read(folder / file).strip():
            (folder / file).write_text(_read(parent / file))


def _pids_below(folder: Path) -> set[int]:
    return {int(pid) for child in _deepest_first(folder) for pid in _read(child / "cgroup.procs").split()}


def _deepest_first(folder: Path) -> Iterator[Path]:
    for path, _, _ in os.walk(folder, topdown=False):
        yield Path(path)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""  # the folder went away meanwhile, or (v2) is threaded
