"""Collects a pair of state and plan wherever a simulation or a scenario test has a plan made.

In the simulations a few operators also observe after each step, without acting: each with other caches up to
date, members out of its reach, edits by the user, and variations of what it observes.
"""

import copy
import os
import random
import re
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide import plan as planner
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import Absence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.oracle import corpus
from unit.oracle.text import line_of

CLUSTER = "unit/controllers/etcd_cluster"
ADOPTIONS = f"{CLUSTER}/decide/adoption/test_adopt_model.py"
TESTS = {
    "scenarios": (
        f"{CLUSTER}/decide",
        f"{CLUSTER}/dialects",
        "unit/simulation",
        "unit/api",
        f"--deselect={ADOPTIONS}",
    ),
    "adoptions": (ADOPTIONS,),
    "passes": (
        *(f"{CLUSTER}/test_{name}.py" for name in ("adopt", "bootstrap", "take_over", "upgrade")),
        *(f"{CLUSTER}/recovery/test_{name}.py" for name in ("disaster", "offline", "quorum_lost")),
        f"{CLUSTER}/recovery/test_restore_in_place.py",
    ),
}
"""Arguments for pytest, by source."""

MODELS = (
    "Bootstraps",
    "Memberships",
    "Upgrades",
    "Recoveries",
    "Disasters",
    "ManualRecoveries",
    "StoredRecoveries",
)
"""Of `unit.explore`, the models in which plans for clusters are made."""

ALIKE = 3
"""How many pairs are kept that differ in numbers only, apart from versions and the numbers of members."""

OBSERVATIONS = 10
"""Additional ones after each step."""

RESOURCE: dict[str, tuple[Any, ...]] = {
    "size": (1, 2, 3, 4, 5),
    "version": ("3.5.34", "3.6.16", "3.6.17", "3.7.3"),
    "recovers_after": (None, 300.0),
    "keeps_backups": (False, True),
}
"""What users edit."""

TIMES = (0.0, 8.0, 10.0, 11.0, 30.0, 31.0, 60.0, 61.0, 120.0, 121.0, 600.0, 601.0, 3600.0)
"""Seconds: what decisions wait for, and a bit more."""

VARIATIONS: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    *(("state", name, TIMES) for name in ("unavailable_for", "age", "awaited_for", "served_for")),
    ("state", "absence", tuple(Absence(seconds=seconds, since="then") for seconds in TIMES)),
    ("state", "cluster_version", ("", "3.5.0", "3.6.0", "3.7.0")),
    ("member", "silent_for", TIMES),
    ("member", "snapshots", (None, 0, 1)),
    ("pod", "creating_for", TIMES),
    ("pod", "restarts", (1, 2, 3, 4)),
    ("pod", "problem", (PodProblem(reason="CrashLoopBackOff", message="it crashes"),)),
    *(("pod", name, (True,)) for name in ("is_terminating", "is_on_lost_node", "started_lately")),
    *(
        ("pod", name, (True,))
        for name in ("has_restarted", "has_no_data", "has_broken_data", "can_never_join")
    ),
    ("answer", "committed", (1, 12, 1500, 7000)),
    ("answer", "revision", (1, 10, 1000)),
    ("answer", "leader", ("",)),
    *(("answer", name, (True,)) for name in ("is_out_of_space", "has_other_errors")),
)
"""What comes to pass in any state: values of fields of the state, or of one member."""

NUMBER = re.compile(r"(?<![-.\w])\d+(?:\.\d+)?(?![-.\w])|(?<=pod-)\d+|(?<=peer-)\d+|(?<=claim-)\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Tests, or a model with one seed, and where their pairs go."""

    name: str
    seed: int
    runs: int
    path: Path


class Recorder:
    """Keeps distinct pairs, as far as they are not too much alike."""

    def __init__(self) -> None:
        self.kept: set[str] = set()
        self._alike: Counter[bytes] = Counter()

    def add(self, line: str) -> bool:
        """Whether it is kept."""
        if line in self.kept:
            return False
        shape = sha256(NUMBER.sub("0", line).encode()).digest()
        if self._alike[shape] == ALIKE:
            return False
        self._alike[shape] += 1
        self.kept.add(line)
        return True


def record(path: Path, *, seeds: int, runs: int, processes: int) -> None:
    """Write the corpus and print its figures. seeds: of each model. runs: with each seed."""
    os.environ["PYTHONHASHSEED"] = "0"  # the order in sets decides what simulations do
    sources, reasons, recorder = Counter[str](), Counter[str](), Recorder()
    with (
        tempfile.TemporaryDirectory(dir=path.parent) as folder,
        ProcessPoolExecutor(processes, max_tasks_per_child=1) as pool,
    ):
        wanted = [
            Source(name=name, seed=number, runs=runs, path=Path(folder) / str(number))
            for number, name in enumerate((*TESTS, *MODELS * seeds))
        ]
        for source, _ in zip(wanted, pool.map(_collect, wanted), strict=True):
            for line in filter(recorder.add, corpus.read(source.path)):
                sources[source.name] += 1
                reasons[msgspec.json.decode(line)["plan"]["reason"]] += 1
            print(f"{len(recorder.kept):8} pairs after {source.name} {source.seed}", flush=True)
    lines = sorted(recorder.kept)
    corpus.write(path, lines)
    for figures in (sources, reasons):
        print("", *(f"{count:8} {name}" for name, count in figures.most_common()), sep="\n")
    print(f"\n{len(lines)} pairs, sha256 {corpus.digest(lines)}")


def _collect(source: Source) -> None:
    """In a process of its own: who imports the planner from now on gets the one that records."""
    recorder, original = Recorder(), planner.plan

    def plan(state: ClusterState) -> Plan:
        made = original(state)
        recorder.add(line_of(state, made))
        return made

    with mock.patch.object(planner, "plan", plan):
        if source.name in TESTS:
            options = ("-q", "-p", "no:cacheprovider", "-m", "not exhaustive and not long")
            failure = "" if pytest.main([*TESTS[source.name], *options]) == 0 else "a test failed"
        else:
            from unit import explore

            explore.MODELS[source.name] = _watched(explore.MODELS[source.name], source.seed)
            failure = explore.explore(source.name, source.seed, source.runs).failure
    if failure:
        raise RuntimeError(f"{source.name} {source.seed}: {failure}")
    corpus.write(source.path, sorted(recorder.kept))


def _watched(model: Any, seed: int) -> Any:
    """The model, with observations after each step."""
    chance = random.Random(seed)

    def check_invariants(self: Any, *args: Any, **kwargs: Any) -> None:
        model.check_invariants(self, *args, **kwargs)
        for _ in range(OBSERVATIONS if hasattr(self, "operator") else 0):
            state = _observed(self.operator, chance)
            if state is not None:
                planner.plan(state)

    return type(model.__name__, (model,), {"check_invariants": check_invariants})


def _observed(operator: Any, chance: random.Random) -> ClusterState | None:
    """What another operator observes, which leaves no trace in the world."""
    other = copy.copy(operator)
    other.cache, other.awaited = dict(operator.cache), set()
    other.memory = copy.deepcopy(operator.memory)
    for kind in other.kinds:
        if chance.random() < 0.7:
            other.deliver(kind)
    if other.cache["resource"] is not None and chance.random() < 0.2:
        name, values = chance.choice(list(RESOURCE.items()))
        other.cache["resource"] = replace(other.cache["resource"], **{name: chance.choice(values)})
    near = [process for process in operator.world.processes.values() if not process.is_unreachable]
    share = chance.choice((0.0, 0.2, 0.5))
    away = [process for process in near if chance.random() < share]
    for process in away:
        process.is_unreachable = True
    state: ClusterState | None = other.observe()
    for process in away:
        process.is_unreachable = False
    for _ in range(chance.choice((0, 1, 1, 2, 3)) if state is not None else 0):
        state = _varied(state, chance)
    return state


def _varied(state: Any, chance: random.Random) -> Any:
    part, name, values = chance.choice(VARIATIONS)
    change = {name: chance.choice(values)}
    if part == "state":
        return replace(state, **change)
    fitting = [each for each in state.members if part == "member" or getattr(each, part) is not None]
    if name in ("silent_for", "has_no_data", "has_broken_data", "can_never_join", "creating_for"):
        fitting = [each for each in fitting if each.answer is None]
    if not fitting:
        return state
    old = chance.choice(fitting)
    new = replace(old, **(change if part == "member" else {part: replace(getattr(old, part), **change)}))
    return replace(state, members=tuple(new if each is old else each for each in state.members))
