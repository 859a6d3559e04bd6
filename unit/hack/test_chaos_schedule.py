from itertools import islice

import pytest

from chaosmonkey.schedule import JITTER, Fault, FaultKind, against_members, against_operator

KINDS = (FaultKind.DELETE, FaultKind.KILL, FaultKind.FREEZE)


def members(seed: int, count: int = 200, kinds: tuple[FaultKind, ...] = KINDS) -> list[Fault]:
    return list(islice(against_members(seed, interval=30, clusters=3, kinds=kinds), count))


def test_a_seed_gives_the_same_faults_each_time_and_another_seed_others() -> None:
    assert members(7) == members(7)
    assert members(7) != members(8)


def test_the_first_faults_of_a_seed_are_always_these() -> None:
    """A recorded seed repeats them."""
    faults = members(1, 3)
    first = [(each.kind, each.cluster, round(each.draw, 3), round(each.wait)) for each in faults]
    assert first == [("delete", 1, 0.509, 26), ("delete", 2, 0.304, 33), ("delete", 2, 0.906, 34)]


def test_the_members_faults_do_not_depend_on_the_operators() -> None:
    alone = members(7, 20)
    members_now = against_members(7, interval=30, clusters=3, kinds=KINDS)
    operator = against_operator(7, every=60, kinds=(FaultKind.DELETE, FaultKind.KILL))
    mixed = []
    for _ in range(20):
        mixed.append(next(members_now))
        next(operator)
    assert mixed == alone


def test_waits_stay_near_the_interval_and_differ() -> None:
    waits = [fault.wait for fault in members(3)]
    assert 30 * (1 - JITTER) <= min(waits) < max(waits) <= 30 * (1 + JITTER)
    assert sum(waits) / len(waits) == pytest.approx(30, rel=0.1)


def test_every_cluster_and_every_kind_has_its_turn_and_draws_reach_everybody() -> None:
    faults = members(5)
    assert {fault.cluster for fault in faults} == {0, 1, 2}
    assert {fault.kind for fault in faults} == set(KINDS)
    assert {int(fault.draw * 5) for fault in faults} == set(range(5))
    assert [fault.number for fault in faults] == list(range(1, 201))


def test_a_kind_that_is_named_twice_comes_twice_as_often() -> None:
    faults = members(5, 3000, (FaultKind.DELETE, FaultKind.DELETE, FaultKind.KILL))
    deleted = sum(fault.kind is FaultKind.DELETE for fault in faults)
    assert deleted / 3000 == pytest.approx(2 / 3, rel=0.1)
