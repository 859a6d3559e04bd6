"""Etcd's members are changed only while no other operator can lead before the call is over."""

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, ephemeral, persistent


def members(made: Bench) -> list[tuple[str, bool]]:
    return [(member.name, member.is_learner) for member in made.etcd.etcd.members]


def resized(kind: Kind, size: int) -> Json:
    return {"spec": {"size" if kind is COREOS else "replicas": size}}


CASES = [
    pytest.param(ephemeral(size=3), 1, id="ephemeral, removing"),
    pytest.param(persistent(size=3), 1, id="persistent, removing"),
    pytest.param(ephemeral(size=1), 2, id="ephemeral, adding"),
    pytest.param(persistent(size=1), 2, id="persistent, adding"),
]


@pytest.mark.parametrize(("asked", "size"), CASES)
def test_members_are_left_alone_while_leadership_is_in_doubt(asked: tuple[Kind, Json], size: int) -> None:
    kind, body = asked
    with bootstrapped(kind, body) as made:
        assert made.operator is not None
        before = members(made)
        made.operator.leads_for_long_enough = False
        made.edit(kind, "c", resized(kind, size))
        made.wait(30.0)
        assert members(made) == before
        made.operator.leads_for_long_enough = True
        made.settle()
        assert len(members(made)) == size


@pytest.mark.parametrize("asked", [ephemeral(size=1), persistent(size=1)], ids=["ephemeral", "persistent"])
def test_a_learner_is_not_promoted_while_leadership_is_in_doubt(asked: tuple[Kind, Json]) -> None:
    kind, body = asked
    with bootstrapped(kind, body) as made:
        assert made.operator is not None
        made.edit(kind, "c", resized(kind, 2))
        made.run_until(lambda: len(members(made)) == 2)
        made.operator.leads_for_long_enough = False
        made.wait(30.0)
        assert [is_learner for _, is_learner in members(made)] == [False, True]
        made.operator.leads_for_long_enough = True
        made.settle()
        assert [is_learner for _, is_learner in members(made)] == [False, False]
