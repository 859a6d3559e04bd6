"""Which members clients reach by the Service."""

from typing import Any

import pytest

from etcd_operator.api.recoveries import Recovery, Survivor
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.readiness import readiness_updates, routes
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    down,
    ephemeral,
    persistent,
    pod,
    with_record,
)

BOTH = pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])


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
