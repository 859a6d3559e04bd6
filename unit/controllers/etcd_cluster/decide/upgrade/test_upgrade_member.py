"""The upgrading member: waited for, started again, or reported as blocked."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    RecreatePod,
    RemoveMember,
    ReplaceMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.members import PodFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import AddReader
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import LATE, PATIENCE
from etcd_operator.controllers.etcd_cluster.decide.upgrade.state_machine import roll
from unit.controllers.etcd_cluster.decide.builders import (
    IMAGE_PROBLEM,
    answer,
    answering,
    changed,
    down,
    peer,
    persistent,
    pod,
)
from unit.controllers.etcd_cluster.decide.protected import plan
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import (
    BOTH,
    CRASH,
    NEW,
    OLD,
    TERMINATING_PEER,
    at,
    away,
    crashing,
    desiring,
    names,
    on_record,
    persistent_away,
    remembered,
    to_upgrade,
    under_way,
)

AWAY = [
    pytest.param(away(), id="it does not answer yet"),
    pytest.param(
        at(to_upgrade(upgrading="db-0002"), "db-0002", OLD, requested=NEW), id="its old process still answers"
    ),
    pytest.param(away(answer=answer("db-0002", version=NEW, leader="")), id="it follows no leader yet"),
    pytest.param(persistent_away(peer=TERMINATING_PEER), id="its peer is being deleted"),
    pytest.param(
        changed(
            to_upgrade(persistent(), runs=(OLD, OLD, NEW), upgrading="db-2"),
            "db-2",
            peer=replace(TERMINATING_PEER, version=NEW),
        ),
        id="its peer is being deleted and its process answers",
    ),
]


@pytest.mark.parametrize("state", AWAY)
def test_the_upgrading_member_is_waited_for(state: ClusterState) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Upgrading")
    assert made.message == f"waiting for {names(state)[-1]} to serve at {NEW}"


def test_a_member_that_does_not_come_up_blocks_the_upgrade_with_the_way_back() -> None:
    made = plan(away(problem=IMAGE_PROBLEM))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeBlocked")


def test_a_member_that_went_back_in_vain_is_not_advised_to_go_back() -> None:
    """Its data may be of the newer version by now; what it waits for is a version that can read it."""
    state = at(away(problem=IMAGE_PROBLEM), "db-0002", OLD)
    made = plan(desiring(state, OLD))

    assert made.reason == "UpgradeBlocked"
    assert made.message.endswith("a version other than 3.5.34 in the spec is tried on this member at once")


def test_a_peer_that_cannot_be_made_again_blocks_the_upgrade() -> None:
    forbidden = PodProblem(reason="Forbidden", message="no right to create")
    made = roll(persistent_away(peer=None, problem=forbidden))

    assert made is not None
    assert made.reason == "UpgradeBlocked"


@pytest.mark.parametrize("wanted", [OLD, "3.6.16"])
def test_the_next_desired_version_is_tried_on_the_member_that_is_away(wanted: str) -> None:
    state = away(problem=IMAGE_PROBLEM)
    state = desiring(state, wanted)

    assert plan(state).actions == (
        remembered(state, under_way("db-0002", wanted=wanted)),
        ReplaceMember(name="db-0002", version=wanted),
    )


def test_a_member_that_still_serves_is_not_started_again_where_the_others_need_it() -> None:
    state = down(at(to_upgrade(upgrading="db-0002"), "db-0002", OLD, requested=NEW), "db-0001")
    state = desiring(state, "3.5.36")

    assert plan(state).actions == ()


def _alone_and_blocked() -> ClusterState:
    state = at(to_upgrade(runs=(OLD,), upgrading="db-0000"), "db-0000", OLD, requested=NEW)
    return changed(state, "db-0000", answer=None, entry=None, problem=IMAGE_PROBLEM)


def test_a_member_that_is_blocked_alone_is_taken_back_without_a_quorum() -> None:
    state = replace(_alone_and_blocked(), has_quorum=False)

    assert plan(state).reason == "UpgradeBlocked"
    back = desiring(state, OLD)
    assert ReplaceMember(name="db-0000", version=OLD) in plan(back).actions


def test_a_member_that_is_away_is_not_started_at_a_version_that_needs_a_snapshot() -> None:
    """3.7 panics on what 3.5 wrote; only a member that serves at 3.6 can save the snapshot behind it."""
    state = to_upgrade(runs=("3.6.16",), wanted="3.6.17")
    state = on_record(state, under_way("db-0000", wanted="3.6.17", origin="3.6.16"))
    state = at(state, "db-0000", "3.6.16", requested="3.6.17")
    state = changed(state, "db-0000", answer=None, entry=None, problem=IMAGE_PROBLEM)
    state = desiring(replace(state, has_quorum=False), "3.7.3")
    made = plan(state)

    assert (made.actions, made.reason) == ((), "UpgradeBlocked")
    began_with_3_6 = to_upgrade(runs=("3.6.16",), initial="3.6.16").persisted.bootstrap
    readable = replace(state.persisted, bootstrap=began_with_3_6)
    state = replace(state, desired=replace(state.desired, persisted=readable))
    assert ReplaceMember(name="db-0000", version="3.7.3") in plan(state).actions


def test_a_missing_pod_is_for_other_rules_to_report() -> None:
    assert roll(away(pod=None)) is None


def _crash(upgrading: str, version: str = NEW, *, is_broken: bool = True) -> ClusterState:
    """db-2 crashes at `version`; its log reports that its data is broken, or nothing."""
    crashed = pod("db-2", is_running=False, restarts=9, has_broken_data=is_broken)
    state = changed(to_upgrade(persistent(), upgrading=upgrading), "db-2", answer=None, pod=crashed)
    peer = state.by_name["db-2"].peer
    assert peer is not None
    return changed(state, "db-2", peer=replace(peer, version=version))


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(_crash("db-2"), id="upgrading: its data may be unreadable to the new version only"),
        pytest.param(_crash("db-2", is_broken=False), id="upgrading, without a reason in its log"),
        pytest.param(
            _crash("db-1", is_broken=False), id="upgraded, and the version turns out to be bad later"
        ),
        pytest.param(_crash("db-2", OLD, is_broken=False), id="taken back"),
    ],
)
def test_a_member_that_crashes_at_its_new_version_is_not_taken_for_lost(state: ClusterState) -> None:
    assert not any(isinstance(action, RemoveMember) for action in plan(state).actions)


@pytest.mark.parametrize("state", [_crash("db-1"), _crash("db-2", OLD)], ids=["not upgrading", "taken back"])
def test_a_member_whose_data_is_broken_at_any_version_is_replaced(state: ClusterState) -> None:
    """Once a second pod has reported the same."""
    (remade,) = plan(state).actions
    assert isinstance(remade, RecreatePod)
    claim = state.by_name[remade.name].claim
    assert claim is not None

    again = changed(state, remade.name, claim=replace(claim, missing_in="the pod before"))
    assert isinstance(plan(again).actions[0], RemoveMember)


def _without_quorum(cluster: DesiredCluster, *, upgrading: str | None) -> ClusterState:
    """Two of three members are lost, and the third one crashes."""
    state = to_upgrade(cluster, upgrading=upgrading, wanted=NEW)
    first, *others = names(state)
    for name in others:
        state = changed(state, name, answer=None, entry=None, pod=None, peer=None, claim=None)
    return replace(crashing(state, first, entry=None), has_quorum=False)


@pytest.mark.parametrize("reported", ["has_no_data", "can_never_join"])
@BOTH
def test_a_member_whose_data_is_of_no_use_is_not_tried_at_another_version(
    cluster: DesiredCluster, reported: str
) -> None:
    """Otherwise status would report a blocked upgrade instead of the lost quorum."""
    first = names(to_upgrade(cluster))[0]
    for upgrading in (None, first):
        state = _without_quorum(cluster, upgrading=upgrading)
        assert plan(state).actions[-1:] == (ReplaceMember(name=first, version=NEW),)

        refusing = pod(
            first, is_running=False, has_restarted=True, restarts=9, version=OLD, **{reported: True}
        )
        claim = state.by_name[first].claim
        remade = replace(claim, missing_in="the pod before") if claim is not None else None
        made = plan(changed(state, first, pod=refusing, claim=remade))
        assert (made.actions, made.reason) == ((), "QuorumLost")


def test_a_member_whose_claim_is_gone_is_not_waited_for_though_its_pod_is_there() -> None:
    """The pod waits for its volume, and no problem is known."""
    state = _without_quorum(persistent(), upgrading="db-0")
    waiting = pod("db-0", is_running=False, has_run=False)
    state = changed(at(state, "db-0", OLD, requested=NEW), "db-0", pod=waiting, problem=None)
    assert plan(state).reason == "Upgrading"

    made = plan(changed(state, "db-0", claim=None))
    assert (made.actions, made.reason) == ((), "NoBackup")


@BOTH
def test_an_upgrading_member_that_lacks_only_the_others_is_not_waited_for_for_ever(
    cluster: DesiredCluster,
) -> None:
    """It runs at its version; what is missing is a quorum, and that is what status has to report."""
    first = names(to_upgrade(cluster))[0]
    state = at(_without_quorum(cluster, upgrading=first), first, OLD, requested=NEW)
    state = changed(state, first, pod=pod(first, version=NEW), problem=None)

    assert plan(replace(state, unavailable_for=PATIENCE)).reason == "Upgrading"
    made = plan(replace(state, unavailable_for=PATIENCE + 1))
    read = (AddReader(name=first),) if cluster.kind is PERSISTENT else ()
    assert (made.actions, made.reason) == (read, "QuorumLost")


@BOTH
def test_an_upgrading_member_that_may_serve_silently_is_not_stopped_where_it_is_needed(
    cluster: DesiredCluster,
) -> None:
    """A quorum answers, though too few members do: one of the silent ones is part of it."""
    _, middle, highest = names(to_upgrade(cluster))
    state = at(to_upgrade(cluster, upgrading=highest, wanted="3.5.36"), highest, OLD, requested=NEW)
    state = down(state, middle, highest)

    assert plan(state).actions == ()
    state = replace(state, has_quorum=False)
    assert ReplaceMember(name=highest, version="3.5.36") in plan(state).actions
    state = down(state, *names(state))
    assert plan(state).actions == ()
    ended = pod(highest, is_running=False, version=NEW)
    assert ReplaceMember(name=highest, version="3.5.36") in plan(changed(state, highest, pod=ended)).actions


NEW_PEER = peer("db-2", is_existing_only=True, version=NEW)

LATE_MEMBERS = [
    pytest.param(
        persistent_away(peer=replace(TERMINATING_PEER, version=NEW)),
        "its former pod has not ended",
        id="its peer is being deleted for ever, as on a node that was cut off",
    ),
    pytest.param(persistent_away(peer=NEW_PEER), "it has no pod", id="no pod is made"),
    pytest.param(
        changed(persistent_away(peer=NEW_PEER), "db-2", pod=pod("db-2", is_running=False)),
        "its container does not start",
        id="its volume is not mounted",
    ),
    pytest.param(away(), "it runs, but does not answer", id="it hangs"),
    pytest.param(
        at(to_upgrade(upgrading="db-0002"), "db-0002", OLD, requested=NEW),
        f"it runs {OLD}: its container was not started again",
        id="its image was changed back",
    ),
    pytest.param(
        away(answer=answer("db-0002", version=NEW, leader="")),
        "it follows no leader",
        id="it follows no leader",
    ),
]


@pytest.mark.parametrize(("state", "found"), LATE_MEMBERS)
def test_a_member_that_is_waited_for_in_vain_is_reported_with_what_is_known(
    state: ClusterState, found: str
) -> None:
    """Otherwise status would report for ever that nothing is known to be wrong."""
    name = names(state)[-1]
    assert plan(replace(state, awaited_for=LATE)).reason == "Upgrading"

    made = plan(replace(state, awaited_for=LATE + 1))
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "UpgradeBlocked")
    assert made.message.startswith(f"{name} has not served at {NEW} for more than 2 minutes: {found}")
    is_going = found.startswith("its former pod")
    assert made.message.endswith("set that version in the spec") is not is_going


def test_a_member_whose_former_pod_crashes_on_is_not_advised_to_go_back_before_that_has_ended() -> None:
    state = persistent_away(peer=replace(TERMINATING_PEER, version=NEW), problem=IMAGE_PROBLEM)

    assert plan(state).reason == "Upgrading"
    made = plan(replace(state, awaited_for=LATE + 1))
    assert made.reason == "UpgradeBlocked"
    assert "its former pod has not ended" in made.message


@pytest.mark.parametrize("found", [None, pod("db-2", is_running=False)], ids=["no pod", "it does not start"])
def test_a_member_that_is_late_does_not_hide_a_lost_quorum(found: PodFacts | None) -> None:
    """Otherwise the way to recover the cluster would never be offered."""
    state = changed(persistent_away(peer=NEW_PEER), "db-2", pod=found)
    state = answering(replace(state, has_quorum=False), "db-0", leader="")
    state = replace(state, unavailable_for=PATIENCE + 1, awaited_for=LATE + 1)
    assert plan(state).reason == "UpgradeBlocked"

    made = plan(down(state, "db-1"))
    assert (made.actions, made.reason) == ((), "QuorumLost")


@pytest.mark.parametrize(
    ("problem", "restarted", "reason"),
    [
        (PodProblem(reason="Unschedulable", message="no node is free"), False, "QuorumLost"),
        (IMAGE_PROBLEM, False, "UpgradeBlocked"),
        (CRASH, True, "UpgradeBlocked"),
    ],
)
def test_a_quorum_that_another_version_cannot_bring_back_is_reported(
    problem: PodProblem, *, restarted: bool, reason: str
) -> None:
    """Where one may, nobody has to give up members."""
    found = pod("db-2", is_running=False, has_restarted=restarted)
    state = changed(persistent_away(peer=NEW_PEER, problem=problem), "db-2", pod=found)
    state = answering(replace(state, has_quorum=False, unavailable_for=LATE + 1), "db-0", leader="")
    state = changed(state, "db-1", answer=None, pod=None)  # with a pod, its data would be read first

    assert plan(state).reason == "UpgradeBlocked"
    assert plan(replace(state, awaited_for=LATE + 1)).reason == reason


def test_a_member_that_is_late_is_taken_to_another_version_all_the_same() -> None:
    state = replace(desiring(away(), OLD), awaited_for=LATE + 1)

    assert ReplaceMember(name="db-0002", version=OLD) in plan(state).actions
