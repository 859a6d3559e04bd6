"""The line of the late items, and what is held up."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from etcd_operator.clock import Clock
from etcd_operator.engine.workqueue import TURN, WorkQueue
from unit.engine.support import take_all
from unit.fakes.clock import FakeClock
from unit.waiting import eventually


def test_others_are_taken_before_late_items_however_many_there_are(queue: WorkQueue[str]) -> None:
    for n in range(1000):
        queue.add(f"late {n}", is_late=True)
    queue.add("a")
    queue.add("b")
    assert [item for item, _ in zip(take_all(queue), range(3), strict=False)] == ["a", "b", "late 0"]


def test_late_items_have_their_turn_while_others_keep_coming(queue: WorkQueue[str]) -> None:
    for n in range(3):
        queue.add(f"late {n}", is_late=True)
    taken = []
    for n in range(3 * TURN):
        queue.add(f"{n}")
        taken.append(queue.get())
        queue.done(taken[-1])
    assert [taken.index(f"late {n}") for n in range(3)] == [TURN - 1, 2 * TURN - 1, 3 * TURN - 1]
    assert queue.depth == 3


def test_an_item_that_is_late_no_more_leaves_that_line(queue: WorkQueue[str]) -> None:
    for item in "ab":
        queue.add(item, is_late=True)
    queue.add("b")
    queue.add("b", is_late=True)
    assert list(take_all(queue)) == ["b", "a"]


def test_an_item_that_is_late_no_more_has_waited_since_it_was_added(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add("a", is_late=True)
    clock.advance(5)
    queue.add("a")
    assert queue.stalled_seconds() == 5


def test_only_so_many_late_items_are_in_work_at_once(queue: WorkQueue[str]) -> None:
    queue.allow_late(1)
    for item in "abc":
        queue.add(item, is_late=True)
    assert queue.get() == "a"
    with pytest.raises(TimeoutError):
        queue.get(timeout=0)
    queue.add("d")
    assert queue.get() == "d"
    queue.done("a")
    assert queue.get() == "b"
    queue.allow_late(2)
    assert queue.get() == "c"


@pytest.mark.parametrize("how", ["one is done", "more are allowed"])
def test_a_worker_waits_for_its_share_of_late_items(
    queue: WorkQueue[str], clock: FakeClock, how: str
) -> None:
    queue.allow_late(1)
    queue.add("a", is_late=True)
    queue.add("b", is_late=True)
    queue.get()
    taken: list[str] = []
    threads = [threading.Thread(target=lambda: taken.append(queue.get())) for _ in range(1)]
    for thread in threads:
        thread.start()
    eventually(lambda: clock.waiting == 1)
    if how == "one is done":
        queue.done("a")
    else:
        queue.allow_late(2)
    for thread in threads:
        thread.join(4.5)  # before the fake clock's own five seconds
    assert taken == ["b"]


def test_a_shut_down_queue_hands_out_late_items_without_a_limit(queue: WorkQueue[str]) -> None:
    queue.allow_late(1)
    for item in "ab":
        queue.add(item, is_late=True)
    queue.shut_down()
    assert [queue.get(), queue.get()] == ["a", "b"]


@contextmanager
def watching(queue: WorkQueue[str], clock: FakeClock, seconds: float) -> Iterator[list[float]]:
    """When it was reported that something is held up for so long."""
    times: list[float] = []

    def watch() -> None:
        while queue.await_hold_up(seconds):
            times.append(clock.monotonic())

    thread = threading.Thread(target=watch)
    thread.start()
    eventually(lambda: clock.waiting == 1)
    yield times
    queue.shut_down()
    thread.join(4.5)  # before the fake clock's own five seconds
    assert not thread.is_alive()


def test_what_waits_behind_a_long_pass_is_reported_once_in_its_time(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    with watching(queue, clock, 2.0) as times:
        queue.add("long")
        queue.get()
        clock.advance(10)
        queue.add("a")
        for expected in ([12.0], [12.0, 14.0]):
            clock.advance(1.0)
            clock.advance(1.0)
            eventually(lambda expected=expected: times == expected, clock=clock)  # type: ignore[misc]


def test_one_long_pass_is_enough_though_others_go_on(queue: WorkQueue[str], clock: FakeClock) -> None:
    with watching(queue, clock, 2.0) as times:
        for item in ("long", "a", "b"):
            queue.add(item)
        queue.get()
        clock.advance(1.5)
        queue.done(queue.get())
        clock.advance(0.5)
        eventually(lambda: times == [2.0], clock=clock)
        assert queue.stalled_seconds() == 0.5


def test_a_long_line_that_moves_is_no_reason_for_a_report(queue: WorkQueue[str], clock: FakeClock) -> None:
    with watching(queue, clock, 2.0) as times:
        for n in range(10):
            queue.add(f"{n}")
        for _ in range(9):
            item = queue.get()
            clock.advance(1.0)
            queue.done(item)
        queue.get()
    assert times == []


@pytest.mark.parametrize(("before", "after"), [(1.5, 0.5), (0.5, 1.5)])
@pytest.mark.parametrize("comes_last", ["what waits", "what is in work"])
def test_a_hold_up_lasts_as_long_as_one_has_waited_and_another_been_in_work(
    queue: WorkQueue[str], clock: FakeClock, before: float, after: float, comes_last: str
) -> None:
    queue.add("long")
    if comes_last == "what waits":
        queue.get()
    else:
        queue.add("waits")
    clock.advance(before)
    if comes_last == "what waits":
        queue.add("waits")
    else:
        queue.get()
    clock.advance(after)
    assert queue._held_up() == after


def test_a_first_item_wakes_who_waits_for_a_hold_up() -> None:
    """On the real clock: that of the other tests wakes everybody whenever time moves."""
    queue: WorkQueue[str] = WorkQueue(Clock())
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(queue.await_hold_up(0.01)))
    thread.start()
    try:
        eventually(lambda: bool(queue._stirred._waiters))  # type: ignore[attr-defined]
        queue.add("long")
        queue.get()
        queue.add("waits")
        eventually(lambda: found == [True])
    finally:
        queue.shut_down()
        thread.join(30)
