"""In a pass no rule is evaluated twice, observation included, and no fact twice for one state."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType

import pytest

from etcd_operator.controllers.etcd_cluster.decide import plan
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.reconciler import ClusterReconciler
from unit.fakes.apiserver import Kind
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE
from unit.passes.upgrades import BOTH, of, set_version

RULES = {rule.__code__: rule.__name__ for rule in (*plan.PRELIMINARY, *plan.RULES)}
PASS = ClusterReconciler.reconcile.__code__
KNOWN = fact(len).__code__  # type: ignore[arg-type]


@dataclass
class Profile:
    """How often rules were evaluated in each pass, and facts for each state."""

    passes: list[Counter[CodeType]] = field(default_factory=list)
    facts: Counter[tuple[CodeType, int]] = field(default_factory=Counter)
    states: list[ClusterState] = field(default_factory=list)
    """Kept, so that each has an identity of its own."""

    def called(self, frame: FrameType, event: str, argument: object) -> None:
        """What the interpreter reports."""
        del argument
        if event != "call":
            return
        code = frame.f_code
        if code is PASS:
            self.passes.append(Counter())
        elif code in RULES and self.passes:
            self.passes[-1][code] += 1
        elif frame.f_back is not None and frame.f_back.f_code is KNOWN:
            state = frame.f_locals["state"]
            self.states.append(state)
            self.facts[code, id(state)] += 1


@contextmanager
def profiled() -> Iterator[Profile]:
    profile, before = Profile(), sys.getprofile()
    sys.setprofile(profile.called)
    try:
        yield profile
    finally:
        sys.setprofile(before)


def grow(made: Bench, kind: Kind) -> None:
    size = "size" if kind is COREOS else "replicas"
    made.edit(kind, "c", {"spec": {size: 4}})


def shrink(made: Bench, kind: Kind) -> None:
    size = "size" if kind is COREOS else "replicas"
    made.edit(kind, "c", {"spec": {size: 2}})


def upgrade(made: Bench, kind: Kind) -> None:
    set_version(made, kind, "3.5.35")


def lose_a_member(made: Bench, kind: Kind) -> None:
    if kind is IMPROBABLE:
        made.lose_claim("c-1")
    else:
        made.delete(PODS, "c-0001")
    made.world.settle()


def lose_the_quorum(made: Bench, kind: Kind) -> None:
    """Ephemeral members are recovered; for persistent ones a recovery is offered."""
    for number in (0, 1):
        if kind is IMPROBABLE:
            made.lose_claim(f"c-{number}")
        else:
            made.delete(PODS, f"c-{number:04}")
    made.world.settle()


def nothing(made: Bench, kind: Kind) -> None:
    """A cluster that stays settled."""
    del made, kind


CHANGES: dict[Callable[[Bench, Kind], None], str] = {
    nothing: "report",
    grow: "up",
    shrink: "down",
    upgrade: "roll",
    lose_a_member: "lost_member",
    lose_the_quorum: "recover",
}


@BOTH
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_no_rule_and_no_fact_is_evaluated_twice(change: Callable[[Bench, Kind], None], kind: Kind) -> None:
    with bootstrapped(*of(kind, "3.5.34")) as made:
        assert made.operator is not None
        with profiled() as profile:
            change(made, kind)
            made.wait(2 * 60.0)
            if change is not lose_the_quorum:
                made.settle()
        evaluated = {name for found in profile.passes for name in map(RULES.__getitem__, found)}
        assert CHANGES[change] in evaluated
        twice = [RULES[code] for found in profile.passes for code, count in found.items() if count > 1]
        assert twice == []
        again = [code.co_qualname for (code, _), count in profile.facts.items() if count > 1]
        assert again == []
        assert {code.co_qualname for code, _ in profile.facts} >= {"next_step", "next_removal", "removable"}
