"""The operator's log: kept while pods come and go, and searched for what it must never have.

A pod's log is deleted with the pod, so each one is followed from its start into a file. Lines that were
followed twice (after a cut connection) count once: they carry a time of microseconds.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from localcluster.kubectl import Kubectl

BUGS = frozenset(
    {
        "reconcile_panicked",
        "thread_crashed",
        "handler_crashed",
        "informer_crashed",
        "probe_crashed",
        "threads_left",
        "controller_not_stopped",
    }
)
"""Events of engine, kube and reconcile that report a bug, also without a traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What a log has: lines that report bugs, and how often each event above INFO came."""

    lines: int
    bugs: tuple[str, ...]
    events: tuple[tuple[str, int], ...]


def scan(lines: Iterable[str]) -> Scan:
    """Search the lines of structured logs; what is not JSON is a bug if it is a traceback."""
    bugs: list[str] = []
    events: Counter[str] = Counter()
    distinct = dict.fromkeys(line.strip() for line in lines if line.strip())
    for line in distinct:
        entry = _parsed(line)
        if entry is None:
            if "Traceback" in line:
                bugs.append(line)
            continue
        level, event = str(entry.get("level", "")), str(entry.get("event", ""))
        if event in BUGS or level == "critical" or "exception" in entry or "Traceback" in line:
            bugs.append(line)
        if level not in ("info", "debug"):
            events[f"{level}: {event}"] += 1
    return Scan(lines=len(distinct), bugs=tuple(bugs), events=tuple(events.most_common()))


def _parsed(line: str) -> dict[str, object] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


class Follower:
    """Follows the logs of pods into files, one for each try; `lines` has them all."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        self._kubectl = kubectl
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._tries = 0

    def follow(self, incarnations: Iterable[tuple[str, str]]) -> None:
        """Follow each `(pod, incarnation)` that is not followed yet, or no longer."""
        for pod, incarnation in incarnations:
            process = self._running.get(incarnation)
            if process is None or process.poll() is not None:
                self._running[incarnation] = self._start(pod)

    def save(self, pod: str, text: str) -> None:
        """Keep a log that was read by other means."""
        self._file(pod).write_text(text)

    def stop(self) -> None:
        """End all followers."""
        for process in self._running.values():
            process.kill()
            process.wait(10)

    def lines(self) -> Iterable[str]:
        """All lines so far."""
        for path in sorted(self._folder.glob("*.log")):
            yield from path.read_text(errors="replace").splitlines()

    def _start(self, pod: str) -> subprocess.Popen[bytes]:
        with self._file(pod).open("wb") as file:
            # In a session of its own: the Ctrl-C that ends the run must not end the log before it.
            return subprocess.Popen(
                self._kubectl.command("logs", "--follow", pod),
                stdout=file,
                stderr=subprocess.DEVNULL,
                env=self._kubectl.environment(),
                start_new_session=True,
            )

    def _file(self, pod: str) -> Path:
        self._tries += 1
        return self._folder / f"{self._tries:04}-{pod}.log"
