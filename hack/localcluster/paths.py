"""Where files are stored: none of them in the repository.

The cache folder holds what is worth keeping (binaries, images) and is shared by all instances. The state
folder of an instance holds everything else and may be removed as a whole once the instance is down.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .console import progress

REPOSITORY = Path(__file__).resolve().parents[2]
GO_MODULES = Path(__file__).resolve().parent / "go"
FOLDER = "etcd-operator-dev"


def _xdg(variable: str, default: str) -> Path:
    """Return the XDG folder; relative values are ignored, as the specification requires."""
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path.home() / default


@dataclass(frozen=True, slots=True)
class Cache:
    """Binaries, images and build inputs that outlive every instance."""

    root: Path

    @classmethod
    def of_user(cls) -> Cache:
        """Return the cache folder of this user."""
        return cls(_xdg("XDG_CACHE_HOME", ".cache") / FOLDER)

    @property
    def bin(self) -> Path:
        """Folder with stable links to the tools that people call."""
        return self.root / "bin"

    @property
    def tools(self) -> Path:
        """One folder per tool and version."""
        return self.root / "tools"

    @property
    def images(self) -> Path:
        """Image archives."""
        return self.root / "images"

    @contextlib.contextmanager
    def locked(self, what: str) -> Iterator[None]:
        """Hold the lock on a part of the cache, waiting until it is free."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / f"{what}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress(f"waiting for another build of {what}")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def tool(self, folder: str, binary: str) -> Path:
        """Return the path of one binary, such as `("etcd-3.6.16", "etcdctl")`."""
        return self.tools / folder / binary


@dataclass(frozen=True, slots=True)
class State:
    """The folder of one instance."""

    root: Path

    @classmethod
    def of_instance(cls, name: str) -> State:
        """Return the state folder of the named instance of this user."""
        return cls(instances_root() / name)

    @property
    def records(self) -> Path:
        """Who runs: one file per process."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """One log file per process, and the audit log."""
        return self.root / "logs"

    @property
    def certificates(self) -> Path:
        """Keys and certificates."""
        return self.root / "certificates"

    @property
    def config(self) -> Path:
        """Rendered configuration files."""
        return self.root / "config"

    @property
    def private(self) -> Path:
        """Folders that the instance sees at system-wide paths; see `mounts`."""
        return self.root / "private"

    @property
    def volumes(self) -> Path:
        """Folders behind the PersistentVolumes of the class `standard`."""
        return self.private / "volumes"

    @property
    def kubeconfig(self) -> Path:
        """Access as cluster admin."""
        return self.root / "kubeconfig"

    @property
    def slot(self) -> Path:
        """The number that the instance's address ranges are derived from."""
        return self.root / "slot"

    def node(self, name: str) -> Path:
        """Return the folder of one node."""
        return self.root / "nodes" / name


def instances_root() -> Path:
    """Return the folder that holds the state of all instances of this user."""
    return _xdg("XDG_STATE_HOME", ".local/state") / FOLDER
