import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.engine.backoff import Backoff
from unit.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def steady() -> float:
    """A random source that never shortens a wait."""
    return 0.0


def test_each_failure_doubles_the_wait_up_to_the_cap(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(clock, base=1, cap=60, random=steady)
    assert [backoff.failed("a") for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_items_back_off_apart(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(clock, base=1, random=steady)
    assert [backoff.failed(item) for item in "aab"] == [1, 2, 1]


def test_a_forgotten_item_starts_afresh_and_costs_no_memory(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(clock, base=1, random=steady)
    backoff.failed("a")
    backoff.failed("a")
    assert backoff.failures("a") == 2
    backoff.forget("a")
    backoff.forget("never seen")
    assert not backoff._failing
    assert backoff.failures("a") == 0
    assert not backoff._failing
    assert backoff.failed("a") == 1


@given(st.floats(0, 1, exclude_max=True), st.integers(20, 1100))
def test_after_many_failures_the_wait_is_half_to_all_of_the_cap(random: float, failures: int) -> None:
    backoff: Backoff[str] = Backoff(FakeClock(), cap=60, random=lambda: random)
    for _ in range(failures):
        backoff.failed("a")
    assert 30 <= backoff.failed("a") <= 60


def test_waits_are_spread_by_default(clock: FakeClock) -> None:
    backoff: Backoff[int] = Backoff(clock, base=1)
    assert len({backoff.failed(item) for item in range(20)}) > 1


def test_a_thousand_items_that_fail_make_none_of_them_wait_longer_than_the_cap(clock: FakeClock) -> None:
    backoff: Backoff[int] = Backoff(clock)
    for _ in range(20):
        assert max(backoff.failed(item) for item in range(1000)) <= 30
    assert backoff.failed(1000) <= 0.005


def test_an_item_waits_from_its_failure_to_its_next_try(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(clock, base=4, random=steady)
    assert backoff.left("a") == 0
    backoff.failed("a")
    clock.advance(1)
    assert backoff.left("a") == 3
    clock.advance(4)
    assert backoff.left("a") == 0
    backoff.failed("a")
    backoff.begin("a")
    backoff.begin("never seen")
    assert (backoff.left("a"), backoff.failures("a")) == (0, 2)


def test_of_two_tries_in_a_row_an_event_brings_one_forward(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(clock, base=8, random=steady)
    backoff.failed("a")
    assert backoff.bring_forward("a") == 1
    clock.advance(0.25)
    assert (backoff.bring_forward("a"), backoff.left("a")) == (0.75, 0.75)
    clock.advance(1)
    backoff.begin("a")
    assert backoff.failed("a") == 16
    assert backoff.bring_forward("a") == 16  # the event may have come of the try itself
    clock.advance(16)
    backoff.begin("a")
    assert backoff.failed("a") == 30
    assert backoff.bring_forward("a") == 1


def test_an_event_brings_no_short_wait_forward(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(clock, base=0.5, random=steady)
    assert backoff.bring_forward("a") == 0
    backoff.failed("a")
    assert backoff.bring_forward("a") == 0.5
    assert backoff.failed("a") == 1
    assert backoff.failed("a") == 2
    assert backoff.bring_forward("a") == 1  # none has been brought forward yet


def test_an_event_does_not_shorten_the_wait_that_a_server_requested(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(clock, base=8, random=steady)
    assert backoff.failed("a", at_least=5) == 8
    assert backoff.bring_forward("a") == 5


def test_failures_of_many_threads_are_all_counted(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(clock)
    threads = [threading.Thread(target=lambda: [backoff.failed("a") for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert backoff.failures("a") == 4000
