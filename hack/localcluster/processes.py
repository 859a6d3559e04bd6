"""Long-running processes, detached from the terminal and recorded.

Promises:

- A process is in the record, and in the instance's cgroup, before it becomes the wanted program: a caller
  that is killed in between leaves nothing unknown.
- A record names boot, pid and start time. A process with another start time is another process: a recycled
  pid is never signalled.
- `ensure` starts only what does not run, and restarts what runs with another command line.

Nothing is restarted: a process that ends is started again by the next `up`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .cgroups import Cgroups
from .commands import clean_environment, wait_for

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a process is: a pid alone may belong to another process tomorrow."""

    boot: str
    pid: int
    started: int
    fingerprint: str

    @property
    def is_alive(self) -> bool:
        """Return whether exactly this process runs."""
        if _BOOT_ID.read_text().strip() != self.boot:
            return False
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        _, state, started = parse_stat(stat)
        return started == self.started and state not in "ZX"

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, only if it is still this process."""
        with contextlib.suppress(ProcessLookupError):
            if self.is_alive:
                os.kill(self.pid, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A program to keep running.

    `group` is the cgroup that it starts in, `netns` and `mounts_of` name the namespaces that it enters,
    `reads` is the text of its configuration files.
    """

    name: str
    command: tuple[str, ...]
    group: str = "hub"
    netns: str | None = None
    mounts_of: Identity | None = None
    environment: tuple[tuple[str, str], ...] = ()
    reads: str = ""

    @property
    def fingerprint(self) -> str:
        """Digest of everything that would need a restart if it changed."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    def argv(self) -> list[str]:
        """Return the command line that enters the namespaces; it keeps the pid."""
        flags = []
        if self.netns is not None:
            flags.append(f"--net=/run/netns/{self.netns}")
        if self.mounts_of is not None:
            flags.append(f"--mount=/proc/{self.mounts_of.pid}/ns/mnt")
        return ["nsenter", *flags, "--", *self.command] if flags else list(self.command)


class ProcessTable:
    """The processes of one instance, by name; one record file and one log file each."""

    def __init__(self, *, records: Path, logs: Path, cgroups: Cgroups) -> None:
        self._records = records
        self._logs = logs
        self._cgroups = cgroups

    def names(self) -> list[str]:
        """Return the names of all recorded processes, alive or dead."""
        return sorted(file.stem for file in self._records.glob("*.process"))

    def find(self, name: str) -> Identity | None:
        """Return the process if it runs."""
        identity = read_record(self._record(name))
        return identity if identity is not None and identity.is_alive else None

    def log(self, name: str) -> Path:
        """Return the path of the log of a process."""
        return self._logs / f"{name}.log"

    def ensure(self, daemon: Daemon) -> bool:
        """Make it run as described; return whether it had to be started."""
        running = self.find(daemon.name)
        if running is not None and running.fingerprint == daemon.fingerprint:
            return False
        self.stop([daemon.name])
        self._start(daemon)
        return True

    def stop(self, names: Sequence[str], *, grace: float = 0.0) -> None:
        """End processes: SIGTERM, after `grace` seconds SIGKILL. Unknown and dead ones are fine."""
        running = [found for name in names if (found := self.find(name))]
        if grace:
            for process in running:
                process.signal(signal.SIGTERM)
            end = time.monotonic() + grace
            while any(process.is_alive for process in running) and time.monotonic() < end:
                time.sleep(0.02)
        for process in running:
            process.signal(signal.SIGKILL)
        wait_for(
            f"the end of {', '.join(names)}",
            lambda: not any(process.is_alive for process in running),
            deadline=10,
        )

    def forget(self, name: str) -> None:
        """Drop the record of a process that has been stopped for good."""
        self._record(name).unlink(missing_ok=True)

    def _record(self, name: str) -> Path:
        return self._records / f"{name}.process"

    def _start(self, daemon: Daemon) -> None:
        self._records.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        record = self._record(daemon.name)
        record.unlink(missing_ok=True)
        procs_file = self._cgroups.procs_file(daemon.group)
        script = launch_script(record=record, log=self.log(daemon.name), procs_file=procs_file, daemon=daemon)
        subprocess.run(
            ["setsid", "--fork", "/bin/sh", "-c", script],  # never our child: nothing here would wait for it
            timeout=10,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=clean_environment() | dict(daemon.environment),
            cwd="/",
        )
        wait_for(
            f"the start of {daemon.name}",
            lambda: read_record(record) is not None,
            deadline=10,
            hint=f"see {self.log(daemon.name)}",
        )


def launch_script(*, record: Path, log: Path, procs_file: Path, daemon: Daemon) -> str:
    """Return a shell script that joins the cgroup, writes the record and becomes the program."""
    temporary = shlex.quote(f"{record}.new")
    return "\n".join(
        (
            "set -e",
            f"exec >> {shlex.quote(str(log))} 2>&1",
            f"echo $$ > {shlex.quote(str(procs_file))}",
            f"{{ cat {_BOOT_ID} /proc/$$/stat; echo {daemon.fingerprint}; }} > {temporary}",
            f"mv {temporary} {shlex.quote(str(record))}",
            f"exec {shlex.join(daemon.argv())}",
        )
    )


def read_record(file: Path) -> Identity | None:
    """Return the recorded process; None if there is no record or it was cut short."""
    try:
        boot, stat, fingerprint = file.read_text().splitlines()
        pid, _, started = parse_stat(stat)
    except (OSError, ValueError, IndexError):
        return None
    return Identity(boot=boot, pid=pid, started=started, fingerprint=fingerprint)


def parse_stat(text: str) -> tuple[int, str, int]:
    """Return pid, state and start time (clock ticks since boot) from `/proc/PID/stat`.

    The second field is the command in brackets and may hold blanks and brackets itself: see proc(5).
    """
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return int(head.split(" ", 1)[0]), fields[0], int(fields[19])
