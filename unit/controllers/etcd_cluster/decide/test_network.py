"""Whether the NetworkPolicy of a cluster is written, removed, or left as it is."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.cluster_spec import NetworkAccess
from etcd_operator.api.persisted import Adoption
from etcd_operator.controllers.etcd_cluster.decide.desired import Adopt
from etcd_operator.controllers.etcd_cluster.decide.network import (
    PolicyFacts,
    PolicyStep,
    has_outside_peers,
    policy_step,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, Unseen
from unit.controllers.etcd_cluster.decide.builders import (
    bootstrapped,
    entry,
    not_bootstrapped,
    persistent,
    with_record,
)

NONE = PolicyFacts()
RIGHT = PolicyFacts(exists=True, is_as_desired=True)
CHANGED = PolicyFacts(exists=True)
OFF = NetworkAccess(enabled=False)
ADOPT = Adopt(endpoints=("old-0:2379",))


def asking(state: ClusterState, **changes: Any) -> ClusterState:
    """The state of a resource with another spec."""
    return replace(state, desired=replace(state.desired, **changes))


def facts(before: PolicyFacts, **changes: Any) -> PolicyFacts:
    return replace(before, **changes)


@pytest.mark.parametrize(
    ("network", "found", "step"),
    [
        pytest.param(NetworkAccess(), NONE, PolicyStep.WRITE, id="by default there is one"),
        pytest.param(NetworkAccess(), RIGHT, PolicyStep.NOTHING, id="it is as desired"),
        pytest.param(NetworkAccess(), CHANGED, PolicyStep.WRITE, id="somebody has changed it"),
        pytest.param(OFF, NONE, PolicyStep.NOTHING, id="it is not wanted"),
        pytest.param(OFF, CHANGED, PolicyStep.REMOVE, id="it is not wanted any more"),
        pytest.param(
            NetworkAccess(), facts(NONE, other="deny"), PolicyStep.NOTHING, id="another one decides"
        ),
        pytest.param(
            NetworkAccess(), facts(CHANGED, other="deny"), PolicyStep.WRITE, id="another one came later"
        ),
        pytest.param(
            NetworkAccess(), facts(RIGHT, other="deny"), PolicyStep.NOTHING, id="ours stays beside it"
        ),
        pytest.param(
            NetworkAccess(),
            facts(NONE, names_operator=False),
            PolicyStep.NOTHING,
            id="it would cut the operator off",
        ),
        pytest.param(
            NetworkAccess(),
            facts(CHANGED, names_operator=False),
            PolicyStep.REMOVE,
            id="it cuts the operator off",
        ),
    ],
)
@pytest.mark.parametrize("state", [not_bootstrapped(persistent()), bootstrapped()], ids=["new", "serving"])
def test_what_is_done(
    state: ClusterState, network: NetworkAccess, found: PolicyFacts, step: PolicyStep
) -> None:
    assert policy_step(asking(state, network=network), found) is step


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(asking(bootstrapped(), is_deleting=True), id="the cluster is being deleted"),
        pytest.param(asking(bootstrapped(), is_paused=True), id="it is paused"),
        pytest.param(asking(bootstrapped(), problem="no size"), id="its spec is invalid"),
        pytest.param(replace(bootstrapped(), is_fresh=False), id="the caches are behind"),
        pytest.param(
            replace(bootstrapped(), unseen=Unseen(reason="x", message="y")), id="something cannot be read"
        ),
        pytest.param(replace(bootstrapped(), conflict="taken"), id="another cluster has the name"),
        pytest.param(
            not_bootstrapped(persistent(), objects_of_others=("Pod db-0",)),
            id="another operator has the name",
        ),
        pytest.param(
            not_bootstrapped(persistent(), former=("db-0",)), id="members of a former resource are left"
        ),
    ],
)
@pytest.mark.parametrize("found", [NONE, CHANGED], ids=["none", "changed"])
def test_nothing_is_done_where_the_plan_does_nothing(state: ClusterState, found: PolicyFacts) -> None:
    assert policy_step(state, found) is PolicyStep.NOTHING


def test_a_paused_cluster_lets_in_the_members_that_it_permits_to_join() -> None:
    """A cluster is paused, and then permits its adoption: the new members have to reach its peer ports."""
    state = asking(bootstrapped(), is_paused=True, is_adoptable=True)
    assert policy_step(state, CHANGED) is PolicyStep.WRITE
    assert has_outside_peers(state)


def test_external_members_are_peers_until_the_adoption_has_ended() -> None:
    asked = not_bootstrapped(persistent(adopt=ADOPT))
    under_way = with_record(bootstrapped(), adoption=Adoption(members=()))
    over = with_record(asking(bootstrapped(), adopt=ADOPT), adoption=Adoption(members=(), finished=True))
    found = [has_outside_peers(state) for state in (asked, under_way, over, bootstrapped())]
    assert found == [True, True, False, False]


@pytest.mark.parametrize(
    ("changes", "outside"),
    [
        ({"unknown_members": (entry("other"),)}, True),
        ({"external": bootstrapped().members}, True),
        ({"has_quorum": False}, None),
        ({"has_quorum": False, "unknown_members": (entry("other"),)}, True),
        ({"has_quorum": False, "members": ()}, False),
        ({}, False),
    ],
    ids=["unknown", "external", "not known", "known before", "new", "none"],
)
def test_members_that_etcd_lists_are_peers(changes: dict[str, Any], outside: bool | None) -> None:
    assert has_outside_peers(replace(bootstrapped(), **changes)) is outside
