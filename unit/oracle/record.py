"""Collects a pair of state and plan wherever a simulation or a scenario test has a plan made.

In the simulations a few operators also observe after each step, without acting: each with other caches up to
date, members out of its reach, edits by the user, and times for which it has seen no change.
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

OBSERVATIONS = 6
"""Additional ones after each step."""

RESOURCE: dict[str, tuple[Any, ...]] = {
    "size": (1, 2, 3, 4, 5),
    "version": ("3.5.34", "3.6.16", "3.6.17", "3.7.3"),
    "recovers_after": (None, 300.0),
    "keeps_backups": (False, True),
}
STATE: dict[str, tuple[Any, ...]] = {
    "age": (1.0, 3600.0),
    "awaited_for": (60.0, 600.0, 7200.0),
    "served_for": (60.0, 7200.0),
    "cluster_version": ("", "3.5.0", "3.6.0", "3.7.0"),
}
POD: dict[str, tuple[Any, ...]] = {
    "is_terminating": (True,),
    "is_on_lost_node": (True,),
    "started_lately": (True,),
    "has_restarted": (True,),
    "problem": (PodProblem(reason="CrashLoopBackOff", message="it crashes"),),
}
"""Values that others observe, by field: what users edit, and what comes to all states."""

VARIED = 0.07
"""The probability for each field."""

PATIENCE = 3600.0
"""Seconds after which no silence is waited for."""

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
    other.absences, other.inquiry = copy.deepcopy((operator.absences, operator.inquiry))
    for kind in other.kinds:
        if chance.random() < 0.7:
            other.deliver(kind)
    if other.cache["resource"] is not None:
        other.cache["resource"] = _varied(other.cache["resource"], RESOURCE, chance)
    if chance.random() < 0.3:
        other.unavailable_for += PATIENCE
        other.silent = {name: (uid, seconds + PATIENCE) for name, (uid, seconds) in other.silent.items()}
    near = [process for process in operator.world.processes.values() if not process.is_unreachable]
    share = chance.choice((0.0, 0.2, 0.5))
    away = [process for process in near if chance.random() < share]
    for process in away:
        process.is_unreachable = True
    state = other.observe()
    for process in away:
        process.is_unreachable = False
    if state is None:
        return None
    members = [replace(each, pod=each.pod and _varied(each.pod, POD, chance)) for each in state.members]
    varied: ClusterState = replace(_varied(state, STATE, chance), members=tuple(members))
    return varied


def _varied(value: Any, values: dict[str, tuple[Any, ...]], chance: random.Random) -> Any:
    return replace(
        value, **{name: chance.choice(those) for name, those in values.items() if chance.random() < VARIED}
    )
