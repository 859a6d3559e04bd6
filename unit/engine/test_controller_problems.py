"""Passes that hang, workers that crash, and the end of a controller."""

import threading
from collections import Counter

import pytest
from structlog.testing import capture_logs

from etcd_operator.clock import Clock
from etcd_operator.engine import worker_pool
from etcd_operator.engine.backoff import Backoff
from etcd_operator.engine.controller import Controller, Result
from etcd_operator.errors import Conflict
from etcd_operator.keys import Key
from unit.engine.support import Crashes
from unit.engine.worlds import A, B, World
from unit.waiting import eventually


def test_stopping_waits_for_the_running_pass_and_begins_no_other(running: World) -> None:
    begun, release = threading.Event(), threading.Event()

    def script(_: Key) -> Result:
        begun.set()
        assert release.wait(30)
        return Result(requeue_after=0)

    running.script = script
    running.controller.enqueue(A)
    running.controller.enqueue(B)
    assert begun.wait(30)
    stopping = threading.Thread(target=lambda: running.controller.stop(30))
    stopping.start()
    eventually(lambda: running.controller._is_stopping)
    release.set()
    stopping.join(30)
    assert not stopping.is_alive()
    assert running.passes == [(A, 0)]
    assert running.metrics.outcomes() == ["requeue_after"]


def test_a_worker_that_hangs_is_reported_and_can_be_seen_in_the_gauges(running: World) -> None:
    release = threading.Event()

    def script(_: Key) -> Result:
        assert release.wait(30)
        return Result()

    running.script = script
    running.controller.enqueue(A)
    eventually(lambda: running.metrics.gauges.in_flight == 1)
    running.clock.advance(600)
    assert running.metrics.gauges.longest_running_seconds() == 600
    assert running.controller.problem(100) != ""
    with capture_logs() as logs:
        assert not running.controller.stop(0.01)
    assert running.controller.problem(100) == ""  # its end has a deadline of its own
    assert [log["threads"] for log in logs] == [("t-worker-0",)]
    release.set()


def test_a_pass_that_hangs_and_a_queue_that_makes_no_progress_are_problems(
    running: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "MOST", 1)  # as if all spare workers hung, too
    release, entered = threading.Event(), threading.Event()

    def script(_: Key) -> Result:
        entered.set()
        assert release.wait(30)
        return Result()

    running.script = script
    running.controller.enqueue(A)
    assert entered.wait(30)
    running.clock.advance(50)
    running.controller.enqueue(B)
    running.clock.advance(50)
    assert running.controller.problem(100) == ""
    running.clock.advance(1)
    assert running.controller.problem(100) == "t: a worker has been in one pass for 101 s"
    (entry,) = running.controller._queue._started.values()
    running.controller._queue._started.clear()  # as if the worker were gone without a trace
    assert running.controller.problem(50) == "t: 1 keys are waiting, and no worker has taken one for 51 s"
    running.controller._queue._started[A] = entry
    release.set()
    running.rest(2)
    running.clock.advance(1000)
    assert running.controller.problem(100) == ""


def test_a_key_that_does_not_come_back_in_time_is_a_problem(world: World) -> None:
    world.controller._is_started = True  # but the thread that brings keys back does not run
    world.controller._delay.add_after(A, 10)
    world.clock.advance(110)
    assert world.controller.problem(100) == ""
    world.clock.advance(1)
    assert world.controller.problem(100) == "t: a key has been due for a retry for 101 s"


def test_a_controller_that_was_not_started_has_no_problem(world: World) -> None:
    """As in a process that does not lead: its keys wait for the day that it does."""
    world.controller.enqueue(A)
    world.controller._delay.add_after(B, 1)
    world.clock.advance(1e6)
    assert world.controller.problem(100) == ""


def test_a_stopped_controller_takes_no_keys(running: World) -> None:
    assert running.controller.stop(30)
    running.controller.enqueue(A)
    assert running.metrics.gauges.depth == 0
    with pytest.raises(RuntimeError):
        running.controller.start()


def test_a_controller_that_was_never_started_can_be_stopped(world: World) -> None:
    world.controller.enqueue(A)
    assert world.controller.stop(0)


def test_a_worker_lost_to_something_worse_than_an_exception_is_a_crash() -> None:
    world = World()

    def script(_: Key) -> Result:
        raise SystemExit(1)

    world.script = script
    world.controller.start()
    world.controller.enqueue(A)
    eventually(lambda: world.crashes == [("t-worker-0", "SystemExit(1)")])
    assert world.controller.stop(30)


def test_many_workers_reconcile_many_keys_each_by_one_at_a_time() -> None:
    """Real time: 8 workers, 50 keys, failures and repeats; every key ends well, none is shared."""
    clock = Clock()
    holders: Counter[Key] = Counter()
    passes: Counter[Key] = Counter()
    shared: list[Key] = []
    crashes = Crashes()

    def reconcile(key: Key) -> Result:
        holders[key] += 1
        if holders[key] > 1:
            shared.append(key)
        passes[key] += 1
        threading.Event().wait(0.0005)
        holders[key] -= 1
        if passes[key] < 3:
            raise Conflict("again")
        return Result(requeue_after=0.001) if passes[key] < 5 else Result()

    backoff: Backoff[Key] = Backoff(clock, base=0.001)
    controller = Controller("t", reconcile, workers=8, clock=clock, backoff=backoff, on_crash=crashes)
    keys = [Key("default", f"k{n}") for n in range(50)]
    controller.start()

    def produce() -> None:
        for key in keys:
            controller.enqueue(key)

    producers = [threading.Thread(target=produce) for _ in range(4)]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    eventually(lambda: all(passes[key] >= 5 for key in keys))
    assert controller.stop(30)
    assert not shared
    assert not crashes
