"""What a backup costs beside `etcdctl snapshot save`: time, memory, and what clients notice.

Both write the same database of one local etcd to the same disk, in turn, so that whatever else the machine
does hits both. The operator's time includes the start of Python.
"""

import base64
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from benchmark.member import Member, member, tool
from benchmark.verdict import Verdict, spread
from e2e.support.intervals import Interval
from e2e.support.steady import SteadyWriter
from workflow.entry import ROOT

MIB = 1 << 20

SIZES = {"2MiB": 2 * MIB, "200MiB": 200 * MIB, "2GiB": 2048 * MIB}
SMALLEST, *_, LARGEST = SIZES
"""The smallest is stored before Python has started: only its memory is of interest."""

TIME_RATIO = 1.25
"""80 % of etcdctl's speed."""

MEMORY_MIB = 64
"""The largest database above the smallest one."""

REST_SECONDS = 10.0
POLL_SECONDS = 0.02

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One process: how long it took, its own CPU time, its largest resident size, what it stored (MiB)."""

    seconds: float
    cpu: float
    memory: float
    stored: float


@dataclass(frozen=True, kw_only=True)
class Felt:
    """What a client with 100 puts per second noticed, in seconds."""

    gap: float
    p99: float
    failed: int

    def text(self) -> str:
        """For a note."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"longest gap {1000 * self.gap:.0f} ms, p99 {1000 * self.p99:.0f} ms{failed}"


@dataclass(frozen=True)
class Way:
    """One way to make a backup of a member as a file."""

    name: str
    command: Callable[[Member, Path], list[str]]


def etcdctl(etcd: Member, target: Path) -> list[str]:
    """The command of etcd's own client."""
    return [str(tool("etcdctl")), f"--endpoints={etcd.endpoint}", "snapshot", "save", str(target)]


def operator(*flags: str) -> Callable[[Member, Path], list[str]]:
    """The command of ours, into a folder as a store."""

    def command(etcd: Member, target: Path) -> list[str]:
        words = [sys.executable, "-m", "etcd_operator", "backup", "--endpoints", etcd.endpoint]
        return [*words, "--to", str(target), *flags]

    return command


PLAIN = "operator"
BY_HAND = "etcdctl"
ENCRYPTED = "operator, zstd and AES-256-GCM"


@dataclass(slots=True)
class Backups:
    """The measurements of one invocation; memory is compared between its databases."""

    folder: Path
    peaks: dict[tuple[str, str], float] = field(default_factory=dict)

    def measure(self, name: str, runs: int, progress: Progress) -> Iterator[Verdict]:
        """All figures of one size."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder, member(Path(folder)) as etcd:
            progress(f"{name}: filling the database")
            etcd.fill(SIZES[name], progress)
            found = self._in_turn(etcd, name, runs, progress)
            yield from _speed(name, found)
            yield from self._memory(name, found)
            if name != SMALLEST:
                yield from _felt(etcd, name, self._ways(), runs, progress)

    def _ways(self) -> tuple[Way, ...]:
        key = self.folder / "key"
        key.write_bytes(base64.b64encode(bytes(range(32))))
        return (
            Way(BY_HAND, etcdctl),
            Way(PLAIN, operator()),
            Way(ENCRYPTED, operator("--compress", "--encryption-keys", str(key))),
        )

    def _in_turn(self, etcd: Member, name: str, runs: int, progress: Progress) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {way.name: [] for way in self._ways()}
        for number in range(runs):
            for way in self._ways():
                run = once(way, etcd)
                found[way.name].append(run)
                progress(
                    f"{name} run {number + 1}, {way.name}: {run.seconds:.2f} s, CPU {run.cpu:.2f} s, "
                    f"{run.memory:.0f} MiB resident, {run.stored:.0f} MiB stored"
                )
        return found

    def _memory(self, name: str, found: dict[str, list[Run]]) -> Iterator[Verdict]:
        for way, runs in found.items():
            peak = max(run.memory for run in runs)
            self.peaks[way, name] = peak
            yield Verdict(name=f"{name}: largest resident size, {way}", value=peak, unit="MiB")
            if way != BY_HAND and name == LARGEST and (way, SMALLEST) in self.peaks:
                yield Verdict(
                    name=f"{name}: largest resident size above that for {SMALLEST}, {way}",
                    value=max(0.0, peak - self.peaks[way, SMALLEST]),
                    unit="MiB",
                    at_most=MEMORY_MIB,
                )


@contextmanager
def backups() -> Iterator[Backups]:
    """The measurements, on the disk of the folder for temporary files; they need some 8 GiB there."""
    with tempfile.TemporaryDirectory(prefix="etcd-operator-bench-") as folder:
        yield Backups(Path(folder))


def once(way: Way, etcd: Member) -> Run:
    """Make one backup, and delete it."""
    with tempfile.TemporaryDirectory(dir=etcd.folder) as folder:
        target = Path(folder) / "snapshot.db"
        os.sync()  # what the run before has written is not this one's
        began = time.monotonic()
        cpu, memory = _watched(way.command(etcd, target), etcd.folder / "compiled")
        seconds = time.monotonic() - began
        return Run(seconds=seconds, cpu=cpu, memory=memory, stored=target.stat().st_size / MIB)


def _watched(command: Sequence[str], compiled: Path) -> tuple[float, float]:
    """Run a process; its CPU seconds and largest resident size.

    The size is read while it runs: what the kernel reports at the end includes the process that started it.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=_environment(compiled))
        memory = 0.0
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            memory = max(memory, _largest(process.pid))
            time.sleep(POLL_SECONDS)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise RuntimeError(f"{' '.join(command)} failed: {output.read().decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime, memory


def _environment(compiled: Path) -> dict[str, str]:
    """The operator of this tree, not one that may be installed; the first run compiles it, as pip does."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(compiled)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _largest(pid: int) -> float:
    """The largest resident size of a process so far, in MiB; 0 if it has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    sizes = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(next(sizes, "0")) / 1024


def _speed(name: str, found: dict[str, list[Run]]) -> Iterator[Verdict]:
    by_hand = median(run.seconds for run in found[BY_HAND])
    for way, runs in found.items():
        seconds = [run.seconds for run in runs]
        rate = found[BY_HAND][0].stored / median(seconds)
        note = f"{rate:.0f} MiB/s, CPU {median(run.cpu for run in runs):.1f} s; {spread(seconds)}"
        yield Verdict(name=f"{name}: time, {way}, median", value=median(seconds), unit="s", note=note)
    ratio = median(run.seconds for run in found[PLAIN]) / by_hand
    yield Verdict(
        name=f"{name}: time of the operator / etcdctl",
        value=ratio,
        at_most=None if name == SMALLEST else TIME_RATIO,
        note=f"{100 / ratio:.0f} % of its speed",
    )


def _felt(etcd: Member, name: str, ways: Sequence[Way], runs: int, progress: Progress) -> Iterator[Verdict]:
    """What clients notice at rest and during each way, in turn."""
    acts: dict[str, Callable[[], object]] = {"at rest": partial(time.sleep, REST_SECONDS)}
    acts |= {f"during {way.name}": partial(once, way, etcd) for way in ways}
    felt: dict[str, list[Felt]] = {when: [] for when in acts}
    for _ in range(runs):
        for when, act in acts.items():
            felt[when].append(felt_during(etcd, act))
            progress(f"{name}, 100 puts per second {when}: {felt[when][-1].text()}")
    for when, noticed in felt.items():
        yield Verdict(
            name=f"{name}: longest write gap {when}, median",
            value=median(each.gap for each in noticed),
            unit="s",
            note="; ".join(each.text() for each in noticed),
        )


def felt_during(etcd: Member, act: Callable[[], object]) -> Felt:
    """What a client with 100 puts per second notices while `act` runs."""
    with SteadyWriter(lambda: [etcd.address]) as writer:
        time.sleep(1.0)
        start = time.monotonic()
        act()
        during = Interval(start, time.monotonic())
        time.sleep(1.0)
    latencies = writer.latencies(during)
    p99 = quantiles(latencies, n=100)[98] if len(latencies) > 1 else max(latencies, default=0.0)
    return Felt(gap=writer.longest_gap(during), p99=p99, failed=writer.failures(during).total())
