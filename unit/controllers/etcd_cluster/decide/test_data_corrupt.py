"""Members whose data etcd found to differ (alarm CORRUPT)."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    DisarmCorrupt,
    MoveLeader,
    RemoveCorrupt,
    RemoveMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.readiness import readiness_updates
from etcd_operator.controllers.etcd_cluster.decide.rules.learner import remove_outdated
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from etcd_operator.etcd.values import ANYBODY
from unit.controllers.etcd_cluster.decide.builders import (
    bootstrapped,
    changed,
    down,
    entry,
    ephemeral,
    persistent,
)

GONE = "a1"


def named(state: ClusterState, *ids: str) -> ClusterState:
    """`state` where an alarm names these members, in every answer as etcd does it."""
    for member in state.members:
        if member.answer is not None:
            alarms = (*member.answer.errors, *(f"memberID:1 alarm:CORRUPT {one}" for one in ids))
            answer = replace(member.answer, corrupt=frozenset(ids), errors=alarms)
            state = changed(state, member.name, answer=answer)
    return state


def test_only_the_member_that_is_named_stops_to_count() -> None:
    state = named(bootstrapped(persistent(size=3)), "id-db-1")

    assert [voter.name for voter in state.healthy_voters] == ["db-0", "db-2"]
    assert [(update.name, update.serves) for update in readiness_updates(state)] == [("db-1", False)]


def test_an_alarm_that_names_nobody_in_particular_takes_nobody_away() -> None:
    state = named(bootstrapped(persistent(size=3)), ANYBODY)

    assert len(state.healthy_voters) == 3
    assert readiness_updates(state) == ()


def test_a_member_that_is_lost_is_replaced_beside_an_alarm() -> None:
    state = down(named(bootstrapped(ephemeral(size=3)), ANYBODY), "db-0002", pod=None)

    assert plan(state).actions == (RemoveMember(name="db-0002", member_id="id-db-0002"),)


@pytest.mark.parametrize("cluster", [persistent(size=3), ephemeral(size=3)], ids=["persistent", "ephemeral"])
def test_the_member_that_is_named_is_removed_while_a_quorum_is_not(cluster: object) -> None:
    state = bootstrapped(cluster)  # type: ignore[arg-type]
    name = state.members[2].name
    made = plan(named(state, f"id-{name}"))

    assert made.actions == (RemoveCorrupt(name=name, member_id=f"id-{name}"),)
    assert (made.stage, made.reason) == (Stage.WORKING, "DataCorrupt")
    assert f"the data of {name}" in made.message


def test_a_leader_that_is_named_hands_over_first() -> None:
    made = plan(named(bootstrapped(persistent(size=3)), "id-db-0"))

    assert made.actions == (
        MoveLeader(name="db-1", member_id="id-db-1"),
        RemoveCorrupt(name="db-0", member_id="id-db-0"),
    )


def test_a_learner_that_has_not_started_goes_before_the_member_that_is_named() -> None:
    state = named(bootstrapped(persistent(size=4), voters=3), "id-db-1")
    learner = replace(entry("db-3", is_learner=True), name="")
    pending = replace(state.members[0], name="db-3", entry=learner, answer=None)
    joining = replace(state, members=(*state.members, pending))

    assert RemoveMember(name="db-3", member_id="id-db-3") in plan(joining).actions
    assert remove_outdated(replace(joining, has_quorum=False)) is None


UNDECIDED = [
    pytest.param(named(bootstrapped(persistent(size=1)), "id-db-0"), id="the only member"),
    pytest.param(named(bootstrapped(persistent(size=2)), "id-db-1"), id="one against one"),
    pytest.param(
        named(bootstrapped(persistent(size=3)), "id-db-1", "id-db-2"), id="a leader names its followers"
    ),
    pytest.param(named(bootstrapped(persistent(size=3)), ANYBODY), id="nobody in particular"),
    pytest.param(named(bootstrapped(persistent(size=3)), ANYBODY, GONE), id="nobody, and one that is out"),
    pytest.param(
        down(named(bootstrapped(persistent(size=3)), "id-db-1"), "db-2"), id="one of the others is silent"
    ),
    pytest.param(
        named(bootstrapped(persistent(size=5), voters=2), "id-db-1"), id="growing would copy what is wrong"
    ),
    pytest.param(
        named(bootstrapped(persistent(size=2, version="3.7.3")), "id-db-1"), id="an upgrade is asked for"
    ),
]


@pytest.mark.parametrize("state", UNDECIDED)
def test_where_too_few_are_left_to_agree_a_person_decides(state: ClusterState) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "DataCorrupt")


def test_the_alarm_of_a_member_that_is_out_is_disarmed() -> None:
    made = plan(named(bootstrapped(persistent(size=3)), GONE))

    assert made.actions == (DisarmCorrupt(member_id=GONE),)


@pytest.mark.parametrize("is_paused", [True, False])
def test_the_condition_names_the_member(is_paused: bool) -> None:
    state = named(bootstrapped(persistent(size=3, is_paused=is_paused)), "id-db-1")
    degraded = next(c for c in conditions(state, plan(state)) if c.type == "Degraded")

    assert (degraded.status, degraded.reason) == ("True", "DataCorrupt")
    assert "db-1" in degraded.message


def test_without_a_quorum_an_alarm_decides_nothing() -> None:
    state = replace(named(bootstrapped(persistent(size=3)), "id-db-1"), has_quorum=False)

    assert plan(state).reason == "QuorumLost"
