import pytest

from e2e.support.measuring import ATTEMPTS, assert_at_most


class Measurements:
    """Returns one figure after the other, and counts."""

    def __init__(self, *figures: float) -> None:
        self.figures = figures
        self.count = 0

    def __call__(self) -> float:
        self.count += 1
        return self.figures[self.count - 1]


@pytest.mark.parametrize(("figures", "expected"), [((1.0, 9.0), 1.0), ((9.0, 8.0, 0.5), 0.5)])
def test_the_first_measurement_below_the_limit_is_enough(figures: tuple[float, ...], expected: float) -> None:
    measure = Measurements(*figures)
    assert assert_at_most(1.0, measure, "seconds") == expected
    assert measure.count == figures.index(expected) + 1


def test_a_cost_that_repeats_fails_with_all_its_figures_first() -> None:
    measure = Measurements(*[3.0, 2.5, 1.01][:ATTEMPTS])
    with pytest.raises(AssertionError, match=r"^3\.00, 2\.50, 1\.01: more than 1 each time: seconds of both"):
        assert_at_most(1.0, measure, lambda: f"seconds {'of both'}")
    assert measure.count == ATTEMPTS


def test_an_error_of_a_measurement_is_never_repeated() -> None:
    def lose() -> float:
        raise AssertionError("a write is lost")

    with pytest.raises(AssertionError, match=r"^a write is lost$"):
        assert_at_most(1.0, lose, "seconds")
