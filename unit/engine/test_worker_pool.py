"""Passes that hang leave workers to the others."""

import threading
from collections.abc import Callable, Iterator

import pytest

from etcd_operator.engine.backoff import Backoff
from etcd_operator.engine.controller import Controller, Result
from etcd_operator.engine.threads import join_all
from etcd_operator.engine.worker_pool import MOST, STALL, WorkerPool
from etcd_operator.engine.workqueue import WorkQueue
from etcd_operator.errors import Unavailable
from etcd_operator.keys import Key
from unit.engine.support import Crashes
from unit.fakes.clock import FakeClock
from unit.waiting import eventually

WORKERS = 4


class Hangs:
    """A controller; passes over keys whose name begins with `hang` last until `release`."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.crashes = Crashes()
        self.release = threading.Event()
        self.fails = False
        self.hanging: list[Key] = []
        self.passed: list[Key] = []
        backoff: Backoff[Key] = Backoff(self.clock, base=1, random=lambda: 0.0)
        self.controller = Controller(
            "t",
            self._reconcile,
            workers=WORKERS,
            clock=self.clock,
            backoff=backoff,
            on_crash=self.crashes,
        )

    def _reconcile(self, key: Key) -> Result:
        if key.name.startswith("hang"):
            if self.fails:
                self.passed.append(key)
                raise Unavailable("no answer")
            self.hanging.append(key)
            assert self.release.wait(30)
        self.passed.append(key)
        return Result()

    def hang(self, count: int) -> None:
        """That many keys hang; what lies before the first stall is waited for."""
        for n in range(count):
            self.controller.enqueue(Key("default", f"hang-{n}"))

    @property
    def size(self) -> int:
        return self.controller._pool.size

    def let_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def pass_until(self, claim: Callable[[], bool]) -> None:
        """Let time pass until `claim` holds: a thread that begins to wait late waits from then on."""

        def holds() -> bool:
            if not claim():
                self.clock.advance(STALL / 10)
            return claim()

        eventually(holds)


@pytest.fixture
def waiting() -> Iterator[Hangs]:
    made = Hangs()
    yield made
    made.release.set()
    assert made.controller.stop(30)
    assert not made.crashes


@pytest.fixture
def hangs(waiting: Hangs) -> Hangs:
    waiting.controller.start()
    return waiting


def test_keys_that_waited_for_the_start_are_no_reason_for_spare_workers(waiting: Hangs) -> None:
    """As those of a process that did not lead for an hour."""
    waiting.hang(WORKERS + 1)
    waiting.let_pass(3600)
    waiting.controller.start()
    eventually(lambda: waiting.clock.waiting >= 2)  # in the delay queue, and for a hold-up
    waiting.let_pass(STALL / 2)
    assert waiting.size == WORKERS
    waiting.let_pass(STALL / 2)
    eventually(lambda: waiting.size > WORKERS, clock=waiting.clock)


def test_a_key_behind_workers_that_hang_is_taken_within_a_second(hangs: Hangs) -> None:
    hangs.hang(WORKERS)
    eventually(lambda: len(hangs.hanging) == WORKERS)
    healthy = Key("default", "healthy")
    hangs.controller.enqueue(healthy)
    hangs.let_pass(STALL - 0.01)
    assert hangs.size == WORKERS
    hangs.pass_until(lambda: healthy in hangs.passed)
    assert WORKERS < hangs.size <= 2 * WORKERS


def test_there_are_never_more_than_so_many_spare_workers(hangs: Hangs) -> None:
    hangs.hang(MOST * WORKERS + 3)
    hangs.pass_until(lambda: len(hangs.hanging) == MOST * WORKERS)
    stalled, before = hangs.controller._queue.stalled_seconds(), hangs.clock.monotonic()
    hangs.pass_until(lambda: hangs.clock.monotonic() > before + 3 * STALL)
    assert hangs.size == len(hangs.hanging) == MOST * WORKERS
    passed = hangs.clock.monotonic() - before
    assert hangs.controller._queue.stalled_seconds() == pytest.approx(stalled + passed)


def test_a_spare_worker_ends_when_it_finds_nothing_to_do(hangs: Hangs) -> None:
    hangs.hang(WORKERS + 1)
    hangs.pass_until(lambda: len(hangs.hanging) == WORKERS + 1)
    hangs.release.set()
    eventually(lambda: len(hangs.passed) == WORKERS + 1)
    hangs.pass_until(lambda: hangs.size == WORKERS)


def fail_then_hang(hangs: Hangs) -> None:
    """As many keys as there are workers fail; then half of the workers hang with them."""
    hangs.fails = True
    hangs.hang(WORKERS)
    eventually(lambda: len(hangs.passed) == WORKERS)
    hangs.fails = False
    hangs.pass_until(lambda: len(hangs.hanging) == WORKERS // 2)


def test_keys_that_failed_before_and_hang_now_leave_workers_to_others(hangs: Hangs) -> None:
    fail_then_hang(hangs)
    healthy = Key("default", "healthy")
    hangs.controller.enqueue(healthy)
    eventually(lambda: healthy in hangs.passed)  # without a spare worker: time stands still
    assert hangs.size == WORKERS
    assert len(hangs.hanging) == WORKERS // 2


def test_keys_that_failed_before_get_spare_workers_too(hangs: Hangs) -> None:
    fail_then_hang(hangs)
    hangs.pass_until(lambda: hangs.size > WORKERS)
    eventually(lambda: hangs.controller._queue.in_flight == WORKERS)  # at once: time stands still


def test_once_spare_workers_have_ended_late_keys_leave_workers_to_others_again(hangs: Hangs) -> None:
    hangs.hang(WORKERS + 1)
    hangs.pass_until(lambda: len(hangs.hanging) == WORKERS + 1)
    hangs.release.set()
    eventually(lambda: len(hangs.passed) == WORKERS + 1)
    hangs.pass_until(lambda: hangs.size == WORKERS)
    hangs.release.clear()
    hangs.hanging.clear()
    hangs.passed.clear()
    fail_then_hang(hangs)
    healthy = Key("default", "healthy")
    hangs.controller.enqueue(healthy)
    eventually(lambda: healthy in hangs.passed)
    assert len(hangs.hanging) == WORKERS // 2


@pytest.mark.parametrize(("workers", "late"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_late_keys_leave_at_least_half_of_the_workers_to_others(
    workers: int, late: int, queue: WorkQueue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    monkeypatch.setattr(queue, "allow_late", limits.append)
    pool = WorkerPool("t", queue, lambda _: False, workers=workers, on_crash=Crashes())
    pool.start()
    queue.shut_down()
    assert not join_all(pool.threads, 30)
    assert limits == [late]
