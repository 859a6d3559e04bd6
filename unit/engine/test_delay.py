import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcd_operator.clock import Clock
from etcd_operator.engine.delay import DelayQueue
from unit.engine.support import Crashes
from unit.fakes.clock import FakeClock
from unit.waiting import eventually


class World:
    """A delay queue, what it delivered and when."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.delivered: list[tuple[str, float]] = []
        self.crashes = Crashes()
        self.on_delivery: Callable[[str], None] = lambda _: None
        self.delay = DelayQueue("t-delay", self._deliver, clock=self.clock, on_crash=self.crashes)

    def _deliver(self, item: str) -> None:
        self.delivered.append((item, self.clock.monotonic()))
        self.on_delivery(item)

    def is_asleep(self) -> bool:
        return bool(self.clock._waiting)

    def advance(self, seconds: float) -> None:
        """Move time on, and let the thread do all that is due."""
        self.clock.advance(seconds)
        now = self.clock.monotonic()
        eventually(
            lambda: all(when > now for when, _ in list(self.delay._ticket_of.values())), clock=self.clock
        )
        eventually(self.is_asleep)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.delay.start()
    yield world
    world.delay.stop()
    assert world.delay.loop.join(30)


def test_an_item_is_delivered_once_and_not_before_its_time(world: World) -> None:
    world.delay.add_after("a", 10)
    world.advance(9.9)
    assert world.delivered == []
    world.advance(0.1)
    world.advance(100)
    assert world.delivered == [("a", 10)]


def test_an_earlier_item_wakes_a_thread_that_sleeps_for_a_later_one(world: World) -> None:
    world.delay.add_after("late", 1000)
    eventually(world.is_asleep)
    world.delay.add_after("early", 0)
    eventually(lambda: len(world.delivered) == 1)  # without help from the clock
    assert world.delivered == [("early", 0)]


def test_items_come_in_the_order_of_their_times(world: World) -> None:
    for item, seconds in (("c", 3), ("a", 1), ("b", 2), ("b2", 2)):
        world.delay.add_after(item, seconds)
    world.advance(5)
    assert [item for item, _ in world.delivered] == ["a", "b", "b2", "c"]


@pytest.mark.parametrize("seconds", [0, -1], ids=["now", "a time that has passed"])
def test_what_is_due_is_delivered_at_once(world: World, seconds: float) -> None:
    world.delay.add_after("a", seconds)
    eventually(lambda: world.delivered == [("a", 0)], clock=world.clock)


def test_an_item_may_be_added_again_from_its_own_delivery(world: World) -> None:
    world.on_delivery = lambda item: world.delay.add_after(item, 10) if len(world.delivered) < 3 else None
    world.delay.add_after("a", 10)
    for _ in range(5):
        world.advance(10)
    assert world.delivered == [("a", 10), ("a", 20), ("a", 30)]


def test_an_infinite_delay_is_slept_through(world: World) -> None:
    world.delay.add_after("never", float("inf"))
    world.advance(1e9)
    assert world.delivered == []


def test_items_added_before_the_start_are_kept() -> None:
    world = World()
    world.delay.add_after("a", 1)
    world.delay.start()
    world.advance(1)
    assert world.delivered == [("a", 1)]
    world.delay.stop()
    assert world.delay.loop.join(30)


def test_a_stopped_queue_delivers_nothing_and_ends_its_thread(world: World) -> None:
    world.delay.add_after("a", 1)
    eventually(world.is_asleep)
    world.delay.stop()
    assert world.delay.loop.join(30)
    world.delay.add_after("b", 0)
    world.clock.advance(10)
    assert not world.delay._ticket_of
    assert world.delivered == []


def test_a_delivery_that_fails_is_reported_as_a_crash(world: World) -> None:
    def fail(_: str) -> None:
        raise ValueError("full")

    world.on_delivery = fail
    world.delay.add_after("a", 0)
    eventually(lambda: world.crashes == [("t-delay", "ValueError('full')")])


def test_bringing_items_forward_for_ever_costs_no_memory() -> None:
    world = World()
    for n in range(10_000):
        world.delay.add_after("a", 10_000 - n)
    assert len(world.delay._heap) < 100


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=30))
def test_each_item_is_delivered_once_at_its_earliest_time(asked: list[tuple[str, int]]) -> None:
    world = World()
    earliest: dict[str, int] = {}
    for item, seconds in asked:
        world.delay.add_after(item, seconds)
        earliest[item] = min(seconds, earliest.get(item, seconds))
    found: dict[str, float] = {}
    for now in range(21):
        for item in world.delay._pop_due(now):
            assert item not in found
            found[item] = now
    assert found == earliest
    assert not world.delay._ticket_of


def test_the_earliest_comes_first_whenever_superseded_times_have_been_dropped(world: World) -> None:
    world.delay.add_after("late", 1000)
    moment, size = 500, 0
    while len(world.delay._heap) > size:
        size, moment = len(world.delay._heap), moment - 1
        world.delay.add_after("soon", moment)
    world.advance(moment)
    assert world.delivered == [("soon", moment)]


def test_a_time_further_away_than_a_thread_can_wait_is_waited_for() -> None:
    crashes = Crashes()
    delay = DelayQueue[str]("t-delay", lambda _: None, clock=Clock(), on_crash=crashes)
    delay.start()
    delay.add_after("a", 2 * threading.TIMEOUT_MAX)
    eventually(lambda: bool(crashes) or bool(delay._changed._waiters))  # type: ignore[attr-defined]
    delay.stop()
    assert delay.loop.join(30)
    assert not crashes
