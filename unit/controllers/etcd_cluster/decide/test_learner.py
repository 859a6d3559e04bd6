"""Learners: promoted when they are in step, waited for, reported and removed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    CreateMember,
    DeleteMember,
    Promote,
    RemoveMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PodFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.polling import LONGEST, STEP
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import SEED_POLL
from etcd_operator.controllers.etcd_cluster.decide.rules.learner import (
    LONG_SILENCE,
    TOO_LONG,
    remove_outdated,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.builders import (
    IMAGE_PROBLEM,
    bootstrapped,
    changed,
    down,
    entry,
    ephemeral,
    old_claim,
    persistent,
    pod,
    without,
)
from unit.controllers.etcd_cluster.decide.recovery import manual_recoveries, quorum_losses
from unit.controllers.etcd_cluster.decide.sizes import kinds, sized, unstarted, with_learner, with_members
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import NEW, OLD, to_upgrade


def test_a_learner_that_answers_is_promoted() -> None:
    made = plan(with_learner(sized(persistent(), 5), "db-3"))

    assert made.actions == (Promote(name="db-3", member_id="id-db-3"),)


def test_a_learner_that_has_not_started_is_waited_for() -> None:
    made = plan(with_learner(sized(persistent(), 5), "db-3", answer=None))

    assert (made.actions, made.stage, made.message) == ((), Stage.WORKING, "waiting for db-3 to start")


@pytest.mark.parametrize("seconds", [LONG_SILENCE, TOO_LONG - 1.0])
def test_a_learner_that_runs_and_answers_nobody_is_reported_after_a_while(seconds: float) -> None:
    silent = with_learner(sized(persistent(), 5), "db-3", answer=None, silent_for=seconds)
    made = plan(silent)

    assert (kinds(made), made.stage, made.reason) == (["AppendEntry"], Stage.HELD, "LearnerSilent")
    wait = plan(changed(silent, "db-3", silent_for=LONG_SILENCE - 1.0))
    assert (wait.stage, wait.message) == (Stage.WORKING, "waiting for db-3 to start")


@pytest.mark.parametrize(
    "listed", [entry("db-3", is_learner=True), unstarted("db-3")], ids=["was up", "never"]
)
def test_a_learner_that_answers_nobody_for_too_long_is_removed(listed: EtcdMember) -> None:
    state = with_learner(sized(persistent(), 5), "db-3", answer=None, silent_for=TOO_LONG, entry=listed)

    assert kinds(plan(state)) == ["RemoveMember", "DeleteMember"]


def test_a_learner_that_answers_nobody_goes_at_once_when_it_is_in_the_way() -> None:
    silent = with_learner(sized(ephemeral(), 5), "db-0003", answer=None, silent_for=LONG_SILENCE)
    asked = replace(silent, desired=replace(silent.desired, version="3.7.3"))

    for state in (down(silent, "db-0001"), asked):
        assert "RemoveMember" in kinds(plan(state))
        early = plan(changed(state, "db-0003", silent_for=LONG_SILENCE - 1.0))
        assert "RemoveMember" not in kinds(early)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(
            to_upgrade(persistent(), runs=(OLD, NEW), upgrading="db-1", size=3), id="an upgrade is under way"
        ),
        pytest.param(to_upgrade(persistent(), runs=(OLD, OLD), size=3), id="none of two may be away"),
    ],
)
def test_a_learner_that_an_upgrade_waits_for_is_given_its_time(state: ClusterState) -> None:
    """The upgrade would wait for the next one as long: a large database could never be received in time."""
    joining = with_learner(state, "db-2", answer=None, silent_for=LONG_SILENCE)
    assert kinds(plan(state))[0] == "AddLearner"

    made = plan(joining)
    assert (kinds(made), made.stage, made.reason) == (["AppendEntry"], Stage.HELD, "LearnerSilent")
    assert "RemoveMember" in kinds(plan(changed(joining, "db-2", silent_for=TOO_LONG)))


def test_a_learner_that_cannot_start_reports_why() -> None:
    made = plan(with_learner(sized(persistent(), 5), "db-3", answer=None, problem=IMAGE_PROBLEM))

    assert (made.stage, made.reason, made.message) == (Stage.HELD, "ErrImagePull", "db-3: no such image")


def _without_node(seconds: float) -> PodFacts:
    return pod("db-3", is_running=False, has_run=False, is_assigned=False, creating_for=seconds)


@pytest.mark.parametrize(
    "listed", [entry("db-3", is_learner=True), unstarted("db-3")], ids=["was up", "never"]
)
def test_a_learner_for_whose_volume_there_is_no_node_is_removed_after_a_while(listed: EtcdMember) -> None:
    """The only nodes of its zone are gone, and a new volume is provisioned where its pod can run."""
    problem = PodProblem(reason="Unschedulable", message="3 node(s) had volume node affinity conflict")
    state = with_learner(sized(persistent(), 5), "db-3", answer=None, problem=problem, entry=listed)

    for found in (
        changed(state, "db-3", pod=_without_node(TOO_LONG - 1.0)),
        changed(state, "db-3", pod=_without_node(TOO_LONG), claim=old_claim("db-3", is_bound=False)),
        changed(state, "db-3", pod=_without_node(TOO_LONG), claim=None),
    ):
        assert (plan(found).reason, plan(found).actions) == ("Unschedulable", ())
    stuck = changed(state, "db-3", pod=_without_node(TOO_LONG), claim=old_claim("db-3", is_bound=True))
    assert kinds(plan(stuck)) == ["RemoveMember", "DeleteMember"]


def test_a_learner_whose_volume_is_not_attached_is_reported_with_a_way_out() -> None:
    made = plan(with_learner(sized(persistent(), 5), "db-3", **_creating(LONG_SILENCE)))

    assert (made.stage, made.reason, made.actions) == (Stage.HELD, "ContainerCreating", ())
    assert made.message.endswith("to begin again with another volume: kubectl delete pvc db-3")
    ephemerals = with_learner(sized(ephemeral(), 5), "db-0003", **_creating(LONG_SILENCE))
    assert "pvc" not in plan(ephemerals).message


@pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])
def test_a_learner_that_can_never_start_is_removed_to_begin_again(cluster: DesiredCluster) -> None:
    """Its flags name members that are gone, or its volume is that of a member that was removed."""
    name = cluster.member_name(3)
    refusing = pod(name, is_running=False, restarts=1, can_never_join=True)
    state = with_learner(sized(cluster, 5), name, answer=None, pod=refusing, problem=IMAGE_PROBLEM)
    assert plan(state).stage is Stage.HELD  # it has started once: etcd knows its name

    made = plan(changed(state, name, entry=unstarted(name)))
    assert kinds(made)[-2:] == ["RemoveMember", "DeleteMember"]


def test_an_ephemeral_learner_that_is_being_deleted_is_not_made_a_voter() -> None:
    """With one voter it would take the quorum with it; it never comes back."""
    state = with_learner(sized(ephemeral(size=1), 3), "db-0001", pod=pod("db-0001", is_terminating=True))

    made = plan(state)

    assert kinds(made) == ["Remember", "RemoveMember", "DeleteMember"]


def test_a_persistent_learner_that_is_just_restarted_is_not_made_a_voter_yet() -> None:
    state = with_learner(sized(persistent(size=1), 3), "db-1", pod=pod("db-1", is_terminating=True))

    made = plan(state)

    assert (made.actions, made.stage, made.message) == ((), Stage.WORKING, "waiting for db-1 to start")


def test_a_persistent_learner_whose_claim_is_being_deleted_is_removed() -> None:
    losing_data = old_claim("db-1", is_terminating=True)

    made = plan(with_learner(sized(persistent(size=1), 3), "db-1", claim=losing_data))

    assert kinds(made) == ["RemoveMember", "DeleteMember"]


@pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])
def test_an_add_that_was_cut_off_goes_on_with_the_objects(cluster: DesiredCluster) -> None:
    name = cluster.member_name(3)
    made = plan(with_members(sized(cluster, 5), Member(name=name, entry=unstarted(name))))

    assert "AddLearner" not in kinds(made)
    assert any(isinstance(action, CreateMember) and action.name == name for action in made.actions)
    assert ("Remember" in kinds(made)) is (cluster.kind is EPHEMERAL)


def test_a_learner_that_is_not_needed_any_more_is_removed() -> None:
    made = plan(with_learner(sized(persistent(), 3), "db-3"))

    assert made.actions == (RemoveMember(name="db-3", member_id="id-db-3"), DeleteMember(name="db-3"))
    assert made.message == "db-3 is not needed"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"pod": None}, id="its pod is gone"),
        pytest.param({"pod": pod("db-0003", is_finished=True)}, id="its pod has failed"),
    ],
)
def test_an_ephemeral_learner_that_was_lost_is_removed_with_its_number(changes: dict[str, Any]) -> None:
    made = plan(with_learner(sized(ephemeral(), 5), "db-0003", answer=None, **changes))

    assert kinds(made) == ["Remember", "RemoveMember", "DeleteMember"]


def test_a_learner_that_has_not_started_goes_before_a_lost_voter() -> None:
    """Its flags name the lost one: etcd would refuse them for ever (`member count is unequal`)."""
    state = without(bootstrapped(ephemeral()), "db-0001")
    lost = Member(name="db-0001", entry=entry("db-0001"))
    learner = Member(name="db-0003", pod=pod("db-0003"), has_service=True, entry=unstarted("db-0003"))
    state = with_members(state, lost, learner)

    made = plan(state)

    assert kinds(made) == ["Remember", "RemoveMember", "DeleteMember"]
    assert made.actions[1] == RemoveMember(name="db-0003", member_id="id-db-0003")


def test_a_learner_that_has_started_may_stay_when_a_lost_voter_goes() -> None:
    """Flags count only where there is no data."""
    state = with_learner(without(bootstrapped(ephemeral()), "db-0001"), "db-0003")
    state = with_members(state, Member(name="db-0001", entry=entry("db-0001")))

    assert remove_outdated(state) is None
    assert plan(state).actions == (RemoveMember(name="db-0001", member_id="id-db-0001"),)


def test_an_unstarted_learner_stays_while_no_voter_is_lost() -> None:
    state = with_members(
        bootstrapped(ephemeral()), Member(name="db-0003", pod=pod("db-0003"), entry=unstarted("db-0003"))
    )

    assert remove_outdated(state) is None


def _creating(seconds: float) -> dict[str, object]:
    return {"pod": pod("db-3", is_running=False, creating_for=seconds), "answer": None}


def _silent(seconds: float) -> dict[str, object]:
    return {"pod": pod("db-3"), "silent_for": seconds, "answer": None}


STARTS: list[tuple[Callable[..., ClusterState], float]] = [
    (manual_recoveries.recovering, SEED_POLL),
    (quorum_losses.recovering, SEED_POLL),
    (lambda **parts: with_learner(sized(persistent(), 5), "db-3", **parts), STEP),
]


@pytest.mark.parametrize("waits", [_creating, _silent], ids=["no container was started", "it is silent"])
@pytest.mark.parametrize(("start", "least"), STARTS, ids=["manual recovery", "recovery", "learner"])
def test_what_takes_long_to_start_is_observed_ever_more_rarely(
    start: Callable[..., ClusterState], least: float, waits: Callable[[float], dict[str, object]]
) -> None:
    pauses = [plan(start(**waits(seconds))).requeue_after for seconds in (0.0, 2.0, 40.0, 79.0, 100.0)]

    assert pauses == [least, least, 1.0, pytest.approx(1.975), LONGEST]


def test_a_seed_without_a_pod_is_observed_as_often_as_a_new_one() -> None:
    assert plan(manual_recoveries.recovering(pod=None)).requeue_after == SEED_POLL
