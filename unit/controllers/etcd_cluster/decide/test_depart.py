"""Which member is kept from clients before it is stopped or removed, and for how long."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    MoveLeader,
    RemoveMember,
    ReplaceMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.facts.departing import departing
from etcd_operator.controllers.etcd_cluster.decide.readiness import routes
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    bootstrapped,
    changed,
    down,
    ephemeral,
    persistent,
    pod,
    with_record,
)
from unit.controllers.etcd_cluster.decide.protected import plan
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import NEW, OLD, at, led_by, to_upgrade

FRESH = pod("db-0002", is_gated=True, is_existing_only=True, serves=True, started_lately=True, version=NEW)
HALFWAY = to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002")
SMALLER = bootstrapped(ephemeral(size=2), voters=3)


def closed(state: ClusterState, *names: str) -> ClusterState:
    """A state in which clients are kept from these members."""
    for name in names:
        facts = state.by_name[name].pod
        assert facts is not None
        state = changed(state, name, pod=replace(facts, is_routed=False))
    return state


def taken_over(state: ClusterState) -> ClusterState:
    """The same cluster, from an earlier operator."""
    return with_record(state, bootstrap=Bootstrap(members=(), token=state.desired.name))


DEPARTING = [
    pytest.param(to_upgrade(persistent()), "db-2", id="an upgrade stops a persistent member"),
    pytest.param(bootstrapped(persistent(size=2), voters=3), "db-2", id="a persistent member is removed"),
    pytest.param(to_upgrade(), "db-0002", id="an upgrade stops it"),
    pytest.param(led_by(to_upgrade(), "db-0002"), "db-0002", id="its leadership is moved before that"),
    pytest.param(HALFWAY, "db-0001", id="the one before serves"),
    pytest.param(changed(HALFWAY, "db-0002", pod=FRESH), "db-0001", id="the one before is waited for"),
    pytest.param(SMALLER, "db-0000", id="it is removed"),
    pytest.param(closed(SMALLER, "db-0000", "db-0001"), "db-0000", id="another one has clients"),
]
STAYING = [
    pytest.param(bootstrapped(ephemeral()), id="settled"),
    pytest.param(to_upgrade(ephemeral(size=1), runs=(OLD,)), id="the only member"),
    pytest.param(closed(SMALLER, "db-0001", "db-0002"), id="no other member has clients"),
    pytest.param(down(SMALLER, "db-0002"), id="the one that is removed does not serve"),
    pytest.param(down(to_upgrade(), "db-0000"), id="the upgrade waits for another member"),
    pytest.param(replace(to_upgrade(), has_quorum=False), id="no quorum answers"),
    pytest.param(at(HALFWAY, "db-0002", OLD, requested=NEW), id="a member is away on purpose"),
    pytest.param(taken_over(to_upgrade(persistent())), id="peers find members by the Service for clients"),
]


@pytest.mark.parametrize(("state", "name"), DEPARTING)
def test_clients_leave_a_member_before_it_is_touched(state: ClusterState, name: str) -> None:
    member = departing(state)
    assert member is not None
    assert member.name == name
    if member.pod is not None and member.pod.is_routed:
        assert [(facts.name, is_open) for facts, is_open in routes(state) if not is_open] == [(name, False)]

    made = plan(replace(state, is_departing_reached=True))
    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Departing")
    assert name in made.message


@pytest.mark.parametrize("state", STAYING)
def test_a_member_that_is_not_touched_or_not_replaceable_keeps_its_clients(state: ClusterState) -> None:
    assert departing(state) is None
    assert not any(is_open is False for _, is_open in routes(state))


TOUCH = (MoveLeader, RemoveMember, ReplaceMember)


@pytest.mark.parametrize("state", [to_upgrade(), led_by(to_upgrade(), "db-0002"), HALFWAY, SMALLER])
def test_a_member_that_no_client_is_sent_to_is_touched(state: ClusterState) -> None:
    assert any(isinstance(action, TOUCH) for action in plan(state).actions)


def test_a_member_that_is_about_to_stop_does_not_get_its_clients_back_although_it_serves() -> None:
    state = closed(at(HALFWAY, "db-0002", OLD, requested=NEW), "db-0002")

    assert routes(state) == ()
    assert [(facts.name, is_open) for facts, is_open in routes(closed(HALFWAY, "db-0002"))] == [
        ("db-0001", False),
        ("db-0002", True),
    ]
