"""The oracle: texts can be loaded, a changed plan is found, and a mapping explains what was renamed."""

import json
import sys
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide import plan as planner
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import bootstrapped, down, ephemeral, persistent
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import recovering
from unit.oracle import __main__ as command_line
from unit.oracle import corpus, mapping
from unit.oracle.record import ALIKE, Recorder
from unit.oracle.replay import replay
from unit.oracle.text import Object, classes_of, compact, line_of, node_of, value_of

STATES = (
    bootstrapped(),
    bootstrapped(ephemeral(recovers_after=0.1 + 0.2), has_quorum=False),
    bootstrapped(persistent(claim_template={"spec": {"accessModes": ["ReadWriteOnce"]}})),
    down(bootstrapped(), "db-1", silent_for=60.0),
    recovering(),
)
LINES = [line_of(state, mapping.decide(state)) for state in STATES]


class Colour(Enum):
    RED = "red"


class Inner(msgspec.Struct, frozen=True, rename="camel"):
    some_name: str = ""


@dataclass(frozen=True)
class Outer:
    """One of everything."""

    whole: int
    colours: frozenset[Colour] = frozenset()
    inner: tuple[Inner, ...] = ()
    raw: dict[str, Any] = field(default_factory=dict)
    real: float = 0.0
    maybe: str | None = None


VALUE = Outer(1, frozenset({Colour.RED}), (Inner("x"), Inner()), {"a": [1, {"b": None}]}, 0.1 + 0.2, "")
NODE: Object = {
    "!": "Outer",
    "whole": 1,
    "colours": {"!": "set", "items": [{"!": "Colour", "name": "RED"}]},
    "inner": [{"!": "Inner", "some_name": "x"}, {"!": "Inner"}],
    "raw": {"a": {"!": "list", "items": [1, {"b": None}]}},
    "real": 0.30000000000000004,
    "maybe": "",
}


@pytest.fixture(autouse=True)
def _nothing_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that are made now need none of the conversions."""
    for name in ("RENAMED", "FIELDS", "CONVERSIONS"):
        monkeypatch.setattr(mapping, name, {})
    monkeypatch.setattr(mapping, "is_left_out", lambda state, plan: False)


def test_values_have_a_text_and_can_be_loaded() -> None:
    assert node_of(VALUE) == NODE
    assert value_of(json.loads(compact(NODE)), classes_of(Outer)) == VALUE
    assert node_of(Outer(1)) == {"!": "Outer", "whole": 1}


@pytest.mark.parametrize("value", [{"!": 1}, {1: 1}, ValueError()])
def test_what_cannot_be_loaded_has_no_text(value: object) -> None:
    with pytest.raises(TypeError):
        node_of(value)


@pytest.mark.parametrize("line", LINES)
def test_states_are_loaded_as_they_were(line: str) -> None:
    state = value_of(json.loads(line)["state"], classes_of(ClusterState))
    assert state in STATES
    assert line_of(state, mapping.decide(state)) == line


def test_equal_plans_are_found_equal() -> None:
    assert replay(enumerate(LINES)).equal == len(LINES)


def test_a_changed_plan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(state: ClusterState) -> Plan:
        made = planner.plan(state)
        return replace(made, requeue_after=77.0) if made.reason == "Settled" else made

    monkeypatch.setattr(mapping, "decide", decide)
    result = replay(enumerate(LINES))
    assert (result.equal, result.reasons) == (3, {"Settled -> Settled": 2})
    assert 'plan.requeue_after\n    recorded "<default>"\n    today    77.0' in result.texts[0]


def test_messages_may_be_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "decide", lambda state: replace(planner.plan(state), message=""))
    assert replay(enumerate(LINES)).equal == 0
    assert replay(enumerate(LINES), ignores_messages=True).equal == len(LINES)


def test_a_state_that_cannot_be_loaded_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mapping.RENAMED, "Bootstrap", "Renamed")
    assert list(replay(enumerate(LINES[:1])).reasons) == ["Settled -> KeyError: 'Renamed'"]


def test_pairs_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "is_left_out", lambda state, plan: plan["reason"] == "Settled")
    result = replay(enumerate(LINES))
    assert (result.equal, result.left_out) == (3, 2)


def test_what_was_renamed_moved_or_dropped_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    def outer(converted: Object, recorded: tuple[Object, ...]) -> Object:
        """The name of the first inner one moves up."""
        return {**converted, "first": recorded[-1]["inner"][0]["some_name"]}

    def inner(converted: Object, recorded: tuple[Object, ...]) -> Object:
        """`whole` moves down."""
        return {**converted, "number": recorded[-2]["whole"]}

    monkeypatch.setitem(mapping.RENAMED, "Inner", "Nested")
    monkeypatch.setitem(mapping.FIELDS, "Inner", {"some_name": None})
    monkeypatch.setitem(mapping.FIELDS, "Outer", {"real": "exact", "colours": None, "raw": None})
    monkeypatch.setitem(mapping.CONVERSIONS, "Outer", outer)
    monkeypatch.setitem(mapping.CONVERSIONS, "Inner", inner)
    nested = {"!": "Nested", "number": 1}
    assert mapping.converted(NODE, ()) == {
        "!": "Outer",
        "whole": 1,
        "inner": [nested, nested],
        "exact": 0.30000000000000004,
        "maybe": "",
        "first": "x",
    }


def test_only_some_are_kept_of_those_that_differ_in_numbers() -> None:
    recorder = Recorder()
    for seconds in range(10):
        state = replace(STATES[0], age=3600.5 + seconds)
        recorder.add(line_of(state, mapping.decide(state)))
    assert len(recorder.kept) == ALIKE
    assert not recorder.add(next(iter(recorder.kept)))
    assert recorder.add(LINES[1])


def test_a_file_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "corpus"
    changed = LINES[0].replace('"reason":"Settled"', '"reason":"Other"')
    corpus.write(path, [*LINES, changed])
    assert list(corpus.read(path)) == [*LINES, changed]

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["oracle", *arguments, str(path)])
        return command_line.main()

    assert run("replay", "--processes", "1") == 1
    assert "pair 5: Other -> Settled" in capsys.readouterr().out
    assert run("replay", "--sample", "1/2") == 0
    digest = corpus.digest(LINES[::2])
    assert capsys.readouterr().out == f"3 equal, 0 different, 0 left out; sha256 of these {digest}\n"
    assert run("show", "5") == 0
    assert '"reason": "Other"' in capsys.readouterr().out
