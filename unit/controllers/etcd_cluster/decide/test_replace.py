"""Which members are lost for good, and when they are removed."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    ClearMissing,
    DisarmCorrupt,
    MoveLeader,
    RecreatePod,
    RemoveCorrupt,
    RemoveMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import CRASHES, remounting
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.readiness import readiness_updates
from etcd_operator.controllers.etcd_cluster.decide.rules.learner import remove_outdated
from etcd_operator.controllers.etcd_cluster.decide.rules.replace import lost_member
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from etcd_operator.etcd.values import ANYBODY
from unit.controllers.etcd_cluster.decide.builders import (
    FULL_STORE,
    answering,
    bootstrapped,
    bootstrapping,
    changed,
    down,
    entry,
    ephemeral,
    old_claim,
    persistent,
    pod,
)


def _lost(cluster: DesiredCluster, name: str, **changes: Any) -> ClusterState:
    return down(bootstrapped(cluster), name, **changes)


def _full(state: ClusterState, *names: str) -> ClusterState:
    return answering(state, *names, **FULL_STORE)


REFUSES: Any = {"is_running": False, "has_no_data": True, "restarts": 1}

BROKEN: Any = {"is_running": False, "has_broken_data": True, "restarts": CRASHES}

MISSED = old_claim("db-1", missing_in="another pod")


def _ephemeral(*names: str, case: str, **changes: Any) -> Any:
    """A case: an ephemeral member that is down and as given; the stores of `names` are full."""
    return pytest.param(_full(_lost(ephemeral(), "db-0001", **changes), *names), "db-0001", id=case)


def _persistent(*, case: str, **changes: Any) -> Any:
    """A case: a persistent member that is down and as given."""
    return pytest.param(_lost(persistent(), "db-1", **changes), "db-1", id=case)


LOST = [
    _ephemeral(case="an ephemeral pod that is gone", pod=None),
    _ephemeral(case="an ephemeral pod that will never run again", pod=pod("db-0001", is_finished=True)),
    _ephemeral(
        case="an ephemeral pod on a node that has been silent for too long",
        pod=pod("db-0001", is_on_lost_node=True),
    ),
    _ephemeral(
        case="an ephemeral pod that is being deleted and does not answer any more",
        pod=pod("db-0001", is_terminating=True),
    ),
    _persistent(case="a claim that is gone", claim=None, has_replica_set=True),
    _persistent(case="a claim and a peer gone", claim=None, peer=None, pod=None),
    _persistent(case="a claim that was lost with its ReplicaSet", claim=None, has_lost_claim=True),
    _persistent(case="a claim whose volume is gone", claim=old_claim("db-1", is_lost=True)),
    _persistent(
        case="a persistent member that reports twice in a second pod that it has no data",
        pod=pod("db-1", **REFUSES),
        claim=MISSED,
    ),
    _persistent(
        case="a persistent member that reports twice that it has no data, and whose claim is being deleted",
        pod=pod("db-1", **REFUSES),
        claim=old_claim("db-1", is_terminating=True),
    ),
    _persistent(
        case="a persistent member that reports in a second pod, too, that its data is broken",
        pod=pod("db-1", **{**BROKEN, "restarts": 1}),
        claim=MISSED,
    ),
    _ephemeral(
        case="an ephemeral member that reports twice that it has no data", pod=pod("db-0001", **REFUSES)
    ),
    _ephemeral(
        case="an ephemeral member that reports again and again that its data is broken",
        pod=pod("db-0001", **BROKEN),
    ),
    _ephemeral("db-0000", "db-0002", case="a member that is gone while the store is full", pod=None),
]

KEPT = [
    pytest.param(_lost(ephemeral(), "db-0001"), id="an ephemeral member that only does not answer"),
    pytest.param(
        changed(bootstrapped(ephemeral()), "db-0001", pod=pod("db-0001", is_terminating=True)),
        id="a pod that is being deleted but still serves",
    ),
    pytest.param(_lost(persistent(), "db-1"), id="a persistent member that only does not answer"),
    pytest.param(_lost(persistent(), "db-1", pod=None), id="a persistent pod that is gone"),
    pytest.param(
        _lost(persistent(), "db-1", claim=None, has_replica_set=False), id="a claim that is not made yet"
    ),
    pytest.param(
        _lost(
            persistent(), "db-1", claim=None, problem=PodProblem(reason="ClaimLost", message="it was deleted")
        ),
        id="a claim of which only words say that it was lost",
    ),
    *(
        pytest.param(
            _lost(
                persistent(),
                "db-1",
                pod=pod("db-1", is_existing_only=True, is_running=False, restarts=99),
                problem=PodProblem(reason=reason, message=words),
            ),
            id=f"an existing-only member that ends again and again: {reason} {words}".strip(),
        )
        for reason, words in (
            ("CrashLoopBackOff", "flag provided but not defined: -experimental-x"),
            ("CrashLoopBackOff", "panic: write: no space left on device"),
            ("CrashLoopBackOff", "panic: unmarshal should never fail"),
            ("CrashLoopBackOff", "OOMKilled"),
            ("ImagePullBackOff", "no such image"),
            ("CreateContainerConfigError", ""),
        )
    ),
    pytest.param(
        _lost(persistent(), "db-1", pod=pod("db-1", is_running=False, restarts=99)),
        id="a member that ended often, and now with its node",
    ),
    pytest.param(
        _lost(persistent(), "db-1", pod=pod("db-1", **{**BROKEN, "restarts": CRASHES - 1})),
        id="a member that has reported only a few times that its data is broken: the disk may be",
    ),
    pytest.param(
        _lost(persistent(), "db-1", pod=pod("db-1", **{**BROKEN, "is_running": True})),
        id="a member whose data was broken and whose next process runs",
    ),
    pytest.param(
        _lost(ephemeral(), "db-0001", pod=pod("db-0001", **{**REFUSES, "restarts": 0})),
        id="a member that reports only once that it has no data: its volume may be late",
    ),
    pytest.param(
        _lost(ephemeral(), "db-0001", pod=pod("db-0001", **{**REFUSES, "is_running": True})),
        id="a member whose next process runs",
    ),
    pytest.param(
        _lost(
            ephemeral(), "db-0001", pod=pod("db-0001", is_existing_only=True, is_running=False, restarts=9)
        ),
        id="a crashing ephemeral member that reports no missing data: it may have its data",
    ),
    pytest.param(
        replace(_lost(ephemeral(), "db-0001", pod=None), has_quorum=False), id="any member without a quorum"
    ),
    pytest.param(
        _lost(persistent(), "db-1", pod=pod("db-1", **{**REFUSES, "restarts": 0}), claim=MISSED),
        id="a member that reports once in a second pod that it has no data",
    ),
    pytest.param(
        _lost(persistent(), "db-1", pod=pod("db-1", is_running=False, restarts=9), claim=MISSED),
        id="a member that had no data in its first pod, and crashes in the second for another reason",
    ),
    pytest.param(bootstrapping(ephemeral()), id="a cluster that is not bootstrapped"),
    pytest.param(
        down(_lost(ephemeral(), "db-0001", pod=None), "db-0002"),
        id="a member whose loss the others cannot bear",
    ),
]


@pytest.mark.parametrize(("state", "name"), LOST)
def test_a_member_is_removed_when_its_data_cannot_come_back(state: ClusterState, name: str) -> None:
    made = plan(state)

    assert made.actions == (RemoveMember(name=name, member_id=f"id-{name}"),)
    assert made.reason == "Replacing"


@pytest.mark.parametrize("state", KEPT)
def test_a_member_is_kept_while_its_data_may_come_back(state: ClusterState) -> None:
    assert lost_member(state) is None


FIRST = old_claim("db-1", missing_in="pod-db-1")

REMADE = [
    pytest.param(_lost(persistent(), "db-1", pod=pod("db-1", **REFUSES)), id="no data"),
    pytest.param(_lost(persistent(), "db-1", pod=pod("db-1", **BROKEN)), id="broken data"),
    pytest.param(
        _lost(persistent(), "db-1", pod=pod("db-1", **REFUSES), claim=FIRST),
        id="annotated, but not deleted yet",
    ),
    pytest.param(
        replace(_lost(persistent(), "db-1", pod=pod("db-1", **REFUSES), entry=None), has_quorum=False),
        id="without a quorum: it may bring one back",
    ),
]


@pytest.mark.parametrize("state", REMADE)
def test_the_first_pod_that_reports_missing_data_is_recreated(state: ClusterState) -> None:
    made = plan(state)

    assert made.actions == (RecreatePod(name="db-1"),)
    assert (made.reason, made.requeue_after) == ("Remounting", 0.05)


NOT_REMADE = [
    pytest.param(_lost(ephemeral(), "db-0001", pod=pod("db-0001", **REFUSES)), id="its data goes with it"),
    pytest.param(
        _lost(persistent(), "db-1", pod=pod("db-1", **REFUSES), claim=MISSED), id="it is the second"
    ),
    pytest.param(
        _lost(persistent(), "db-1", pod=pod("db-1", is_terminating=True, **REFUSES)), id="it is going already"
    ),
    pytest.param(_lost(persistent(), "db-1", pod=None), id="there is none"),
    pytest.param(_lost(persistent(), "db-1", pod=pod("db-1", **REFUSES), claim=None), id="its claim is gone"),
    pytest.param(
        _lost(persistent(), "db-1", pod=pod("db-1", **REFUSES), claim=replace(FIRST, is_terminating=True)),
        id="its claim is going",
    ),
    pytest.param(_lost(persistent(), "db-1", pod=pod("db-1", **REFUSES), entry=None), id="it is no member"),
    pytest.param(bootstrapping(persistent()), id="a cluster that is not bootstrapped"),
]


@pytest.mark.parametrize("state", NOT_REMADE)
def test_a_pod_is_not_recreated(state: ClusterState) -> None:
    assert remounting(state) is None


def test_a_member_that_runs_on_its_data_after_all_is_believed_again() -> None:
    state = changed(bootstrapped(), "db-1", claim=MISSED)

    assert plan(state).actions == (ClearMissing(name="db-1"),)
    assert not any(isinstance(action, ClearMissing) for action in plan(down(state, "db-1")).actions)


def test_a_lost_member_goes_before_a_problem_is_only_reported() -> None:
    problem = PodProblem(reason="PodFailed", message="evicted")
    state = _lost(ephemeral(), "db-0001", pod=pod("db-0001", is_finished=True), problem=problem)

    assert plan(state).reason == "Replacing"


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
