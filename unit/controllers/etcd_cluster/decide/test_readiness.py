"""What is written on the pods of members."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.recoveries import Recovery, Survivor
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.readiness import ReadinessUpdate, readiness_updates, routes
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, Unseen
from unit.controllers.etcd_cluster.decide.builders import (
    AN_ERROR,
    CLUSTER_ID,
    FULL_STORE,
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    down,
    entry,
    ephemeral,
    persistent,
    pod,
    refusing,
    with_record,
)

NAMES = {PERSISTENT: "db-1", EPHEMERAL: "db-0001"}
BOTH = pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])


def _gated(state: ClusterState, name: str, **changes: Any) -> ClusterState:
    """`state` with one pod that is gated and otherwise as given."""
    return changed(state, name, pod=pod(name, **{"is_gated": True, **changes}))


def _updates(state: ClusterState) -> list[tuple[str, bool, bool, str]]:
    return [
        (update.name, update.serves, update.sets_existing_only, update.reason)
        for update in readiness_updates(state)
    ]


@BOTH
def test_nothing_is_reported_twice(cluster: DesiredCluster) -> None:
    assert readiness_updates(bootstrapped(cluster)) == ()


def test_the_silence_of_members_that_are_not_asked_changes_nothing() -> None:
    silent = _gated(down(bootstrapped(), "db-1"), "db-1", serves=True)
    unseen = Unseen(reason="Forbidden", message="no CAs", is_asked=False)
    assert readiness_updates(replace(silent, has_quorum=False, unseen=unseen)) == ()
    for asked in (None, replace(unseen, is_asked=True)):
        found = readiness_updates(replace(silent, has_quorum=False, unseen=asked))
        assert {update.serves for update in found} == {False}


@BOTH
def test_a_voter_that_serves_is_reported_and_set_existing_only_in_one_write(cluster: DesiredCluster) -> None:
    name = NAMES[cluster.kind]
    state = _gated(bootstrapped(cluster), name)
    found = state.by_name[name].pod

    assert found is not None
    assert readiness_updates(state) == (
        ReadinessUpdate(
            name=name,
            pod=found,
            serves=True,
            sets_existing_only=True,
            reason="MemberServes",
            message="a healthy voter",
        ),
    )


def test_a_voter_whose_store_is_full_serves_reads() -> None:
    full = answer("db-1", **FULL_STORE)
    state = changed(_gated(bootstrapped(), "db-1"), "db-1", answer=full)

    assert _updates(state) == [("db-1", True, True, "MemberServes")]


SICK = [
    pytest.param(down(bootstrapped(), "db-1"), "MemberUnhealthy", id="silent"),
    pytest.param(
        changed(bootstrapped(), "db-1", answer=answer("db-1", **AN_ERROR)),
        "MemberUnhealthy",
        id="alarmed",
    ),
    pytest.param(
        changed(bootstrapped(), "db-1", entry=entry("db-1", is_learner=True)),
        "Learner",
        id="a learner does not vote",
    ),
    pytest.param(changed(bootstrapped(), "db-1", entry=None), "NotAMember", id="not listed"),
]


@pytest.mark.parametrize(("state", "reason"), SICK)
def test_a_member_that_does_not_serve_is_reported_so_once(state: ClusterState, reason: str) -> None:
    assert _updates(state) == [("db-1", False, False, reason)]

    sick = pod("db-1", is_gated=True, is_existing_only=True, serves=False)
    assert readiness_updates(changed(state, "db-1", pod=sick)) == ()


def test_without_a_quorum_nobody_serves_whatever_each_reports() -> None:
    assert _updates(bootstrapped(has_quorum=False)) == [
        (f"db-{n}", False, False, "QuorumLost") for n in range(3)
    ]


def test_a_condition_that_is_not_there_counts_as_false_and_is_not_written() -> None:
    joining = _gated(changed(bootstrapped(), "db-1", entry=entry("db-1", is_learner=True)), "db-1")

    assert readiness_updates(joining) == ()


def test_a_learner_keeps_the_list_it_joins_with_until_it_votes() -> None:
    joining = _gated(
        changed(bootstrapped(), "db-1", entry=entry("db-1", is_learner=True)), "db-1", serves=True
    )

    assert _updates(joining) == [("db-1", False, False, "Learner")]


def test_an_initial_member_that_answers_is_set_existing_only_also_when_the_quorum_is_lost_again() -> None:
    state = _gated(bootstrapped(has_quorum=False), "db-1")

    assert _updates(state)[1] == ("db-1", False, True, "QuorumLost")


def test_a_member_that_is_silent_is_not_set_existing_only_it_may_have_nothing_yet() -> None:
    assert readiness_updates(_gated(down(bootstrapped(), "db-1"), "db-1")) == ()


def test_a_pause_goes_on_reporting_who_serves_and_sets_nobody_existing_only() -> None:
    paused = replace(bootstrapped(), desired=replace(bootstrapped().desired, is_paused=True))

    assert _updates(_gated(paused, "db-1")) == [("db-1", True, False, "MemberServes")]
    assert readiness_updates(_gated(paused, "db-1", serves=True)) == ()
    assert _updates(down(paused, "db-1")) == [("db-1", False, False, "MemberUnhealthy")]


OTHERS = [
    pytest.param(pod("db-1"), id="made by something that knows no gate"),
    pytest.param(pod("db-1", is_gated=True, is_terminating=True), id="on its way out"),
    pytest.param(pod("db-1", is_gated=True, is_finished=True), id="ended"),
    pytest.param(None, id="without a pod"),
]


@pytest.mark.parametrize("pod", OTHERS)
def test_some_pods_are_left_alone(pod: Any) -> None:
    assert readiness_updates(changed(bootstrapped(), "db-1", pod=pod)) == ()


JUDGED_BY_NOBODY = [
    pytest.param(bootstrapping(persistent(), has_quorum=True), id="before the bootstrap is recorded"),
    pytest.param(bootstrapped(conflict="another has precedence"), id="a name that is another's"),
    pytest.param(
        changed(down(bootstrapped(), "db-0", "db-1"), "db-2", answer=answer("db-2", cluster_id="other")),
        id="another cluster than the one on record",
    ),
]


@pytest.mark.parametrize("state", JUDGED_BY_NOBODY)
def test_nothing_is_reported_in_a_world_that_cannot_be_judged(state: ClusterState) -> None:
    def fresh(member: Member) -> Member:
        return replace(member, pod=pod(member.name, is_gated=True))

    assert readiness_updates(replace(state, members=tuple(fresh(member) for member in state.members))) == ()


@BOTH
def test_a_member_that_answers_only_users_serves_as_long_as_it_proves_it(cluster: DesiredCluster) -> None:
    state = refusing(bootstrapped(cluster))
    name = state.members[1].name
    assert readiness_updates(state) == ()

    fresh = changed(state, name, pod=pod(name, is_gated=True, is_existing_only=True))
    assert [(update.name, update.serves) for update in readiness_updates(fresh)] == [(name, True)]

    (update,) = readiness_updates(refusing(state, name, is_serving=False))
    assert (update.name, update.serves, update.reason) == (name, False, "AuthEnabled")

    (update,) = readiness_updates(changed(state, name, refusal=None))
    assert (update.name, update.serves, update.reason) == (name, False, "NoAnswer")


def split(state: ClusterState, *names: str, **changes: Any) -> ClusterState:
    """`state` with some members that answer for another cluster."""
    for name in names:
        gated = pod(name, is_gated=True, serves=True, is_existing_only=True, **changes)
        state = changed(state, name, answer=answer(name, cluster_id="feed"), pod=gated)
    return state


def found(state: ClusterState) -> list[tuple[str, bool]]:
    return [(pod.name, is_open) for pod, is_open in routes(state)]


@BOTH
def test_clients_are_kept_from_members_of_another_cluster_and_it_is_reported(cluster: DesiredCluster) -> None:
    state = bootstrapped(cluster)
    name = state.members[2].name
    state = split(state, name)

    assert found(state) == [(name, False)]
    assert [(update.name, update.serves, update.reason) for update in readiness_updates(state)] == [
        (name, False, "OtherCluster")
    ]
    made = plan(state)
    assert (made.actions, made.reason) == ((), "SplitBrain")
    assert f"clients no longer reach {name}, nothing else is changed" in made.message


def test_nothing_is_written_twice() -> None:
    assert found(bootstrapped()) == []
    assert found(split(bootstrapped(), "db-2", is_routed=False)) == []


def test_the_majority_is_kept_away_as_well_if_it_is_another_cluster() -> None:
    assert found(split(bootstrapped(), "db-1", "db-2")) == [("db-1", False), ("db-2", False)]


def test_a_member_that_answers_for_the_right_cluster_gets_clients_back() -> None:
    closed = pod("db-1", is_gated=True, serves=True, is_existing_only=True, is_routed=False)

    assert found(changed(bootstrapped(), "db-1", pod=closed)) == [("db-1", True)]
    assert found(down(changed(bootstrapped(), "db-1", pod=closed), "db-1")) == []


@BOTH
def test_clients_are_kept_from_a_learner_until_it_votes(cluster: DesiredCluster) -> None:
    name = NAMES[cluster.kind]
    learning = changed(bootstrapped(cluster), name, entry=entry(name, is_learner=True))
    closed = pod(name, is_gated=True, serves=True, is_existing_only=True, is_routed=False)

    assert found(learning) == [(name, False)]
    assert found(changed(learning, name, pod=closed)) == []
    assert found(changed(bootstrapped(cluster), name, pod=closed)) == [(name, True)]


def test_a_learner_of_a_cluster_that_was_taken_over_keeps_its_name_for_its_peers() -> None:
    state = with_record(bootstrapped(), bootstrap=Bootstrap(members=(), token="db"))

    assert found(changed(state, "db-1", entry=entry("db-1", is_learner=True))) == []


@BOTH
def test_clients_are_kept_from_a_silent_member_on_a_lost_node_while_others_serve(
    cluster: DesiredCluster,
) -> None:
    """Connections to a dead node are not refused: they wait."""
    state, name = bootstrapped(cluster), NAMES[cluster.kind]
    cut_off = pod(name, is_gated=True, is_existing_only=True, is_on_lost_node=True)
    state = changed(state, name, answer=None, pod=cut_off)

    assert found(state) == [(name, False)]
    assert found(replace(state, has_quorum=False)) == []
    back = changed(
        state, name, answer=bootstrapped(cluster).by_name[name].answer, pod=replace(cut_off, is_routed=False)
    )
    assert found(back) == [(name, True)]


@BOTH
def test_without_a_quorum_clients_reach_whom_they_reached(cluster: DesiredCluster) -> None:
    state = bootstrapped(cluster, has_quorum=False)
    name = NAMES[cluster.kind]
    closed = pod(name, is_gated=True, is_existing_only=True, is_routed=False)

    assert found(state) == []
    assert found(changed(state, name, pod=closed)) == []
    assert found(changed(state, name, entry=entry(name, is_learner=True))) == []


RECOVERY = Recovery(
    generation=1,
    source=Survivor(name="db-0"),
    authority="Proven",
    revision=1,
    version="",
    seed="db-3",
    token="t",
    replaces=CLUSTER_ID,
)


def _recovering(state: ClusterState) -> ClusterState:
    return with_record(state, recovery=RECOVERY)


LEFT_ALONE = [
    pytest.param(split(bootstrapped(), "db-0", "db-1", "db-2"), id="nobody of the cluster on record answers"),
    pytest.param(split(down(bootstrapped(), "db-0"), "db-1", "db-2"), id="who has the recorded ID is silent"),
    pytest.param(split(bootstrapped(persistent(is_paused=True)), "db-2"), id="paused"),
    pytest.param(split(bootstrapped(conflict="taken"), "db-2"), id="the name is another's"),
    pytest.param(split(bootstrapped(), "db-2", is_terminating=True), id="its pod is going"),
    pytest.param(changed(split(bootstrapped(), "db-2"), "db-2", pod=None), id="without a pod"),
    pytest.param(split(bootstrapping(persistent()), "db-2"), id="no ID is on record yet"),
    pytest.param(
        _recovering(split(bootstrapped(ephemeral()), "db-0002")), id="a seed that is not opened yet"
    ),
]


@pytest.mark.parametrize("state", LEFT_ALONE)
def test_where_it_is_not_known_who_is_right_nothing_changes(state: ClusterState) -> None:
    assert routes(state) == ()


@BOTH
def test_a_pod_that_was_created_again_gets_clients_also_where_nothing_else_is_done(
    cluster: DesiredCluster,
) -> None:
    """Paused, or with members that answer only users: pods are moved to other nodes there, too."""
    name = NAMES[cluster.kind]
    closed = pod(name, is_gated=True, is_existing_only=True, is_routed=False)
    paused = bootstrapped(replace(cluster, is_paused=True))
    guarded = refusing(bootstrapped(cluster))

    for state in (paused, guarded):
        assert found(changed(state, name, pod=closed)) == [(name, True)]
        assert found(state) == []
    assert found(changed(refusing(guarded, name, is_serving=False), name, pod=closed)) == []
    assert found(changed(paused, name, entry=entry(name, is_learner=True))) == []
