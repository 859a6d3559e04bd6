import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from etcd_operator.clock import SystemClock
from etcd_operator.engine import crew
from etcd_operator.engine.backoff import Backoff
from etcd_operator.engine.controller import LONGEST_RETRY_AFTER, Controller, Result
from etcd_operator.engine.workqueue import QueueGauges
from etcd_operator.errors import Conflict, InvalidSpec, NotFound, Throttled
from etcd_operator.keys import Key
from unit.engine.support import Crashes, eventually
from unit.fakes.clock import FakeClock

A, B = Key("default", "a"), Key("default", "b")


class Recorder(list[tuple[str, str]]):
    """A `ControllerMetrics` that remembers what a controller (not its queue) reported."""

    gauges: QueueGauges

    def observe(self, queue: QueueGauges) -> None:
        self.gauges = queue

    def retried(self) -> None:
        self.append(("retried", ""))

    def reconciled(self, outcome: str, seconds: float) -> None:
        self.append(("reconciled", outcome))

    def added(self) -> None: ...
    def taken(self, waited: float) -> None: ...
    def finished(self, worked: float) -> None: ...

    def outcomes(self) -> list[str]:
        return [outcome for kind, outcome in self if kind == "reconciled"]


class World:
    """A controller with one worker whose passes are scripted, and all that can be seen of it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metrics = Recorder()
        self.crashes = Crashes()
        self.passes: list[tuple[Key, float]] = []
        self.script: Callable[[Key], Result] = lambda _: Result()
        self.backoff: Backoff[Key] = Backoff(self.clock, base=1, random=lambda: 0.0)
        self.controller = self.make()

    def make(self, **options: object) -> Controller:
        settings: dict[str, object] = {
            "workers": 1,
            "clock": self.clock,
            "backoff": self.backoff,
            "on_crash": self.crashes,
            "metrics": self.metrics,
        }
        return Controller("t", self._reconcile, **(settings | options))  # type: ignore[arg-type]

    def _reconcile(self, key: Key) -> Result:
        self.passes.append((key, self.clock.monotonic()))
        return self.script(key)

    def rest(self, passes: int) -> None:
        """Wait until that many passes have been made and nothing is left to do now."""
        eventually(lambda: self._is_at_rest() and len(self.metrics.outcomes()) == passes, self.clock)

    def idle(self) -> None:
        """Wait until nothing is left to do now."""
        eventually(self._is_at_rest, self.clock)

    def _is_at_rest(self) -> bool:
        """No key is due, waits for a worker or is in work: what time has brought has been done."""
        delay, gauges, now = self.controller._delay, self.metrics.gauges, self.clock.monotonic()
        is_asleep = delay._changed in list(self.clock._waiting)
        is_due = any(when <= now for when, _ in list(delay._ticket_of.values()))
        return is_asleep and not is_due and not gauges.depth and not gauges.in_flight

    def times(self, key: Key = A) -> list[float]:
        return [when for who, when in self.passes if who == key]


def raising(error: Exception) -> Callable[[Key], Result]:
    def script(_: Key) -> Result:
        raise error

    return script


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    assert world.controller.stop(5)
    assert not world.crashes


@pytest.fixture
def running(world: World) -> World:
    world.controller.start()
    return world


def test_keys_wait_for_the_start(world: World) -> None:
    for key in (A, B, A):
        world.controller.enqueue(key)
    assert world.metrics.gauges.depth == 2
    assert world.passes == []
    world.controller.start()
    world.rest(2)
    assert world.passes == [(A, 0), (B, 0)]


def test_a_pass_that_went_well_is_not_repeated(running: World) -> None:
    running.controller.enqueue(A)
    running.rest(1)
    running.clock.advance(1e6)
    running.rest(1)
    assert running.metrics == [("reconciled", "success")]


def test_a_result_may_ask_for_another_pass_later(running: World) -> None:
    running.script = lambda _: Result(requeue_after=30) if len(running.passes) < 2 else Result()
    running.controller.enqueue(A)
    running.rest(1)
    running.clock.advance(29)
    running.rest(1)
    running.clock.advance(1)
    running.rest(2)
    assert running.times() == [0, 30]
    assert running.metrics.outcomes() == ["requeue_after", "success"]


def test_requeue_after_zero_is_another_pass_at_once(running: World) -> None:
    running.script = lambda _: Result(requeue_after=0) if len(running.passes) < 3 else Result()
    running.controller.enqueue(A)
    running.rest(3)
    assert running.times() == [0, 0, 0]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Conflict("moved"), "error"), (NotFound("no pod"), "error"), (KeyError("bug"), "panic")],
    ids=["a retryable error", "an operator error that escaped", "a bug"],
)
def test_a_failure_is_repeated_with_growing_delays_until_it_passes(
    running: World, error: Exception, outcome: str
) -> None:
    running.script = raising(error)
    running.controller.enqueue(A)
    for passes, seconds in ((1, 1), (2, 2), (3, 4)):
        running.rest(passes)
        running.clock.advance(seconds - 0.1)
        running.rest(passes)
        running.clock.advance(0.1)
    running.rest(4)
    running.script = lambda _: Result()
    running.clock.advance(8)
    running.rest(5)
    assert running.times() == pytest.approx([0, 1, 3, 7, 15])
    assert running.metrics.outcomes() == [outcome] * 4 + ["success"]
    assert running.metrics.count(("retried", "")) == 4
    assert running.backoff.failures(A) == 0


def test_a_throttled_key_waits_as_long_as_the_server_asks(running: World) -> None:
    running.script = raising(Throttled("busy", retry_after=20))
    running.controller.enqueue(A)
    running.rest(1)
    running.clock.advance(19.9)
    running.rest(1)
    running.clock.advance(0.1)
    running.rest(2)
    assert running.times() == [0, 20]


def test_a_server_that_asks_for_days_of_patience_gets_a_minute(running: World) -> None:
    """Neither an event nor anything else but a changed spec would bring the key back earlier."""
    running.script = raising(Throttled("busy", retry_after=86_400))
    running.controller.enqueue(A)
    running.rest(1)
    running.clock.advance(LONGEST_RETRY_AFTER)
    running.rest(2)
    assert running.times() == [0, LONGEST_RETRY_AFTER]


def test_a_throttled_key_that_goes_on_failing_backs_off_further(running: World) -> None:
    running.script = raising(Throttled("busy", retry_after=1.5))
    running.controller.enqueue(A)
    running.rest(1)
    running.clock.advance(1.5)
    running.rest(2)
    running.clock.advance(1.5)
    running.rest(2)
    running.clock.advance(0.5)
    running.rest(3)
    assert running.times() == [0, 1.5, 3.5]


def test_a_terminal_error_waits_for_a_new_event(running: World) -> None:
    running.script = raising(InvalidSpec("size must be odd"))
    with capture_logs() as logs:
        running.controller.enqueue(A)
        running.rest(1)
        running.clock.advance(1e6)
        running.rest(1)
    assert running.metrics == [("reconciled", "terminal")]
    assert [log["event"] for log in logs] == ["reconcile_gave_up"]
    running.script = lambda _: Result()
    running.controller.enqueue(A)
    running.rest(2)
    assert running.metrics.outcomes() == ["terminal", "success"]


def test_a_change_of_what_is_asked_runs_a_failing_key_at_once_and_starts_its_back_off_afresh(
    running: World,
) -> None:
    running.script = raising(Conflict("moved"))
    running.controller.enqueue(A)
    for passes, seconds in ((1, 1), (2, 2), (3, 1)):
        running.rest(passes)
        running.clock.advance(seconds)
    running.rest(3)  # the next try is three seconds away
    running.controller.restart(A)
    running.rest(4)
    running.clock.advance(1)
    running.rest(5)
    assert running.times() == [0, 1, 3, 4, 5]


def test_an_event_brings_one_retry_forward_and_not_the_next(running: World) -> None:
    running.script = raising(Conflict("moved"))
    running.controller.enqueue(A)
    running.rest(1)
    for _ in range(70):
        running.clock.advance(0.5)
        running.controller.enqueue(A)
        running.idle()
    assert running.times() == [0, 1, 2, 6, 7, 23, 24]


def test_what_a_pass_waited_for_brings_no_retry_forward(running: World) -> None:
    running.script = raising(Conflict("moved"))
    running.controller.enqueue(A)
    running.rest(1)
    running.clock.advance(0.5)
    running.controller.resume(A)
    running.rest(1)
    running.clock.advance(0.5)
    running.rest(2)
    assert running.times() == [0, 1]


def longest_wait(times: list[float]) -> float:
    return max(after - before for before, after in pairwise(times))


def test_a_key_that_fails_reaches_the_cap_though_it_waits_for_answers_first(running: World) -> None:
    """As a cluster does: a pass without answers asks for them, and comes back when they are there."""
    fails: list[float] = []

    def script(key: Key) -> Result:
        if len(running.passes) % 2:
            running.controller.resume(key)
            return Result(is_done=False)
        fails.append(running.clock.monotonic())
        raise Conflict("moved")

    running.script = script
    running.controller.enqueue(A)
    running.rest(2)
    while running.clock.monotonic() < 150:
        running.clock.advance(1)
        running.idle()
    assert fails == [0, 1, 3, 7, 15, 31, 61, 91, 121]


def test_a_key_that_fails_reaches_the_cap_though_its_passes_wake_it(running: World) -> None:
    """As its own writes do: each pass changes something, and the watch reports it."""

    def script(key: Key) -> Result:
        running.controller.enqueue(key)
        raise Conflict("moved")

    running.script = script
    running.controller.enqueue(A)
    running.rest(1)
    while running.clock.monotonic() < 600:
        running.clock.advance(1)
        running.idle()
    assert longest_wait(running.times()) == 30
    assert len([when for when in running.times() if when > 60]) <= 2 * 540 / 31 + 1


def test_a_thousand_keys_that_fail_neither_delay_another_nor_each_other(world: World) -> None:
    bad = [Key("bad", f"{n}") for n in range(1000)]
    entered, release = threading.Event(), threading.Event()

    def script(key: Key) -> Result:
        if key == B:
            entered.set()
            assert release.wait(10)
        if key.namespace == "bad":
            raise Conflict("moved")
        return Result()

    world.script = script
    world.controller.start()
    for key in bad:
        world.controller.enqueue(key)
    world.rest(1000)
    while world.clock.monotonic() < 127:
        world.clock.advance(1)
        world.idle()
    assert all(world.times(key) == [0, 1, 3, 7, 15, 31, 61, 91, 121] for key in bad)

    world.controller.enqueue(B)  # holds the one worker until all others are due
    assert entered.wait(10)
    world.clock.advance(30)
    eventually(lambda: world.metrics.gauges.depth == 1000, world.clock)
    before = len(world.passes)
    world.controller.enqueue(A)
    release.set()
    world.rest(9000 + 1000 + 2)
    assert world.passes[before][0] == A


def test_a_key_that_was_given_up_waits_if_its_own_passes_wake_it(running: World) -> None:
    def script(key: Key) -> Result:
        running.controller.enqueue(key)
        raise InvalidSpec("size must be odd")

    running.script = script
    running.controller.enqueue(A)
    running.rest(1)
    while running.clock.monotonic() < 600:
        running.clock.advance(1)
        running.idle()
    assert longest_wait(running.times()) == 30


def test_an_event_during_a_pass_causes_another_pass(running: World) -> None:
    def script(_: Key) -> Result:
        if len(running.passes) == 1:
            running.controller.enqueue(A)
            running.controller.enqueue(A)
        return Result()

    running.script = script
    running.controller.enqueue(A)
    running.rest(2)
    assert running.times() == [0, 0]


def test_one_key_that_fails_stops_no_other(running: World) -> None:
    def script(key: Key) -> Result:
        if key == A:
            raise ZeroDivisionError
        return Result()

    running.script = script
    for key in (A, B, A, B):
        running.controller.enqueue(key)
    running.rest(2)
    assert running.metrics.outcomes() == ["panic", "success"]


def test_a_bug_is_logged_with_its_traceback_and_an_expected_failure_without(running: World) -> None:
    bug = KeyError("bug")
    running.script = lambda key: raising(bug if key == A else Conflict("moved"))(key)
    with capture_logs() as logs:
        running.controller.enqueue(A)
        running.controller.enqueue(B)
        running.rest(2)
    panic, failure = logs
    assert (panic["event"], panic["log_level"], panic["exc_info"]) == ("reconcile_panicked", "error", bug)
    assert failure == {
        "event": "reconcile_failed",
        "log_level": "warning",
        "key": "default/b",
        "error": "Conflict: moved",
        "retry_in": 1,
        "failures": 1,
    }


@pytest.mark.parametrize(
    ("error", "event"),
    [(InvalidSpec("no"), "reconcile_gave_up"), (KeyError("bug"), "reconcile_panicked")],
    ids=["error", "bug"],
)
def test_a_pass_and_its_log_lines_happen_inside_of_the_context(
    world: World, error: Exception, event: str
) -> None:
    @contextmanager
    def around(key: Key) -> Iterator[None]:
        logs.append({"event": f"enter {key}"})
        yield
        logs.append({"event": "leave"})

    world.script = raising(error)
    world.controller = world.make(around=around)
    with capture_logs() as logs:
        world.controller.start()
        world.controller.enqueue(A)
        world.rest(1)
    assert [log["event"] for log in logs] == ["enter default/a", event, "leave"]


def test_a_context_that_fails_is_a_bug_of_that_pass_only(world: World) -> None:
    def around(key: Key) -> object:
        raise RuntimeError("no context")

    world.controller = world.make(around=around)
    world.controller.start()
    world.controller.enqueue(A)
    world.rest(1)
    assert world.passes == []
    assert world.metrics.outcomes() == ["panic"]


def test_a_reconcile_that_returns_no_result_is_a_bug_of_that_pass_only(running: World) -> None:
    running.script = lambda _: None  # type: ignore[assignment,return-value]
    running.controller.enqueue(A)
    running.rest(1)
    assert running.metrics.outcomes() == ["panic"]


def test_stopping_ends_the_pass_in_hand_and_begins_no_other(running: World) -> None:
    begun, release = threading.Event(), threading.Event()

    def script(_: Key) -> Result:
        begun.set()
        assert release.wait(5)
        return Result(requeue_after=0)

    running.script = script
    running.controller.enqueue(A)
    running.controller.enqueue(B)
    assert begun.wait(5)
    stopping = threading.Thread(target=lambda: running.controller.stop(5))
    stopping.start()
    eventually(lambda: running.controller._is_stopping)
    release.set()
    stopping.join(2)
    assert not stopping.is_alive()
    assert running.passes == [(A, 0)]
    assert running.metrics.outcomes() == ["requeue_after"]


def test_a_worker_that_hangs_is_reported_and_can_be_seen_in_the_gauges(running: World) -> None:
    release = threading.Event()

    def script(_: Key) -> Result:
        assert release.wait(5)
        return Result()

    running.script = script
    running.controller.enqueue(A)
    eventually(lambda: running.metrics.gauges.in_flight == 1)
    running.clock.advance(600)
    assert running.metrics.gauges.longest_running_seconds() == 600
    with capture_logs() as logs:
        assert not running.controller.stop(0.01)
    assert [log["threads"] for log in logs] == [("t-worker-0",)]
    release.set()


def test_a_pass_that_hangs_and_a_queue_that_stands_still_are_trouble(
    running: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "MOST", 1)  # as if all spare workers hung, too
    release, entered = threading.Event(), threading.Event()

    def script(_: Key) -> Result:
        entered.set()
        assert release.wait(5)
        return Result()

    running.script = script
    running.controller.enqueue(A)
    assert entered.wait(5)
    running.clock.advance(50)
    running.controller.enqueue(B)
    running.clock.advance(50)
    assert running.controller.problem(100) == ""
    running.clock.advance(1)
    assert running.controller.problem(100) == "t: a worker has been in one pass for 101 s"
    (mark,) = running.controller._queue._started.values()
    running.controller._queue._started.clear()  # as if the worker were gone without a trace
    assert running.controller.problem(50) == "t: 1 keys are waiting, and no worker has taken one for 51 s"
    running.controller._queue._started[A] = mark
    release.set()
    running.rest(2)
    running.clock.advance(1000)
    assert running.controller.problem(100) == ""


def test_a_key_that_does_not_come_back_in_time_is_trouble(world: World) -> None:
    world.controller._is_started = True  # but the thread that brings keys back does not run
    world.controller._delay.add_after(A, 10)
    world.clock.advance(110)
    assert world.controller.problem(100) == ""
    world.clock.advance(1)
    assert world.controller.problem(100) == "t: a key has been due for a retry for 101 s"


def test_a_controller_that_was_not_started_has_no_trouble(world: World) -> None:
    """As in a process that does not lead: its keys wait for the day that it does."""
    world.controller.enqueue(A)
    world.controller._delay.add_after(B, 1)
    world.clock.advance(1e6)
    assert world.controller.problem(100) == ""


def test_a_stopped_controller_takes_no_keys(running: World) -> None:
    assert running.controller.stop(5)
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
    assert world.controller.stop(5)


def test_many_workers_reconcile_many_keys_each_by_one_at_a_time() -> None:
    """Real time: 8 workers, 50 keys, failures and repeats; every key ends well, none is shared."""
    clock = SystemClock()
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
    assert controller.stop(5)
    assert not shared
    assert not crashes
