"""Gaps and windows: what the instruments of upgrades report rests on this arithmetic."""

import pytest

from e2e.support.intervals import (
    Answer,
    Claim,
    Interval,
    leaderless,
    longest_beyond,
    longest_gap,
    lost_writes,
    outages,
)

A, B, C = 0xA, 0xB, 0xC
ADDRESS = {A: "10.0.0.1", B: "10.0.0.2", C: "10.0.0.3"}

Row = tuple[float, int, int | None]
"""Moment, who answers, whom it names (None: it does not answer)."""


def windows(*rows: Row, voters: int = 3, end: float = 10.0) -> list[tuple[float, float]]:
    answers = [
        Answer(moment, ADDRESS[member], None if leader is None else Claim(member=member, leader=leader))
        for moment, member, leader in rows
    ]
    return [(found.start, found.end) for found in leaderless(answers, voters=voters, end=end)]


ALL_NAME_A: list[Row] = [(0.0, A, A), (0.1, B, A), (0.2, C, A)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([], [], id="a settled cluster has none"),
        pytest.param([(1.0, C, 0)], [], id="one follower that knows none leaves a majority"),
        pytest.param([(1.0, B, 0), (1.1, C, 0), (1.5, B, A)], [(1.1, 1.5)], id="a majority knows none"),
        pytest.param([(1.0, A, None), (2.0, A, A)], [(1.0, 2.0)], id="the leader that all name is silent"),
        pytest.param([(1.0, C, None)], [], id="a silent follower is no loss"),
        pytest.param([(1.0, A, None)], [(1.0, 10.0)], id="a window that never closes ends with the watch"),
        pytest.param(
            [(1.0, A, None), (2.0, B, B), (2.1, C, B)],
            [(1.0, 2.1)],
            id="the next leader counts when a majority names it",
        ),
        pytest.param(
            [(1.0, A, None), (2.0, C, B), (2.2, B, B)],
            [(1.0, 2.2)],
            id="the next leader counts when it reports so itself",
        ),
        pytest.param([(1.0, B, B), (1.0, A, 0), (1.2, C, B)], [(1.0, 1.2)], id="an election is a window"),
        pytest.param([(1.0, B, B), (1.1, C, B)], [], id="a majority may change its mind between two answers"),
        pytest.param(
            [(1.0, A, 0), (1.1, A, A), (3.0, A, 0), (3.5, A, A)], [(1.0, 1.1), (3.0, 3.5)], id="two windows"
        ),
    ],
)
def test_a_leader_is_who_a_majority_and_itself_names(
    rows: list[Row], expected: list[tuple[float, float]]
) -> None:
    assert windows(*ALL_NAME_A, *rows) == expected


def test_before_the_first_leader_nothing_is_counted() -> None:
    assert windows((0.0, A, A), (0.5, B, 0), (1.0, B, A)) == []


def test_a_cluster_that_never_had_a_leader_had_none_all_the_time() -> None:
    assert windows((1.0, A, 0), (1.1, B, 0), end=4.0) == [(1.0, 4.0)]
    assert windows() == []


def test_the_majority_is_of_all_voters_not_of_those_that_answer() -> None:
    assert windows(*ALL_NAME_A, (1.0, C, None), voters=5) == [(1.0, 10.0)]
    assert windows((0.0, A, A), voters=1) == []
    assert windows((0.0, A, A), (0.1, B, A), voters=4) == [(0.0, 10.0)]


def test_answers_count_in_the_order_of_their_moments() -> None:
    late = windows(*ALL_NAME_A, (2.0, A, A), (1.0, A, None))
    assert late == [(1.0, 2.0)]


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        pytest.param([], 10.0, id="nothing at all"),
        pytest.param([4.0], 6.0, id="to the end"),
        pytest.param([7.0], 7.0, id="from the start"),
        pytest.param([1.0, 2.0, 5.5, 9.0], 3.5, id="between two"),
        pytest.param([9.0, 1.0, 5.5, 2.0], 3.5, id="in any order"),
        pytest.param([-50.0, 5.0, 50.0], 5.0, id="what lies outside does not count"),
    ],
)
def test_the_longest_gap_includes_both_ends(moments: list[float], expected: float) -> None:
    assert longest_gap(moments, Interval(0.0, 10.0)) == expected


def test_gaps_that_are_shorter_are_left_out() -> None:
    found = outages([1.0, 4.0, 4.5], Interval(0.0, 10.0), least=3.0)
    assert found == [Interval(1.0, 4.0), Interval(4.5, 10.0)]


@pytest.mark.parametrize(
    ("other", "expected"),
    [((0.0, 1.0), False), ((0.0, 1.1), True), ((1.2, 1.3), True), ((2.0, 3.0), False), ((0.0, 9.0), True)],
)
def test_intervals_meet_in_more_than_a_point(other: tuple[float, float], expected: bool) -> None:
    assert Interval(1.0, 2.0).meets(Interval(*other)) is expected


def test_a_write_is_lost_unless_stored_at_the_acknowledged_revision() -> None:
    acknowledged = {"k/1": 11, "k/2": 12, "k/3": 13}
    assert lost_writes(acknowledged, {"k/1": 11, "k/2": 12, "k/3": 13, "k/4": 14}) == []
    assert lost_writes(acknowledged, {"k/1": 11, "k/3": 99}) == ["k/2", "k/3"]


@pytest.mark.parametrize(
    ("outages", "control", "longest"),
    [
        ([], [(0, 9)], 0),
        ([(0, 4), (10, 16)], [], 6),
        ([(0, 4), (10, 16)], [(9, 14)], 4),
        ([(10, 16)], [(8, 11), (12, 13), (15, 20)], 3),
        ([(10, 16)], [(0, 9.5), (16, 30)], 6),
        ([(10, 16)], [(0, 30)], 0),
    ],
    ids=[
        "no outage",
        "a control that always had a quorum",
        "an outage of the machine in the longer one",
        "several outages of the machine in one",
        "an outage of the machine at another time excuses nothing",
        "the machine alone",
    ],
)
def test_an_outage_counts_while_the_control_has_none(
    outages: list[tuple[float, float]], control: list[tuple[float, float]], longest: float
) -> None:
    found = longest_beyond([Interval(*each) for each in outages], [Interval(*each) for each in control])
    assert found == longest
