import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.engine.backoff import Backoff, TokenBucket
from unit.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def generous(clock: FakeClock) -> TokenBucket:
    return TokenBucket(clock, rate=1e9, burst=10**9)


def steady() -> float:
    """A random source that never shortens a wait."""
    return 0.0


def test_each_failure_doubles_the_wait_up_to_the_cap(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(generous(clock), base=1, cap=60, random=steady)
    assert [backoff.failed("a") for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_items_back_off_apart(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(generous(clock), base=1, random=steady)
    assert [backoff.failed(item) for item in "aab"] == [1, 2, 1]


def test_a_forgotten_item_starts_afresh_and_costs_no_memory(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(generous(clock), base=1, random=steady)
    backoff.failed("a")
    backoff.failed("a")
    assert backoff.failures("a") == 2
    backoff.forget("a")
    backoff.forget("never seen")
    assert not backoff._failures
    assert backoff.failures("a") == 0
    assert not backoff._failures
    assert backoff.failed("a") == 1


@given(st.floats(0, 1, exclude_max=True), st.integers(20, 3000))
def test_after_many_failures_the_wait_is_half_to_all_of_the_cap(random: float, failures: int) -> None:
    backoff: Backoff[str] = Backoff(generous(FakeClock()), random=lambda: random)
    backoff._failures["a"] = failures
    assert 30 <= backoff.failed("a") <= 60


def test_waits_are_spread_by_default(clock: FakeClock) -> None:
    backoff: Backoff[int] = Backoff(generous(clock), base=1)
    assert len({backoff.failed(item) for item in range(20)}) > 1


def test_a_bucket_gives_its_burst_at_once_and_then_its_rate(clock: FakeClock) -> None:
    bucket = TokenBucket(clock, rate=10, burst=3)
    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.advance(0.2)
    assert bucket.reserve() == pytest.approx(0.1)


def test_a_bucket_holds_no_more_than_its_burst(clock: FakeClock) -> None:
    bucket = TokenBucket(clock, rate=10, burst=2)
    clock.advance(3600)
    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0, 0, 0.1])


def test_the_larger_of_both_limits_holds(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(TokenBucket(clock, rate=0.5, burst=1), base=1, random=steady)
    assert backoff.failed("a") == 1  # its own wait
    assert backoff.failed("b") == 2  # the bucket's


def test_failures_of_many_threads_are_all_counted(clock: FakeClock) -> None:
    backoff: Backoff[str] = Backoff(generous(clock))
    threads = [threading.Thread(target=lambda: [backoff.failed("a") for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert backoff.failures("a") == 4000
