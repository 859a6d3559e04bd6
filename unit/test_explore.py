"""The exploring of the models: what it counts, what it makes of a finding, and that its seeds repeat."""

import argparse

import pytest
from hypothesis.stateful import RuleBasedStateMachine

from unit import explore
from unit.simulation.test_model import Bootstraps


class Failing(Bootstraps):
    """Finds something in the first run."""

    def teardown(self) -> None:
        raise AssertionError("what never must be")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(explore.MODELS, "Failing", Failing)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("30m", 1800.0), ("2h", 7200.0), ("5", 5.0), ("0.5m", 30.0)]
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert explore.seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "soon", "-1m", "0", "5d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="30m"):
        explore.seconds_of(text)


def test_a_seed_gives_the_same_runs_each_time() -> None:
    first, again = explore.explore("Bootstraps", 7, runs=5), explore.explore("Bootstraps", 7, runs=5)
    assert first == again
    assert first.failure == ""
    assert first.runs >= 5
    assert first.steps > first.runs


def test_seeds_differ() -> None:
    assert len({explore.explore("Bootstraps", number, runs=5).steps for number in range(4)}) > 1


@pytest.mark.exhaustive
def test_a_finding_is_reported_with_what_repeats_it(
    failing: None, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = explore.explore("Failing", 3, runs=5)
    assert "what never must be" in outcome.failure
    assert explore._report(explore.Tally(), [outcome]) == 1
    assert "python -m unit.explore --model Failing --seed 3" in capsys.readouterr().out


def test_all_models_are_explored() -> None:
    def below(kind: type[RuleBasedStateMachine]) -> set[type[RuleBasedStateMachine]]:
        return {kind, *(other for sub in kind.__subclasses__() for other in below(sub))}

    known = below(RuleBasedStateMachine)
    leaves = {
        kind for kind in known if hasattr(kind, "begin") and kind.__module__.startswith("unit.simulation")
    }
    assert set(explore.MODELS.values()) == leaves
