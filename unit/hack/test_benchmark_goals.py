"""Which figures of a roll keep to the goals: the benchmark of upgrades reports nothing else."""

from collections import Counter
from typing import Any

import pytest

from benchmark.goals import Hop, judged, row, verdicts
from benchmark.rolling import Roll, differing
from benchmark.verdict import Verdict

PATCH = Hop(group="coreos.com", size=3, before="3.5.34", after="3.5.35")
MINOR = Hop(group="coreos.com", size=3, before="3.5.35", after="3.6.16")
SINGLE = Hop(group="coreos.com", size=1, before="3.5.34", after="3.5.35")


def roll(**changed: Any) -> Roll:
    clean: dict[str, Any] = {
        "seconds": 5.0,
        "puts": 500,
        "failures": Counter(),
        "longest_gap": 0.1,
        "gap_at_rest": 0.02,
        "leaderless": (0.03,),
        "blind": 0.02,
        "lost": (),
        "changed": (),
        "inconsistency": "",
    }
    return Roll(**{**clean, **changed})


BAD = roll(
    seconds=11.0,
    failures=Counter({"UNAVAILABLE": 1}),
    longest_gap=0.3,
    leaderless=(0.03, 1.1),
    lost=("roll/00000007",),
    changed=("ID of bench-1",),
    inconsistency="members hold different data",
)


def missed(hop: Hop, *rolls: Roll, failed: tuple[str, ...] = ()) -> set[str]:
    found = verdicts(hop, rolls, [roll()], failed=failed)
    return {each.name.removeprefix(f"{hop.name}: ") for each in found if not each.is_kept}


def one(hop: Hop, name: str, *rolls: Roll, by_hand: tuple[Roll, ...] = ()) -> Verdict:
    return next(each for each in verdicts(hop, rolls, by_hand) if each.name == f"{hop.name}: {name}")


CHANGED_FELT = {"longest_gap": 0.3, "failures": Counter({"UNAVAILABLE": 1}), "leaderless": (1.1,)}

KEPT_BY_ALL = {"acknowledged writes lost", "identities changed", "runs left inconsistent"}
FELT = {"failed puts", "longest write gap", "longest leaderless window"}


@pytest.mark.parametrize(
    ("hop", "expected"),
    [
        pytest.param(PATCH, KEPT_BY_ALL | FELT | {"time, median"}, id="three members, patch"),
        pytest.param(MINOR, KEPT_BY_ALL | FELT, id="a minor version has no time to keep"),
        pytest.param(SINGLE, KEPT_BY_ALL, id="a single member cannot serve while it is away"),
    ],
)
def test_each_goal_is_held_against_the_sizes_that_can_keep_it(hop: Hop, expected: set[str]) -> None:
    assert missed(hop, BAD) == expected
    assert missed(hop, roll()) == set()


def test_one_bad_run_of_several_is_enough_for_all_but_the_time() -> None:
    assert missed(PATCH, roll(), BAD, roll()) == KEPT_BY_ALL | FELT


def test_a_roll_that_does_not_end_misses_whatever_else_is_measured() -> None:
    assert missed(PATCH, failed=("not within 180 s",)) == {"rolls not ended"}
    assert missed(PATCH, roll(), failed=("not within 180 s",)) == {"rolls not ended"}


def test_goals_themselves_are_kept() -> None:
    edge = roll(seconds=10.0, longest_gap=0.25, leaderless=(1.0,))
    assert missed(PATCH, edge) == set()


def test_what_clients_feel_is_judged_by_the_runs_that_were_quiet_at_rest() -> None:
    noisy = roll(
        gap_at_rest=0.126, longest_gap=0.9, failures=Counter({"UNAVAILABLE": 2}), leaderless=(0.5, 2.0)
    )
    quiet = roll(gap_at_rest=0.125, longest_gap=0.2)
    assert judged([noisy, quiet]) == [quiet]
    assert missed(PATCH, noisy, quiet) == set()
    assert [one(PATCH, name, noisy, quiet).value for name in sorted(FELT)] == [0, 0.03, 0.2]
    assert missed(PATCH, noisy, roll(**CHANGED_FELT)) == FELT


def test_what_was_not_judged_is_reported() -> None:
    noisy = roll(gap_at_rest=0.9, longest_gap=0.8, failures=Counter({"UNAVAILABLE": 2}), leaderless=(2.0,))
    notes = {name: one(PATCH, name, noisy, roll()).note for name in FELT}
    assert all("1 of 2 runs quiet" in note for note in notes.values())
    assert "all: 2 of 1002" in notes["failed puts"]
    assert "800 ms (900 ms), 100 ms (20 ms)" in notes["longest write gap"]
    assert "all: 2, longest 2000 ms" in notes["longest leaderless window"]


def test_what_must_never_happen_is_judged_by_every_run() -> None:
    noisy = roll(gap_at_rest=9.0, lost=("roll/1",), changed=("cluster ID",), inconsistency="two clusters")
    assert missed(PATCH, noisy, roll()) == KEPT_BY_ALL


def test_noise_at_rest_excuses_no_gap_if_no_run_was_quiet() -> None:
    noisy = roll(longest_gap=0.9, gap_at_rest=0.8)
    assert judged([noisy]) == [noisy]
    assert missed(PATCH, noisy) == {"longest write gap"}
    assert "0 of 1 runs quiet" in one(PATCH, "longest write gap", noisy).note


def test_the_same_roll_by_hand_stands_beside_each_figure() -> None:
    by_hand = (
        roll(seconds=8.0, puts=98, failures=Counter({"DEADLINE": 2}), longest_gap=2.1, leaderless=(1.5,)),
    )
    assert "by hand 8.0 s" in one(PATCH, "time, median", roll(), by_hand=by_hand).note
    assert "by hand 2 of 100" in one(PATCH, "failed puts", roll(), by_hand=by_hand).note
    assert "by hand 2100 ms" in one(PATCH, "longest write gap", roll(), by_hand=by_hand).note
    windows = one(PATCH, "longest leaderless window", roll(), by_hand=by_hand)
    assert "by hand 1, longest 1500 ms" in windows.note
    assert "not measured" in one(PATCH, "time, median", roll()).note


def test_reasons_of_failures_are_named() -> None:
    failures = Counter({"UNAVAILABLE: no leader": 2, "DEADLINE_EXCEEDED": 1})
    verdict = one(PATCH, "failed puts", roll(failures=failures))
    assert verdict.value == 3
    assert verdict.note.startswith("of 503; 1 of 1 runs quiet; ")
    assert verdict.note.endswith("2 x UNAVAILABLE: no leader; 1 x DEADLINE_EXCEEDED")


def test_a_row_reports_the_median_time_and_the_worst_of_the_rest() -> None:
    rolls = [roll(seconds=4.0), roll(seconds=6.0), BAD]
    assert row(PATCH, rolls) == (
        "| coreos.com, 3: 3.5.34 -> 3.5.35 | 6.0 s | 1 of 1501 | 300 ms | 20 ms | 4, longest 1100 ms |"
    )
    assert row(PATCH, []) == "| coreos.com, 3: 3.5.34 -> 3.5.35 | - | - | - | - | - |"


def test_identities_differ_by_value_or_by_being_there() -> None:
    assert differing({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == ()
    assert differing({"a": "1", "b": "2", "d": "4"}, {"a": "1", "b": "3", "c": "4"}) == ("b", "c", "d")
