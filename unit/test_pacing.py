import pytest

from etcd_operator.pacing import Exponential, TokenBuckets
from unit.fakes.clock import FakeClock


def test_waits_grow_up_to_the_cap() -> None:
    waits = Exponential(0.5, cap=5.0)
    assert [waits.after(failures) for failures in range(1, 7)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_waits_may_grow_by_another_factor() -> None:
    waits = Exponential(0.8, cap=2.0, factor=1.5)
    assert [waits.after(failures) for failures in range(1, 5)] == pytest.approx([0.8, 1.2, 1.8, 2.0])


def test_any_number_of_failures_has_a_wait() -> None:
    assert Exponential(0.005, cap=30.0).after(10**9) == 30.0
    assert Exponential(1.0).after(10**9) < float("inf")


def test_tokens_come_back_one_by_one_up_to_the_burst() -> None:
    clock = FakeClock()
    buckets = TokenBuckets(clock, burst=2, refill_seconds=30.0, capacity=8)
    assert [buckets.take("a") for _ in range(3)] == [True, True, False]
    clock.advance(29.0)
    assert not buckets.take("a")
    clock.advance(1.5)
    assert [buckets.take("a") for _ in range(2)] == [True, False]
    clock.advance(1000.0)
    assert [buckets.take("a") for _ in range(3)] == [True, True, False]


def test_keys_do_not_share_tokens() -> None:
    buckets = TokenBuckets(FakeClock(), burst=1, refill_seconds=30.0, capacity=8)
    assert [buckets.take(key) for key in "aabb"] == [True, False, True, False]


def test_the_key_that_was_used_longest_ago_is_forgotten_first() -> None:
    buckets = TokenBuckets(FakeClock(), burst=1, refill_seconds=30.0, capacity=2)
    assert [buckets.take(key) for key in "abac"] == [True, True, False, True]  # "c" displaces "b"
    assert not buckets.take("a")
    assert buckets.take("b")
