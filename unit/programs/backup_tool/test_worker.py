"""When backups are taken, and what is reported about them; time is a fake clock's."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from etcd_operator.archive.manifest import Manifest
from etcd_operator.errors import OperatorError
from etcd_operator.programs.backup_tool.inventory import Inventory, Name, ToolBackup
from etcd_operator.programs.backup_tool.runner import Turn
from etcd_operator.programs.backup_tool.worker import RETRY_SECONDS, Worker
from etcd_operator.storage.errors import Unreachable
from unit.fakes.clock import FakeClock
from unit.waiting import eventually

INTERVAL = 600.0
RUNNING = "c0ffee".zfill(16)


def of_revision(revision: int, clock: FakeClock, age: float = 0.0) -> ToolBackup:
    manifest = Manifest(
        etcd_version="3.6.16",
        cluster_id=RUNNING,
        member_id="0" * 16,
        revision=revision,
        keys=1,
        size=100,
        sha256="ab" * 32,
        stored_size=100,
        stored_sha256="ab" * 32,
        time=clock.now() - timedelta(seconds=age),
    )
    return ToolBackup(
        path=f"f/{revision}", name=Name("3.6.16", revision), manifest=manifest, modified=clock.now()
    )


class Script:
    """Turns that a test decides. `gate`: what a turn waits for."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.inventory = Inventory()
        self.cluster_id = RUNNING
        self.problem: Exception | None = None
        self.turns = 0
        self.cleanups = 0
        self.gate = threading.Event()
        self.gate.set()
        self.has_entered = threading.Event()

    def running(self) -> str:
        return self.cluster_id

    def load(self, running: str) -> Inventory:
        assert running == self.cluster_id
        if self.problem is not None:
            raise self.problem
        return self.inventory

    def turn(self) -> Turn:
        self.has_entered.set()
        assert self.gate.wait(20)
        self.turns += 1
        if self.problem is not None:
            raise self.problem
        new = of_revision(self.turns + 10, self.clock)
        self.inventory = Inventory(backups=(new, *self.inventory.backups)[:3])
        return Turn(inventory=self.inventory, is_new=True, took=1.25)

    def clean(self) -> Inventory:
        self.cleanups += 1
        if self.problem is not None:
            raise self.problem
        self.inventory = Inventory()
        return self.inventory


Start = Callable[[], Worker]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def script(clock: FakeClock) -> Script:
    return Script(clock)


@pytest.fixture
def start(clock: FakeClock, script: Script) -> Iterator[Start]:
    threads: list[tuple[Worker, threading.Thread]] = []

    def started() -> Worker:
        worker = Worker(script, interval=INTERVAL, clock=clock)  # type: ignore[arg-type]
        thread = threading.Thread(target=worker.run)
        thread.start()
        threads.append((worker, thread))
        return worker

    yield started
    script.gate.set()
    for worker, thread in threads:
        worker.stop()
        thread.join(20)
        assert not thread.is_alive()


def test_the_first_backup_is_taken_at_once_and_then_one_in_each_interval(
    start: Start, script: Script, clock: FakeClock
) -> None:
    worker = start()
    eventually(lambda: worker.report().count == 1, clock=clock)
    report = worker.report()
    assert report.newest is not None
    assert (report.newest.revision, report.newest.took, report.failure) == (11, 1.2, None)
    assert (report.total_size, report.since_success, report.is_starting) == (100, 0.0, False)
    clock.advance(INTERVAL - 1)
    assert script.turns == 1
    clock.advance(1)
    eventually(lambda: script.turns == 2, clock=clock)


def test_a_restart_neither_adds_nor_delays_a_backup(start: Start, script: Script, clock: FakeClock) -> None:
    script.inventory = Inventory(backups=(of_revision(5, clock, age=INTERVAL - 10),))
    worker = start()
    eventually(lambda: worker.report().count == 1, clock=clock)
    report = worker.report()
    assert (report.since_success, report.is_starting) == (INTERVAL - 10, True)
    assert report.newest is not None
    assert report.newest.took == 0.0
    clock.advance(9)
    assert script.turns == 0
    clock.advance(1)
    eventually(lambda: script.turns == 1, clock=clock)


@pytest.mark.parametrize("running", ["abcd".zfill(16), ""], ids=["created again", "etcd does not answer"])
def test_backups_of_a_deleted_cluster_neither_delay_the_first_one_nor_count_as_success(
    start: Start, script: Script, clock: FakeClock, running: str
) -> None:
    script.inventory = Inventory(backups=(of_revision(1000, clock, age=60.0),))
    script.cluster_id = running
    script.gate.clear()
    worker = start()
    assert script.has_entered.wait(20)
    assert (worker.report().count, worker.report().since_success) == (1, None)
    script.gate.set()
    eventually(lambda: worker.report().since_success == 0.0, clock=clock)
    assert script.turns == 1


def test_a_newest_backup_of_the_future_delays_by_one_interval_at_most(
    start: Start, script: Script, clock: FakeClock
) -> None:
    script.inventory = Inventory(backups=(of_revision(5, clock, age=-100 * INTERVAL),))
    worker = start()
    eventually(lambda: worker.report().count == 1, clock=clock)
    assert worker.report().since_success == 0.0
    clock.advance(INTERVAL)
    eventually(lambda: script.turns == 1, clock=clock)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (Unreachable("nobody  answers\nthere"), "nobody answers there"),
        (ZeroDivisionError(), "ZeroDivisionError"),
    ],
    ids=["a store", "a bug"],
)
def test_a_failure_is_reported_and_tried_again_soon(
    start: Start, script: Script, clock: FakeClock, problem: Exception, message: str
) -> None:
    worker = start()
    eventually(lambda: script.turns == 1, clock=clock)
    script.problem = problem
    clock.advance(INTERVAL)
    eventually(lambda: worker.report().failure is not None, clock=clock)
    failure = worker.report().failure
    assert failure is not None
    assert (failure.reason, failure.message) == (type(problem).__name__, message)
    assert (worker.report().since_success, worker.report().failures) == (INTERVAL, 1)
    clock.advance(RETRY_SECONDS)
    eventually(lambda: worker.report().failures == 2, clock=clock)
    script.problem = None
    clock.advance(RETRY_SECONDS)
    eventually(lambda: worker.report().failure is None, clock=clock)
    assert (worker.report().since_success, worker.report().failures) == (0.0, 2)


def test_a_store_that_cannot_be_read_at_the_start_is_read_again(
    start: Start, script: Script, clock: FakeClock
) -> None:
    script.problem = Unreachable("no store")
    worker = start()
    eventually(lambda: worker.report().failure is not None, clock=clock)
    assert script.turns == 0
    script.problem = None
    clock.advance(RETRY_SECONDS)
    eventually(lambda: script.turns == 1, clock=clock)


def test_a_cleanup_waits_for_the_backup_that_is_taken(start: Start, script: Script) -> None:
    script.gate.clear()
    worker = start()
    assert script.has_entered.wait(20)
    assert worker.report().is_backing_up
    with ThreadPoolExecutor() as threads:
        done = threads.submit(worker.clean_up)
        assert (done.done(), script.cleanups) == (False, 0)
        script.gate.set()
        done.result(20)
    assert (script.turns, script.cleanups, worker.report().count) == (1, 1, 0)


def test_a_cleanup_that_waits_when_the_tool_stops_fails(start: Start, script: Script) -> None:
    script.gate.clear()
    worker = start()
    assert script.has_entered.wait(20)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(worker.clean_up)
        worker.stop()
        with pytest.raises(OperatorError, match="being stopped"):
            waiting.result(20)
    with pytest.raises(OperatorError, match="being stopped"):
        worker.clean_up()
    assert script.cleanups == 0


def test_a_cleanup_is_the_last_thing_that_happens(start: Start, script: Script, clock: FakeClock) -> None:
    worker = start()
    eventually(lambda: script.turns == 1, clock=clock)
    script.problem = Unreachable("no store")
    with pytest.raises(OperatorError, match="no store"):
        worker.clean_up()
    script.problem = None
    worker.clean_up()
    assert (worker.report().count, script.cleanups) == (0, 2)
    clock.advance(10 * INTERVAL)
    assert script.turns == 1
