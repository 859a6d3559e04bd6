from itertools import islice

import pytest

from chaosmonkey.schedule import JITTER, Deed, Strike, against_members, against_operator

DEEDS = (Deed.DELETE, Deed.KILL, Deed.FREEZE)


def members(seed: int, count: int = 200, deeds: tuple[Deed, ...] = DEEDS) -> list[Strike]:
    return list(islice(against_members(seed, interval=30, clusters=3, deeds=deeds), count))


def test_a_seed_gives_the_same_strikes_each_time_and_another_seed_others() -> None:
    assert members(7) == members(7)
    assert members(7) != members(8)


def test_the_first_strikes_of_a_seed_are_always_these() -> None:
    """A recorded seed repeats them."""
    strikes = members(1, 3)
    first = [(each.deed, each.cluster, round(each.draw, 3), round(each.wait)) for each in strikes]
    assert first == [("delete", 1, 0.509, 26), ("delete", 2, 0.304, 33), ("delete", 2, 0.906, 34)]


def test_the_members_strikes_do_not_depend_on_the_operators() -> None:
    alone = members(7, 20)
    members_now = against_members(7, interval=30, clusters=3, deeds=DEEDS)
    operator = against_operator(7, every=60, deeds=(Deed.DELETE, Deed.KILL))
    mixed = []
    for _ in range(20):
        mixed.append(next(members_now))
        next(operator)
    assert mixed == alone


def test_waits_stay_near_the_interval_and_differ() -> None:
    waits = [strike.wait for strike in members(3)]
    assert 30 * (1 - JITTER) <= min(waits) < max(waits) <= 30 * (1 + JITTER)
    assert sum(waits) / len(waits) == pytest.approx(30, rel=0.1)


def test_every_cluster_and_every_deed_has_its_turn_and_draws_reach_everybody() -> None:
    strikes = members(5)
    assert {strike.cluster for strike in strikes} == {0, 1, 2}
    assert {strike.deed for strike in strikes} == set(DEEDS)
    assert {int(strike.draw * 5) for strike in strikes} == set(range(5))
    assert [strike.number for strike in strikes] == list(range(1, 201))


def test_a_deed_that_is_named_twice_comes_twice_as_often() -> None:
    strikes = members(5, 3000, (Deed.DELETE, Deed.DELETE, Deed.KILL))
    deleted = sum(strike.deed is Deed.DELETE for strike in strikes)
    assert deleted / 3000 == pytest.approx(2 / 3, rel=0.1)


def test_only_deletion_works_everywhere_and_only_what_lasts_must_be_mended() -> None:
    assert [deed for deed in Deed if not deed.is_local] == [Deed.DELETE]
    assert [deed for deed in Deed if deed.lasts] == [Deed.FREEZE, Deed.NODE_STOP, Deed.NODE_CUT]
    assert [deed for deed in Deed if deed.is_of_node] == [Deed.NODE_STOP, Deed.NODE_CUT]
