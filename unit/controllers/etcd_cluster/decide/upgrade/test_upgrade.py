"""Upgrades: one member after the other, as a table: what is observed, what is done."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AddLearner,
    CreateMember,
    MoveLeader,
    RemoveMember,
    ReplaceMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.rules.upgrade import refused
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.state_machine import roll
from unit.controllers.etcd_cluster.decide.builders import (
    answering,
    bootstrapped,
    changed,
    down,
    old_claim,
    persistent,
    pod,
    with_record,
)
from unit.controllers.etcd_cluster.decide.protected import plan
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import (
    BOTH,
    CRASH,
    NEW,
    OLD,
    at,
    led_by,
    names,
    on_record,
    persistent_away,
    remembered,
    to_upgrade,
    under_way,
)


@BOTH
def test_the_first_step_is_recorded_before_the_highest_number_is_stopped(cluster: DesiredCluster) -> None:
    state = to_upgrade(cluster)
    highest = names(state)[-1]

    made = plan(state)

    begun = Upgrade(origin=OLD, target=NEW, member=highest)
    assert made.actions == (remembered(state, begun), ReplaceMember(name=highest, version=NEW))
    assert (made.stage, made.reason) == (Stage.WORKING, "Upgrading")


@BOTH
def test_the_leader_is_moved_in_a_step_of_its_own(cluster: DesiredCluster) -> None:
    state = to_upgrade(cluster)
    first, _, highest = names(state)
    state = led_by(state, highest)

    assert plan(state).actions[1:] == (MoveLeader(name=first, member_id=f"id-{first}"),)


def test_the_leadership_goes_to_a_member_that_is_done() -> None:
    state = led_by(to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002"), "db-0001")

    assert plan(state).actions[1:] == (MoveLeader(name="db-0002", member_id="id-db-0002"),)


def test_of_members_that_are_done_the_first_leads() -> None:
    state = led_by(to_upgrade(runs=(OLD, NEW, NEW), upgrading="db-0001"), "db-0000")

    assert plan(state).actions[1:] == (MoveLeader(name="db-0002", member_id="id-db-0002"),)


def _fresh(state: ClusterState, name: str) -> ClusterState:
    """A member whose process was started a moment ago."""
    return changed(state, name, pod=replace(state.by_name[name].pod or pod(name), started_lately=True))


@BOTH
def test_the_leadership_waits_until_the_transferee_has_run_for_a_while(cluster: DesiredCluster) -> None:
    _, middle, highest = names(bootstrapped(cluster))
    state = led_by(to_upgrade(cluster, runs=(OLD, OLD, NEW), upgrading=highest), middle)
    made = plan(_fresh(state, highest))

    assert (made.actions, made.stage) == ((), Stage.WORKING)
    assert plan(state).actions


def test_a_member_waits_until_clients_are_back_at_the_one_before() -> None:
    """Persistent members take so long to restart that clients are."""
    state = to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002")
    assert (plan(_fresh(state, "db-0002")).actions, plan(_fresh(state, "db-0001")).actions != ()) == (
        (),
        True,
    )

    lasting = to_upgrade(persistent(), runs=(OLD, OLD, NEW), upgrading="db-2")
    assert plan(_fresh(lasting, "db-2")).actions


def test_the_last_member_is_not_waited_for_once_it_serves() -> None:
    state = _fresh(to_upgrade(runs=(NEW, NEW, NEW), upgrading="db-0000"), "db-0000")

    assert plan(state).reason == "UpgradeFinished"


def _behind(state: ClusterState, **by: int) -> ClusterState:
    """Members whose logs are so many entries behind the others': `db_0002=500`."""
    for name in state.by_name:
        state = answering(state, name, committed=5000 - by.get(name.replace("-", "_"), 0))
    return state


def test_the_leadership_does_not_go_to_a_member_that_has_to_catch_up_if_another_has_not() -> None:
    """etcd accepts no write until the transferee has the whole log."""
    state = led_by(to_upgrade(runs=(OLD, OLD, OLD)), "db-0002")

    assert plan(_behind(state, db_0000=11)).actions[1:] == (
        MoveLeader(name="db-0001", member_id="id-db-0001"),
    )
    assert plan(_behind(state, db_0000=10)).actions[1:] == (
        MoveLeader(name="db-0000", member_id="id-db-0000"),
    )


def test_a_member_that_is_done_leads_though_it_has_to_catch_up() -> None:
    state = led_by(to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002"), "db-0001")

    assert plan(_behind(state, db_0002=500)).actions[1:] == (
        MoveLeader(name="db-0002", member_id="id-db-0002"),
    )


def test_a_cluster_of_one_has_nobody_to_lead_instead() -> None:
    assert plan(to_upgrade(runs=(OLD,), size=1)).actions[1:] == (ReplaceMember(name="db-0000", version=NEW),)


def test_what_is_on_record_is_not_written_again() -> None:
    state = to_upgrade(upgrading="db-0002")

    assert plan(state).actions == (ReplaceMember(name="db-0002", version=NEW),)


def test_the_next_member_is_stopped_when_the_one_before_serves() -> None:
    state = to_upgrade(runs=(OLD, OLD, NEW), upgrading="db-0002")

    assert plan(state).actions == (
        remembered(state, under_way("db-0001")),
        ReplaceMember(name="db-0001", version=NEW),
    )


def test_when_all_run_the_version_the_upgrade_is_over() -> None:
    state = to_upgrade(runs=(NEW, NEW, NEW), upgrading="db-0000")

    made = plan(state)

    assert (made.actions, made.reason) == ((remembered(state, None),), "UpgradeFinished")


def test_a_cluster_that_is_not_bootstrapped_is_not_upgraded() -> None:
    state = to_upgrade()
    not_bootstrapped = with_record(state, cluster_id="")

    assert roll(not_bootstrapped) is None
    assert refused(not_bootstrapped) is None


@pytest.mark.parametrize("upgrading", [None, "db-0002"])
def test_without_a_quorum_no_member_is_stopped(upgrading: str | None) -> None:
    state = replace(down(to_upgrade(upgrading=upgrading), "db-0000", "db-0001"), has_quorum=False)

    assert plan(state).reason == "QuorumLost"


def test_a_member_that_was_removed_is_no_longer_the_upgrading_one() -> None:
    state = to_upgrade(runs=(OLD, OLD, OLD), upgrading="db-0007")
    gone = Member(name="db-0007", pod=pod("db-0007", is_terminating=True))
    state = replace(state, members=(*state.members, gone))

    assert ReplaceMember(name="db-0002", version=NEW) in plan(state).actions


def test_missing_members_come_first_once_members_have_been_stopped() -> None:
    state = to_upgrade(runs=(OLD, OLD, OLD, NEW), upgrading="db-0003", size=5)

    made = plan(state)

    assert isinstance(made.actions[0], AddLearner)
    (join,) = (action for action in made.actions if isinstance(action, CreateMember))
    assert join.version == OLD


def test_missing_members_come_first_where_none_may_be_away() -> None:
    assert isinstance(plan(to_upgrade(runs=(OLD, OLD), size=3)).actions[0], AddLearner)


def test_otherwise_the_upgrade_comes_before_growing() -> None:
    assert ReplaceMember(name="db-0002", version=NEW) in plan(to_upgrade(size=5)).actions


def test_shrinking_comes_before_the_upgrade() -> None:
    assert any(
        isinstance(action, RemoveMember) for action in plan(to_upgrade(runs=(OLD,) * 5, size=3)).actions
    )


@BOTH
def test_the_next_upgrade_begins_from_what_runs_by_then(cluster: DesiredCluster) -> None:
    """All run 3.6, and 3.5 is on record: whoever fails at 3.7 must not be advised to go back to 3.5."""
    runs = ("3.6.16", "3.6.16", "3.6.16")
    state = to_upgrade(cluster, runs=runs, wanted="3.7.3", initial="3.6.16")
    first, _, highest = names(state)
    state = on_record(state, Upgrade(origin=OLD, target="3.6.16", member=first))

    begun = Upgrade(origin="3.6.16", target="3.7.3", member=highest)
    assert plan(state).actions == (remembered(state, begun), ReplaceMember(name=highest, version="3.7.3"))

    away = changed(at(on_record(state, begun), highest, "3.6.16", requested="3.7.3"), highest, answer=None)
    made = plan(changed(away, highest, problem=CRASH))
    assert made.reason == "UpgradeBlocked"


def test_the_version_that_an_upgrade_began_from_is_kept_while_a_member_is_silent() -> None:
    state = to_upgrade(runs=(OLD, NEW, NEW), wanted="3.5.36")
    state = on_record(changed(down(state, "db-0000"), "db-0000", problem=CRASH), under_way("db-0000"))

    begun = under_way("db-0000", wanted="3.5.36")
    assert plan(state).actions[0] == remembered(state, begun)


def test_a_missing_peer_is_made_again_at_the_version_on_its_claim() -> None:
    claim = old_claim("db-2", version="3.5.30")
    state = persistent_away(peer=None, claim=claim)

    (join,) = plan(state).actions
    assert isinstance(join, CreateMember)
    assert join.version == "3.5.30"
    assert plan(state).is_quiet
