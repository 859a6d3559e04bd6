"""When a key that failed runs again."""

import threading
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from etcd_operator.engine.controller import LONGEST_RETRY_AFTER, Result
from etcd_operator.errors import Conflict, InvalidSpec, NotFound, Throttled
from etcd_operator.keys import Key
from unit.engine.worlds import A, B, World, raising
from unit.waiting import eventually


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


def test_a_throttled_key_waits_as_long_as_the_server_requests(running: World) -> None:
    running.script = raising(Throttled("busy", retry_after=20))
    running.controller.enqueue(A)
    running.rest_after((0, 1), (19.9, 1), (0.1, 2))
    assert running.times() == [0, 20]


def test_a_retry_after_of_days_is_limited_to_a_minute(running: World) -> None:
    """Neither an event nor anything else but a changed spec would bring the key back earlier."""
    running.script = raising(Throttled("busy", retry_after=86_400))
    running.controller.enqueue(A)
    running.rest_after((0, 1), (LONGEST_RETRY_AFTER, 2))
    assert running.times() == [0, LONGEST_RETRY_AFTER]


def test_a_throttled_key_that_goes_on_failing_backs_off_further(running: World) -> None:
    running.script = raising(Throttled("busy", retry_after=1.5))
    running.controller.enqueue(A)
    running.rest_after((0, 1), (1.5, 2), (1.5, 2), (0.5, 3))
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


def test_what_an_earlier_pass_waited_for_does_not_bring_a_retry_forward(running: World) -> None:
    running.script = raising(Conflict("moved"))
    running.controller.enqueue(A)
    running.rest_after((0, 1), (1, 2))
    running.controller.resume(A)
    running.rest_after((1.9, 2), (0.1, 3))
    assert running.times() == [0, 1, 3]


def test_an_attempt_before_its_time_ends_the_wait_for_it(running: World) -> None:
    running.script = raising(Conflict("moved"))
    running.controller.enqueue(A)
    running.rest_after((0, 1), (1, 2))
    running.script = lambda _: Result(is_done=False)
    running.controller._run_in(0.0, A)  # as by an event that was judged just before the failure was counted
    running.rest(3)
    running.controller.resume(A)
    running.rest(4)
    assert running.times() == [0, 1, 1, 1]


def test_a_changed_desired_state_runs_a_failing_key_at_once_and_starts_its_back_off_afresh(
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
    running.run_until(150)
    assert fails == [0, 1, 3, 7, 15, 31, 61, 91, 121]


def wake_and_fail(running: World, error: Exception) -> None:
    """Ten minutes in which each pass wakes its own key, as its writes do, and fails."""

    def script(key: Key) -> Result:
        running.controller.enqueue(key)
        raise error

    running.script = script
    running.controller.enqueue(A)
    running.rest(1)
    running.run_until(600)


def test_a_key_that_fails_reaches_the_cap_though_its_passes_wake_it(running: World) -> None:
    wake_and_fail(running, Conflict("moved"))
    assert longest_wait(running.times()) == 30
    assert len([when for when in running.times() if when > 60]) <= 2 * 540 / 31 + 1


@pytest.mark.exhaustive
def test_a_thousand_keys_that_fail_neither_delay_another_nor_each_other(world: World) -> None:
    bad = [Key("bad", f"{n}") for n in range(1000)]
    entered, release = threading.Event(), threading.Event()

    def script(key: Key) -> Result:
        if key == B:
            entered.set()
            assert release.wait(30)
        if key.namespace == "bad":
            raise Conflict("moved")
        return Result()

    world.script = script
    world.controller.start()
    for key in bad:
        world.controller.enqueue(key)
    world.rest(1000)
    world.run_until(127)
    assert all(world.times(key) == [0, 1, 3, 7, 15, 31, 61, 91, 121] for key in bad)

    world.controller.enqueue(B)  # holds the one worker until all others are due
    assert entered.wait(30)
    world.clock.advance(30)
    eventually(lambda: world.metrics.gauges.depth == 1000, clock=world.clock)
    before = len(world.passes)
    world.controller.enqueue(A)
    release.set()
    world.rest(9000 + 1000 + 2)
    assert world.passes[before][0] == A


def test_a_key_with_a_terminal_error_waits_if_its_own_passes_wake_it(running: World) -> None:
    wake_and_fail(running, InvalidSpec("size must be odd"))
    assert longest_wait(running.times()) == 30
