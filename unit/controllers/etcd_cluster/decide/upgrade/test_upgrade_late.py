"""The upgrading member that does not serve, although nothing shows what keeps it away."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import ReplaceMember, Stage
from etcd_operator.controllers.etcd_cluster.decide.members import PodFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import LATE, PATIENCE
from unit.controllers.etcd_cluster.decide.builders import (
    IMAGE_PROBLEM,
    answer,
    answering,
    changed,
    down,
    peer,
    pod,
)
from unit.controllers.etcd_cluster.decide.protected import plan
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import (
    CRASH,
    NEW,
    OLD,
    TERMINATING_PEER,
    at,
    away,
    desiring,
    names,
    persistent_away,
    to_upgrade,
)

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
