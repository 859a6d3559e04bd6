"""Builds the programs of the cluster from pinned sources.

Promises: a second build does nothing; a program is complete if it is there (built aside, then renamed); a
change of a go.mod, go.sum or build flag builds again. Progress is one line every few seconds.

The sources are the Go modules in `go/`, one per program and version, whose `tool` directives name what to
build.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .commands import CommandError
from .console import progress
from .paths import GO_MODULES, Cache
from .requirements import Go, go_environment, require_go

ETCD_VERSIONS = ("3.5.34", "3.5.35", "3.6.16", "3.7.3")
CLUSTER_ETCD = "3.6.16"
KUBERNETES_VERSION = "1.36.3"
CONTAINERD_VERSION = "2.4.2"
COREDNS_VERSION = "1.14.7"
VERSITYGW_VERSION = "1.8.0"
FAKE_GCS_SERVER_VERSION = "1.56.1"

KUBERNETES = f"kubernetes-{KUBERNETES_VERSION}"
CONTAINERD = f"containerd-{CONTAINERD_VERSION}"
COREDNS = f"coredns-{COREDNS_VERSION}"
VERSITYGW = f"versitygw-{VERSITYGW_VERSION}"
FAKE_GCS_SERVER = f"fake-gcs-server-{FAKE_GCS_SERVER_VERSION}"

_PROGRESS_SECONDS = 10.0
_SILENT_SECONDS = 1500.0
_STAMP = ".built-from"
_VERSION_PACKAGE = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What one Go module gives: `folder` in the cache, `programs` in that folder."""

    module: str
    folder: str
    programs: tuple[str, ...]
    tags: str = ""
    ldflags: str = "-s -w"

    @property
    def source(self) -> Path:
        """The folder with the go.mod."""
        return GO_MODULES / self.module

    def stamp(self) -> str:
        """Digest of everything that decides what is built."""
        parts = [repr(self).encode(), *((self.source / name).read_bytes() for name in ("go.mod", "go.sum"))]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _etcd(version: str) -> Tool:
    return Tool(module=f"etcd-{version}", folder=f"etcd-{version}", programs=("etcd", "etcdctl", "etcdutl"))


TOOLS = (
    Tool(
        module="kubernetes",
        folder=KUBERNETES,
        programs=(
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kube-proxy",
            "kubelet",
            "kubectl",
        ),
        # The API server derives its behaviour from this version.
        ldflags=f"-s -w -X {_VERSION_PACKAGE}.gitVersion=v{KUBERNETES_VERSION}"
        f" -X {_VERSION_PACKAGE}.gitMajor=1 -X {_VERSION_PACKAGE}.gitMinor=36",
    ),
    Tool(
        module="containerd",
        folder=CONTAINERD,
        programs=("containerd", "containerd-shim-runc-v2", "ctr"),
        tags="no_btrfs,no_zfs,no_devmapper",
    ),
    Tool(module="coredns", folder=COREDNS, programs=("coredns",)),
    *(_etcd(version) for version in ETCD_VERSIONS),
)
"""What every cluster needs."""

STORES = (
    Tool(module="versitygw", folder=VERSITYGW, programs=("versitygw",)),
    Tool(module="fake-gcs-server", folder=FAKE_GCS_SERVER, programs=("fake-gcs-server",)),
)
"""Stores for backups, which only some tests need: an S3 gateway and a GCS emulator."""


def is_built(cache: Cache, tool: Tool) -> bool:
    """Return whether the programs are there and made from the present sources."""
    stamp = cache.tools / tool.folder / _STAMP
    return stamp.exists() and stamp.read_text() == tool.stamp()


def build_all(cache: Cache) -> None:
    """Build what every cluster needs and is not there, and refresh the links in the cache's `bin`."""
    build(cache, TOOLS)
    _link(cache)


def build(cache: Cache, tools: Iterable[Tool]) -> None:
    """Build those of the tools that are not there."""
    wanted = [tool for tool in tools if not is_built(cache, tool)]
    if wanted:
        go = require_go(cache)
        for number, tool in enumerate(wanted, start=1):
            _build(cache, go, tool, f"{tool.folder} ({number} of {len(wanted)})")


def _build(cache: Cache, go: Go, tool: Tool, title: str) -> None:
    started = time.monotonic()
    target, new = cache.tools / tool.folder, cache.tools / f"{tool.folder}.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    listing = _go(go, tool, ["list", "-deps", "tool"], f"{title}: modules fetched")
    command = ["build", "-v", "-trimpath", "-mod=readonly", "-tags", tool.tags, "-ldflags", tool.ldflags]
    total = len(listing.splitlines())
    _go(go, tool, [*command, "-o", f"{new}/", "tool"], f"{title}: of {total} packages compiled")
    if (new / "server").exists():  # etcd's main package is called so
        (new / "server").rename(new / "etcd")
    absent = [program for program in tool.programs if not (new / program).exists()]
    if absent:
        raise CommandError(f"building {tool.folder} did not make {', '.join(absent)}")
    (new / _STAMP).write_text(tool.stamp())
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)
    progress(f"{title}: built in {time.monotonic() - started:.0f} s")


def _go(go: Go, tool: Tool, arguments: list[str], title: str) -> str:
    """Run Go, count the lines it prints on stderr as progress, and return its stdout."""
    answer: list[str] = []
    complaints: list[str] = []
    with subprocess.Popen(
        [str(go.program), *arguments],
        cwd=tool.source,
        env=go_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        readers = [
            threading.Thread(target=answer.extend, args=(process.stdout,), daemon=True),
            threading.Thread(target=complaints.extend, args=(process.stderr,), daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            code = _await_end(process, complaints, title)
        except BaseException:  # Ctrl-C does not reach another process group by itself
            _kill_group(process)
            raise
        finally:
            for reader in readers:
                reader.join()
    if code != 0:
        last = " / ".join(line.strip() for line in complaints[-3:])
        raise CommandError(f"{title}: go {arguments[0]} failed: {last[-600:]}")
    return "".join(answer)


def _await_end(process: subprocess.Popen[str], lines: list[str], title: str) -> int:
    """Report progress every few seconds (linking prints nothing for a minute); end what makes none.

    Not a build that is slow: on a busy machine, all packages of Kubernetes take more than half an hour.
    """
    count, end = 0, time.monotonic() + _SILENT_SECONDS
    while True:
        try:
            return process.wait(timeout=_PROGRESS_SECONDS)
        except subprocess.TimeoutExpired:
            progress(f"{title}: {len(lines)}")
            if len(lines) > count:
                count, end = len(lines), time.monotonic() + _SILENT_SECONDS
            elif time.monotonic() > end:
                _kill_group(process)


def _kill_group(process: subprocess.Popen[str]) -> None:
    """End Go with the compilers that it started: they hold its pipes open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _link(cache: Cache) -> None:
    """Keep `bin/kubectl` and friends at paths that do not change with versions."""
    cache.bin.mkdir(parents=True, exist_ok=True)
    etcd = f"etcd-{CLUSTER_ETCD}"
    links = {"kubectl": KUBERNETES, "ctr": CONTAINERD, "etcd": etcd, "etcdctl": etcd, "etcdutl": etcd}
    for program, folder in links.items():
        link, target = cache.bin / program, Path("..") / "tools" / folder / program
        if not (link.is_symlink() and link.readlink() == target):
            new = link.with_name(f".{program}.new")
            new.unlink(missing_ok=True)
            new.symlink_to(target)
            new.replace(link)
