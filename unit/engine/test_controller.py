"""What a pass means for its key, and what is logged of it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from etcd_operator.engine.controller import Result
from etcd_operator.errors import Conflict, InvalidSpec, Unavailable
from etcd_operator.keys import Key
from unit.engine.worlds import A, B, World, raising


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
    running.rest_after((0, 1), (1e6, 1))
    assert running.metrics == [("reconciled", "success")]


def test_a_result_may_ask_for_another_pass_later(running: World) -> None:
    running.script = lambda _: Result(requeue_after=30) if len(running.passes) < 2 else Result()
    running.controller.enqueue(A)
    running.rest_after((0, 1), (29, 1), (1, 2))
    assert running.times() == [0, 30]
    assert running.metrics.outcomes() == ["requeue_after", "success"]


def test_requeue_after_zero_is_another_pass_at_once(running: World) -> None:
    running.script = lambda _: Result(requeue_after=0) if len(running.passes) < 3 else Result()
    running.controller.enqueue(A)
    running.rest(3)
    assert running.times() == [0, 0, 0]


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
    running.script = lambda key: raising(bug if key == A else Unavailable("away"))(key)
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
        "error": "Unavailable: away",
        "retry_in": 1,
        "failures": 1,
    }


def test_only_a_conflict_that_repeats_is_worth_a_warning(running: World) -> None:
    running.script = raising(Conflict("moved"))
    with capture_logs() as logs:
        running.controller.enqueue(A)
        running.rest_after((0, 1), (1, 2))
    assert [(each["failures"], each["log_level"]) for each in logs] == [(1, "info"), (2, "warning")]


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
