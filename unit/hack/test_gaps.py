"""Which gaps in writes a change of a cluster is held responsible for."""

from collections.abc import Iterator

import pytest

from e2e.support.measuring import assert_at_most
from e2e.support.resizing import GAP_SECONDS, gap_beyond
from e2e.support.writer import Writer


def writer(*gaps: tuple[float, float]) -> Writer:
    """One that wrote ten times a second from 0 to 60 s, but not in `gaps`: begin and end."""
    made = Writer(list)
    tenths = (number / 10 for number in range(601))
    made._moments = [at for at in tenths if not any(begin < at < end for begin, end in gaps)]
    return made


@pytest.mark.parametrize(
    ("gaps", "control", "expected"),
    [
        ([], [], 0.0),
        ([(10.0, 13.0)], [], 3.0),
        ([(10.0, 13.0)], [(9.0, 14.0)], 0.0),
        ([(10.0, 14.0)], [(10.0, 12.5)], 1.5),
        ([(10.0, 13.0)], [(30.0, 39.0)], 3.0),
        ([(10.0, 11.0), (30.0, 32.0)], [], 2.0),
    ],
    ids=[
        "neither stops",
        "only the changed cluster",
        "a stall of the machine",
        "an election after a stall",
        "a stall at another time",
        "the longest counts",
    ],
)
def test_only_time_in_which_the_unchanged_cluster_took_writes_counts(
    gaps: list[tuple[float, float]], control: list[tuple[float, float]], expected: float
) -> None:
    assert gap_beyond(writer(*gaps), writer(*control)) == pytest.approx(expected)


def rounds(*changed: Writer) -> Iterator[float]:
    return (gap_beyond(each, writer()) for each in changed)


def test_a_gap_that_comes_with_each_change_fails_and_one_that_comes_once_does_not() -> None:
    slow, quick = writer((10.0, 13.0)), writer((10.0, 10.5))
    once, always = rounds(slow, quick), rounds(slow, slow, slow)
    assert assert_at_most(GAP_SECONDS, lambda: next(once), "seconds without a write") == pytest.approx(0.5)
    with pytest.raises(AssertionError, match=r"^3\.00, 3\.00, 3\.00: more than 2 each time"):
        assert_at_most(GAP_SECONDS, lambda: next(always), "seconds without a write")
