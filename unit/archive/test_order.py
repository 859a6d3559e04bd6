"""Which of several backups is the newest, whatever clocks, revisions and names show."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from etcd_operator.archive.retention import Stamp, newest_first

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
Given = tuple[str, int, float]
"""Etcd cluster, revision, hours after noon."""


def ordered(given: list[Given], latest: float = 24.0, running: str = "") -> list[Given]:
    placed = newest_first(
        given,
        lambda each: Stamp(each[0], each[1], NOON + timedelta(hours=each[2])),
        latest=NOON + timedelta(hours=latest),
        running=running,
    )
    return [backup for _, backup in placed]


CASES: dict[str, list[Given]] = {
    "revisions are numbers": [("a", 100, 3), ("a", 10, 2), ("a", 9, 1)],
    "the clock was set back an hour": [("a", 7, 0.2), ("a", 6, 0.1), ("a", 5, 1), ("a", 4, 0.9)],
    "an idle cluster": [("a", 5, 3), ("a", 5, 2), ("a", 5, 1)],
    "a recovery": [("b", 1_000_000_010, 3), ("b", 1_000_000_009, 2), ("a", 12, 1), ("a", 11, 0)],
    "created again, with small revisions": [("b", 3, 3), ("b", 2, 2), ("a", 500, 1)],
    "two clusters in turn": [("a", 7, 4), ("b", 3, 3), ("a", 6, 2), ("b", 2, 1)],
    "a former cluster is backed up once more": [("a", 9, 9), ("b", 3, 5), ("a", 8, 2)],
    "a recovery after the clock was set back": [("a", 8, 3), ("a", 7, 4), ("b", 99, 3.5), ("b", 98, 2)],
    "a clock that was far ahead, and a recovery": [("b", 2, 3), ("a", 9, 2), ("a", 8, 9999), ("a", 7, 1)],
    "a clock that was far ahead at first": [("b", 2, 3), ("a", 8, 1), ("a", 7, 9999)],
    "a clock that began in 1970": [("b", 2, 3), ("a", 9, -400_000), ("a", 8, 2), ("a", 7, 1)],
    "nothing": [],
}


@pytest.mark.parametrize("wanted", CASES.values(), ids=CASES)
def test_the_order_does_not_depend_on_the_order_of_listing(wanted: list[Given]) -> None:
    for given in itertools.permutations(wanted):
        assert ordered(list(given)) == wanted


def test_times_that_are_all_in_the_future_are_an_order_too() -> None:
    """The clock of who asks is behind: nothing that is new may seem old."""
    wanted: list[Given] = [("b", 3, 30), ("b", 2, 29), ("a", 8, 28), ("a", 7, 1)]
    assert ordered(wanted[::-1], latest=2.0) == wanted


def test_the_cluster_that_runs_comes_first() -> None:
    wanted: list[Given] = [("b", 3, 2), ("b", 2, 1), ("a", 8, 9)]
    assert ordered(wanted[::-1], running="b") == wanted


def test_a_time_never_contradicts_the_revisions() -> None:
    stamps = [Stamp("a", 5, NOON + timedelta(hours=1)), Stamp("a", 6, NOON)]
    placed = newest_first(stamps, lambda each: each)
    assert [time for time, _ in placed] == [NOON + timedelta(hours=1)] * 2
