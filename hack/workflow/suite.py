"""The checks of the project, as `hack/test` and CI run them.

Promises: everything that a check needs is made first (virtual environment, Kubernetes, deployed operator);
tests that need real etcd or a real Kubernetes get it, so none is skipped; all chosen checks
run even if one fails; the last lines list what passed and how long each took, and the exit code follows.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from localcluster.console import RefusalError, progress
from localcluster.paths import REPOSITORY, Cache

from .kubernetes import Kubernetes

QUICK = ("lint", "type", "imports", "unit", "package", "quick")
"""What `hack/test` runs."""
ALL = ("lint", "type", "imports", "coverage", "faults", "package", "e2e", "exclusive")
"""What `hack/test --all` and CI run: `coverage` runs `unit`, `e2e` and `exclusive` all tests of `quick`."""
ENVIRONMENTS = tuple(dict.fromkeys((*QUICK, *ALL)))
ON_OPERATOR = frozenset({"quick", "e2e", "exclusive"})
"""Those that need the operator deployed on a Kubernetes."""
ON_KUBERNETES = ON_OPERATOR | {"unit", "coverage"}
"""Those with tests that need a Kubernetes."""
RUN_IN_UNIT = frozenset({"coverage", "faults", "quick", "e2e", "exclusive"})
"""Those that run in the virtual environment of `unit`."""
BESIDE = {"type": ("unit", "coverage"), "package": ("faults", "quick")}
"""Checks that never wait, and those beside which they run: these wait for much of their time.

Such a check begins with the first of those that are wanted, and is awaited after the last.
"""

PRIORITY_BESIDE = "7"
"""A nice value: such a process gets a fifth of what one of normal priority gets."""

_VENV = REPOSITORY / ".venv"
_CONSTRAINTS = REPOSITORY / "constraints.txt"
_APT = ["apt-get", "install", "--yes", "--no-install-recommends"]


@dataclass(slots=True)
class Timetable:
    """The steps so far: name, seconds, and whether it passed. Two may have run at the same time."""

    rows: list[tuple[str, float, bool]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def run(self, name: str, step: Callable[[], bool]) -> bool:
        """Run a step, note how it went, and return whether it passed; a RefusalError is a failure."""
        print(f"\n== {name}", flush=True)
        started = time.monotonic()
        try:
            passed = step()
        except RefusalError as error:
            print(f"hack/test: {error}", file=sys.stderr, flush=True)
            passed = False
        self.note(name, time.monotonic() - started, passed=passed)
        return passed

    def note(self, name: str, seconds: float, *, passed: bool) -> None:
        """A step that was run elsewhere."""
        self.rows.append((name, seconds, passed))

    def skip(self, name: str) -> None:
        """Note a step that cannot run because what it needs has failed: that is a failure, too."""
        self.note(name, 0.0, passed=False)

    def report(self) -> int:
        """Print the table; the exit code."""
        failed = [name for name, _, passed in self.rows if not passed]
        lines = [
            f"{name:<12} {seconds:7.1f} s  {'ok' if ok else 'FAILED'}" for name, seconds, ok in self.rows
        ]
        total = time.monotonic() - self.began
        verdict = f"failed: {', '.join(failed)}" if failed else "everything passed"
        print("\n".join(["", "== Summary", *lines, f"{'total':<12} {total:7.1f} s", verdict]), flush=True)
        return 1 if failed else 0


def install_tox() -> bool:
    """Make `.venv` with tox, unless it was made from these constraints before."""
    stamp = _VENV / "made-from"
    wanted = hashlib.sha256(_CONSTRAINTS.read_bytes() + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        progress(f"{_VENV.name} is there")
        return True
    shutil.rmtree(_VENV, ignore_errors=True)
    _make_venv()
    progress("installing tox")
    _run([str(_VENV / "bin" / "pip"), "install", "--quiet", "--constraint", str(_CONSTRAINTS), "tox"])
    stamp.write_text(wanted)
    return True


def tox(environment: str, variables: Mapping[str, str], *options: str) -> bool:
    """Run one tox environment; whether it passed. What it prints is shown."""
    program = [*_tox(environment), "--skip-pkg-install", *options]
    return _make("unit" if environment in RUN_IN_UNIT else environment) and _passes(program, variables)


@functools.cache
def _make(environment: str) -> bool:
    """Make a virtual environment, once: not while a check runs in it, which would miss the package then."""
    return _passes([*_tox(environment), "--notest"], os.environ)


def _passes(program: list[str], variables: Mapping[str, str]) -> bool:
    return subprocess.run(program, cwd=REPOSITORY, env=dict(variables), check=False).returncode == 0


class Beside:
    """A program that runs while something else does, for use in a `with`.

    It gets a fifth of another's share of the CPU time, and what is left over. Its output is kept until it
    ends, so that the two do not mix. One that is left early is ended.
    """

    def __init__(self, program: Sequence[str], variables: Mapping[str, str]) -> None:
        self._began = time.monotonic()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._process = subprocess.Popen(
            ["nice", "-n", PRIORITY_BESIDE, *program],
            cwd=REPOSITORY,
            env=dict(variables),
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _lower_priority_of_session(self._process.pid)
        self._seconds = 0.0
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        self._process.wait()
        self._seconds = time.monotonic() - self._began

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        self._watcher.join()
        self._output.close()

    def finish(self) -> tuple[float, bool]:
        """Wait for its end and show what it has printed; its seconds, and whether it passed."""
        self._watcher.join()
        self._output.seek(0)
        sys.stdout.write(self._output.read().decode(errors="replace"))
        sys.stdout.flush()
        return self._seconds, self._process.returncode == 0


def _lower_priority_of_session(pid: int) -> None:
    """Make all that the session of `pid` runs yield to other sessions.

    Linux shares CPU time among sessions first (sched_autogroup, sched(7)); `nice` counts within one only. A
    Kubernetes runs in sessions of its own. Without autogroups, there is no such file, and `nice` is enough.
    """
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(PRIORITY_BESIDE)


def tox_beside(environment: str, variables: Mapping[str, str]) -> Beside:
    """A tox environment that runs while another one does."""
    # Made first: two at once would make the package at the same place.
    is_made = tox(environment, variables, "--notest")
    return Beside([*_tox(environment), "--skip-pkg-install"] if is_made else ["false"], variables)


def _tox(environment: str) -> list[str]:
    return [str(_VENV / "bin" / "python"), "-m", "tox", "run", "-e", environment]


def variables(environment: str, kubernetes: Kubernetes | None) -> dict[str, str]:
    """The environment variables that name real etcd and the real Kubernetes to tests."""
    chosen = dict(os.environ)
    for name in ("KUBECONFIG", "ETCD_OPERATOR_KUBECONFIG", "ETCD_OPERATOR_CLUSTER"):
        chosen.pop(name, None)
    chosen.setdefault("ETCD_BIN", str(Cache.of_user().tools))
    if kubernetes is None:
        return chosen
    chosen["ETCD_OPERATOR_KUBECTL"] = str(kubernetes.tools / "kubectl")
    if environment in ON_OPERATOR:
        return chosen | dict(kubernetes.test_variables)
    return chosen | {"ETCD_OPERATOR_KUBECONFIG": str(kubernetes.kubeconfig)}


def _make_venv() -> None:
    progress("making a virtual environment in .venv")
    command = [sys.executable, "-m", "venv", str(_VENV)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise RefusalError(
            "this Python has no venv module; on Debian run as root: apt-get install python3-venv"
        )
    progress("installing python3-venv")
    _run(["apt-get", "update", "--quiet=2"])
    _run([*_APT, "python3-venv"], quietly=True)
    shutil.rmtree(_VENV, ignore_errors=True)
    _run(command)


def _run(command: list[str], *, quietly: bool = False) -> None:
    output = subprocess.DEVNULL if quietly else None
    environment = dict(os.environ) | {"DEBIAN_FRONTEND": "noninteractive", "PIP_NO_COMPILE": "1"}
    done = subprocess.run(command, stdout=output, env=environment, check=False)
    if done.returncode != 0:
        raise RefusalError(f"{' '.join(command[:4])} ... failed, see above")
