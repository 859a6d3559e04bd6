"""The operator as a process: how it starts against the odds, and how it ends, whatever its threads do."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from unit.fakes.apiserver import Cut
from unit.fakes.apiserver.faults import Answer, Fault, Request, Stall
from unit.fakes.apiserver.kinds import PODS
from unit.fakes.clock import FakeClock
from unit.operators import DEADLINE, until
from unit.passes.bench import Bench, bench
from unit.passes.bodies import ephemeral
from unit.test_app import serves

ROOT = Path(__file__).parents[2]
FATAL_SECONDS = 15.0
"""Less than an end in order may take (`app.STOP_SECONDS`), and more than a machine stalls."""
OPERATOR = "import sys; from etcd_operator.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def made() -> Iterator[Bench]:
    with bench(FakeClock(datetime.now(UTC))) as one:
        yield one


@contextmanager
def command(made: Bench, home: Path, *words: str, before: str = "") -> "Iterator[subprocess.Popen[str]]":
    """The operator as a process, which ends with the test; `before` is a program to run in it first."""
    config = made.api.write_kubeconfig(home / "config")
    fixed = ["--listen", "127.0.0.1:0", "--log-format", "json", "--kubeconfig", str(config)]
    log = (home / "log").open("w+")
    with log, subprocess.Popen(
        [sys.executable, "-c", f"{before}\n{OPERATOR}", "run", *(words or ALONE), *fixed],
        stderr=log, text=True, cwd=ROOT, env={**os.environ},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


ALONE = ("--no-leader-elect", "--no-install-crds")


def ended(process: "subprocess.Popen[str]", within: float = DEADLINE) -> int:
    """Wait for the end; the exit code."""
    return process.wait(timeout=within)


def lines(home: Path, level: str) -> list[dict[str, Any]]:
    """What was logged at that level."""
    found = [json.loads(line) for line in (home / "log").read_text().splitlines() if line.startswith("{")]
    return [line for line in found if line["level"] == level]


def events(home: Path, level: str = "info") -> list[str]:
    return [line["event"] for line in lines(home, level)]


def test_a_process_that_is_terminated_by_a_signal_ends_with_zero(made: Bench, tmp_path: Path) -> None:
    made.create(*ephemeral())
    with command(made, tmp_path) as process:
        until(made, lambda: serves(made))
        process.send_signal(signal.SIGTERM)
        assert ended(process) == 0
    assert events(tmp_path)[-1] == "stopped"
    assert len(made.names(PODS)) == 3


def test_a_signal_that_another_thread_is_given_ends_the_process_too(made: Bench, tmp_path: Path) -> None:
    """As one does that comes just before the main thread waits: nothing interrupts that wait."""
    made.create(*ephemeral())
    with command(made, tmp_path) as process:
        until(made, lambda: serves(made))
        threads = [int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()]
        other = next(thread for thread in threads if thread != process.pid)
        assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGTERM) == 0
        assert ended(process) == 0


def test_a_process_waits_for_its_api_server_and_logs_it(made: Bench, tmp_path: Path) -> None:
    made.create(*ephemeral(size=1))
    made.api.stop()
    with command(made, tmp_path) as process:
        until(made, lambda: len(lines(tmp_path, "warning")) >= 2)
        assert set(events(tmp_path, "warning")) == {"api_server_not_reached"}
        made.api.start()
        until(made, lambda: serves(made))
        process.send_signal(signal.SIGTERM)
        assert ended(process) == 0


def test_a_process_that_waits_for_its_api_server_can_be_ended(made: Bench, tmp_path: Path) -> None:
    made.api.stop()
    with command(made, tmp_path) as process:
        until(made, lambda: bool(lines(tmp_path, "warning")))
        process.send_signal(signal.SIGTERM)
        assert ended(process, FATAL_SECONDS) == 0
    assert not events(tmp_path, "error")


def is_definition(request: Request) -> bool:
    return request.is_write and request.plural == "customresourcedefinitions"


def is_discovery(request: Request) -> bool:
    return request.path.startswith("/apis/admissionregistration") and not request.is_write


@pytest.mark.parametrize("where", [is_definition, is_discovery], ids=["a definition", "discovery"])
@pytest.mark.parametrize(
    "fault",
    [Answer(code=503), Answer(code=429, retry_after=1), Answer(code=403), Cut()],
    ids=["503", "429", "403", "cut off"],
)
def test_one_failure_while_the_definitions_are_applied_stops_nothing(
    made: Bench, tmp_path: Path, fault: Fault, where: Callable[[Request], bool]
) -> None:
    met: list[Request] = []

    def once(request: Request) -> Fault | None:
        if met or not where(request):
            return None
        met.append(request)
        return fault

    made.api.before = once
    made.create(*ephemeral(size=1))
    with command(made, tmp_path, "--no-leader-elect") as process:
        until(made, lambda: serves(made))
        assert met
        process.send_signal(signal.SIGTERM)
        assert ended(process) == 0


def test_an_api_server_that_hangs_while_definitions_are_applied_does_not_hold_up_the_end(
    made: Bench, tmp_path: Path
) -> None:
    stall, held = Stall(), list[Request]()

    def hold(request: Request) -> Fault | None:
        held.extend([request] if is_definition(request) else [])
        return stall if is_definition(request) else None

    made.api.before = hold
    with command(made, tmp_path, "--no-leader-elect") as process:
        until(made, lambda: bool(held))
        process.send_signal(signal.SIGTERM)
        assert ended(process, FATAL_SECONDS) == 0
        stall.released.set()


def test_credentials_that_are_refused_end_the_process_with_one_line(made: Bench, tmp_path: Path) -> None:
    made.api.before = lambda request: Answer(code=401, reason="Unauthorized")
    with command(made, tmp_path) as process:
        assert ended(process) == 1
    (line,) = lines(tmp_path, "error")
    assert line["event"] == "stopping"
    assert "401" in line["reason"]


HANG = """
import threading
def hang(*_): threading.Thread(target=threading.Event().wait, name="hangs").start()
"""
BROKEN = {
    "the main thread": """
from etcd_operator.kube.events import Recorder
def start(self): hang(); raise RuntimeError("this is broken")
Recorder.start = start
""",
    "the thread that starts all": """
from etcd_operator.process.leadership import Leadership
def start(self): hang(); raise RuntimeError("this is broken")
Leadership.start = start
""",
    "a thread that nobody watches": """
from etcd_operator.kube.lease import Elector
def seek(self): hang(); raise RuntimeError("this is broken")
Elector._seek = seek
""",
    "stopping": """
from etcd_operator.kube.events import Recorder
from etcd_operator.kube.lease import Elector
def seek(self): hang(); raise RuntimeError("this is broken")
def stop(self, seconds): raise RuntimeError("and this")
Elector._seek, Recorder.stop = seek, stop
""",
    "a pool that never ends": """
from etcd_operator.controllers.etcd_cluster.observe.prober import Prober
from etcd_operator.kube.lease import Elector
def seek(self): raise RuntimeError("this is broken")
Elector._seek, Prober.stop = seek, lambda self: threading.Event().wait()
""",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_what_is_broken_ends_the_process_in_time_whatever_threads_run(
    made: Bench, tmp_path: Path, broken: str
) -> None:
    with command(made, tmp_path, "--no-install-crds", before=HANG + broken) as process:
        until(made, lambda: "this is broken" in (tmp_path / "log").read_text() or process.poll() is not None)
        began = time.monotonic()
        assert ended(process) in (1, 3)
        assert time.monotonic() - began < FATAL_SECONDS
    (reason,) = [line["reason"] for line in lines(tmp_path, "error") if line["event"] == "stopping"]
    assert "this is broken" in reason
