"""A private mount namespace for all processes of an instance.

Kubernetes components write to fixed places of the machine: the hostpath provisioner to `/tmp/hostpath_pv`,
kubelet to `/var/log/containers` and to kernel settings, CNI to `/var/lib/cni`, containerd's shims to
`/run/containerd`. In the private namespace the instance's own folders lie over those places, so the machine
keeps its own, two instances do not meet, and every mount that kubelet and containerd make vanishes with the
last process.

The namespace is held by one recorded process; the others enter it through `/proc/PID/ns/mnt`.
"""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

from .commands import CommandError, run, wait_for
from .paths import State
from .processes import Daemon, Identity, ProcessTable

HOLDER = "mounts"

# Where the instance's folders below `State.private` are seen.
PLACES = {
    "/tmp/hostpath_pv": "volumes",  # noqa: S108 - the path is fixed in the hostpath provisioner
    "/var/log/containers": "container-logs",
    "/var/lib/cni": "cni",
    "/run/containerd": "containerd",
}

# kubelet sets these at start unless they already read so (kubelet's container manager, setupKernelTunables).
# They are settings of the whole machine: kubelet reads these copies instead and is content.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}


def ensure_holder(state: State, table: ProcessTable) -> Identity:
    """Return the process that holds the namespace, started now if it is not there."""
    binds = _prepare(state)
    ready = state.private / "ready"
    script = "\n".join(
        (
            "set -e",
            *(f"mount --bind {shlex.quote(str(source))} {shlex.quote(target)}" for source, target in binds),
            f"touch {shlex.quote(str(ready))}",
            "exec sleep infinity",
        )
    )
    unshare = ("unshare", "--mount", "--propagation", "slave", "--", "/bin/sh", "-c", script)
    daemon = Daemon(name=HOLDER, command=unshare)
    if not (table.find(HOLDER) and ready.exists()):
        ready.unlink(missing_ok=True)
        table.stop([HOLDER])
        table.ensure(daemon)
    wait_for("the private mount namespace", ready.exists, deadline=10, hint=f"see {table.log(HOLDER)}")
    holder = table.find(HOLDER)
    if holder is None:
        raise CommandError(f"the private mount namespace ended at once; see {table.log(HOLDER)}")
    return holder


def release_places() -> None:
    """Remove the empty folders that served as mount points, unless another instance uses them."""
    in_use = _mount_points_of_all_processes()
    for place in PLACES:
        if place not in in_use:  # removing a mount point detaches it in every namespace
            with contextlib.suppress(OSError):
                Path(place).rmdir()


def unmount_below(folder: Path) -> None:
    """Unmount everything below a folder in the machine's own namespace, deepest first."""
    for point in sorted(mount_points(Path("/proc/self/mountinfo").read_text()), reverse=True):
        if point.startswith(f"{folder}/"):
            run(["umount", "--lazy", point])


def mount_points(mountinfo: str) -> set[str]:
    """Return the mount points that the text of a `mountinfo` file names."""
    points = (line.split(" ")[4] for line in mountinfo.splitlines() if line.count(" ") > 4)
    return {point.encode().decode("unicode_escape") for point in points}


def _prepare(state: State) -> list[tuple[Path, str]]:
    binds = []
    for place, folder in PLACES.items():
        source = state.private / folder
        source.mkdir(parents=True, exist_ok=True)
        Path(place).mkdir(parents=True, exist_ok=True)
        binds.append((source, place))
    for setting, value in KERNEL_SETTINGS.items():
        target = Path("/proc/sys") / setting
        if target.exists():
            source = state.private / "kernel" / setting.replace("/", ".")
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text(f"{value}\n")
            binds.append((source, str(target)))
    return binds


def _mount_points_of_all_processes() -> set[str]:
    points: set[str] = set()
    for file in Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            points |= mount_points(file.read_text())
    return points
