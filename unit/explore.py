"""Runs the random models with new seeds for a given time: what `hack/test --explore` calls.

Prints how many runs and steps each model made, and the seeds. A run that breaks what must hold ends all of
it: exit code 1, the steps that lead there, and the command that repeats it. What is found becomes an explicit
test in unit/simulation/test_counterexamples.py.
"""

import argparse
import os
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from hypothesis import seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from unit.simulation.test_disaster_model import Disasters
from unit.simulation.test_membership_model import Memberships
from unit.simulation.test_model import Bootstraps
from unit.simulation.test_recovery_model import ManualRecoveries, Recoveries
from unit.simulation.test_restore_model import Restores
from unit.simulation.test_stored_model import StoredRecoveries
from unit.simulation.test_upgrade_model import Upgrades

MODELS: dict[str, type[RuleBasedStateMachine]] = {
    model.__name__: model
    for model in (
        Bootstraps,
        Memberships,
        Upgrades,
        Recoveries,
        Disasters,
        ManualRecoveries,
        StoredRecoveries,
        Restores,
    )
}
RUNS = 100
"""Runs with one seed."""

STEPS = 80
"""Steps of one run at most: twice as many as in the tests."""

REPORT_EVERY = 60.0
"""Seconds between two lines of progress."""

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one seed. `failure`: the report of a run that broke what must hold, else empty."""

    model: str
    seed: int
    runs: int
    steps: int
    failure: str


@dataclass(slots=True)
class Tally:
    """The figures so far, by model."""

    runs: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    seeds: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count what one seed did."""
        self.runs[outcome.model] += outcome.runs
        self.steps[outcome.model] += outcome.steps
        self.seeds[outcome.model] += 1

    def lines(self) -> Iterator[str]:
        """One line for each model."""
        for model in MODELS:
            yield (
                f"{model:<16} {self.seeds[model]:5} seeds {self.runs[model]:8} runs "
                f"{self.steps[model]:10} steps"
            )


def seconds_of(text: str) -> float:
    """`90s`, `30m`, `2h` or a number of seconds. Raises ArgumentTypeError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if found is None or not float(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 90s, 30m or 2h")
    return float(found[1]) * UNITS[found[2] or "s"]


def explore(model: str, number: int, runs: int = RUNS) -> Outcome:
    """Run one model with one seed."""
    made = Counter[str]()
    chosen = settings(
        MODELS[model].TestCase.settings,
        max_examples=runs,
        stateful_step_count=STEPS,
        derandomize=False,
        database=None,
    )
    failure = ""
    try:
        run_state_machine_as_test(seed(number)(_counted(MODELS[model], made)), settings=chosen)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        failure = "\n\n".join(_reports(error))
    return Outcome(model=model, seed=number, runs=made["runs"], steps=made["steps"], failure=failure)


def _reports(error: BaseException) -> Iterator[str]:
    """What Hypothesis reports: one text for each distinct failure."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _reports(each)
        return
    yield "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])


def _counted(model: type[RuleBasedStateMachine], made: Counter[str]) -> type[RuleBasedStateMachine]:
    """The model, and how far it goes."""

    def check_invariants(self: RuleBasedStateMachine, *args: Any, **kwargs: Any) -> None:
        made["steps"] += 1
        model.check_invariants(self, *args, **kwargs)

    def teardown(self: RuleBasedStateMachine) -> None:
        made["runs"] += 1
        model.teardown(self)

    return type(model.__name__, (model,), {"check_invariants": check_invariants, "teardown": teardown})


def run(seconds: float, workers: int, models: Sequence[str]) -> int:
    """Explore for so long; the exit code."""
    ends = time.monotonic() + seconds
    reported = time.monotonic()
    tally, failures, turn = Tally(), list[Outcome](), 0
    with ProcessPoolExecutor(workers) as pool:
        pending: set[Future[Outcome]] = set()
        while True:
            while len(pending) < workers and time.monotonic() < ends and not failures:
                pending.add(pool.submit(explore, models[turn % len(models)], secrets.randbits(32)))
                turn += 1
            if not pending:
                break
            done, pending = wait(pending, timeout=REPORT_EVERY, return_when=FIRST_COMPLETED)
            for future in done:
                outcome = future.result()
                tally.add(outcome)
                failures += [outcome] if outcome.failure else []
            if time.monotonic() - reported > REPORT_EVERY:
                reported = time.monotonic()
                left = max(0.0, ends - reported)
                print(f"{sum(tally.runs.values())} runs so far, {left / 60:.0f} minutes left", flush=True)
    return _report(tally, failures)


def _report(tally: Tally, failures: Sequence[Outcome]) -> int:
    for outcome in failures:
        print(f"\n{outcome.failure}\n\nfound by {outcome.model} with the seed {outcome.seed}; to repeat it:")
        print(f"  python -m unit.explore --model {outcome.model} --seed {outcome.seed}\n")
    print("\n".join(tally.lines()))
    print("counterexamples found" if failures else "nothing found that must not happen")
    return 1 if failures else 0


def main() -> int:
    """The command line; the exit code: 0 nothing found, 1 a counterexample, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m unit.explore", description=__doc__)
    parser.add_argument(
        "--for",
        dest="seconds",
        type=seconds_of,
        default=1800.0,
        metavar="TIME",
        help="such as 30m (the default)",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: CPUs)")
    parser.add_argument("--model", choices=sorted(MODELS), help="only this one (default: all, in turn)")
    parser.add_argument("--seed", type=int, help="repeat this one; needs --model")
    options = parser.parse_args()
    if options.seed is None:
        return run(options.seconds, options.workers, [options.model] if options.model else list(MODELS))
    if options.model is None:
        parser.error("--seed needs --model")
    outcome, tally = explore(options.model, options.seed), Tally()
    tally.add(outcome)
    return _report(tally, [outcome] if outcome.failure else [])


if __name__ == "__main__":
    sys.exit(main())
