"""What is reported about a bootstrapped cluster that no other rule acts upon."""

from dataclasses import replace

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import Stage
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.polling import RECHECK
from etcd_operator.controllers.etcd_cluster.decide.rules.unhealthy import watch
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import OUT_OF_SPACE
from unit.controllers.etcd_cluster.decide.builders import (
    AN_ERROR,
    FULL_STORE,
    IMAGE_PROBLEM,
    answer,
    bootstrapped,
    changed,
    down,
    ephemeral,
    pod,
)

CASES = [
    pytest.param(
        down(bootstrapped(has_quorum=False), "db-0", "db-2"),
        "QuorumLost",
        "db-0, db-2 unhealthy or not answering: no quorum answers",
        id="a lost quorum names the silent members",
    ),
    pytest.param(
        down(
            down(
                bootstrapped(has_quorum=False), "db-0", problem=PodProblem(reason="DataLost", message="empty")
            ),
            "db-1",
        ),
        "QuorumLost",
        "db-0 (DataLost), db-1 unhealthy or not answering: no quorum answers",
        id="a lost quorum names why, where it is known",
    ),
    pytest.param(
        replace(bootstrapped(), has_quorum=False),
        "QuorumLost",
        "no member is known: no quorum answers",
        id="healthy words without a linearizable read are no quorum",
    ),
    pytest.param(
        down(bootstrapped(), "db-1"),
        "MemberUnhealthy",
        "waiting for db-1 (no answer)",
        id="a silent member is reported",
    ),
    pytest.param(
        changed(bootstrapped(), "db-1", answer=answer("db-1", **AN_ERROR)),
        "MemberUnhealthy",
        "waiting for db-1 (unhealthy)",
        id="an alarmed member is reported",
    ),
    pytest.param(
        changed(bootstrapped(), "db-1", answer=answer("db-1", **FULL_STORE)),
        *OUT_OF_SPACE,
        id="a full store is reported, and what to do about it",
    ),
    pytest.param(
        down(bootstrapped(), "db-1", problem=IMAGE_PROBLEM),
        "ErrImagePull",
        "db-1: no such image",
        id="the cause of silence is reported in the words of Kubernetes",
    ),
    pytest.param(
        down(down(bootstrapped(voters=5), "db-1"), "db-3", problem=IMAGE_PROBLEM),
        "ErrImagePull",
        "db-3: no such image",
        id="a known cause is reported before an unknown one",
    ),
]


@pytest.mark.parametrize(("state", "reason", "message"), CASES)
def test_a_cluster_that_is_not_well_reports_why(state: ClusterState, reason: str, message: str) -> None:
    made = watch(state)

    assert made is not None
    assert made.stage is Stage.HELD
    assert made.actions == ()
    assert (made.reason, made.message, made.requeue_after) == (reason, message, RECHECK)


def test_a_healthy_cluster_has_nothing_to_report() -> None:
    assert watch(bootstrapped()) is None


def test_a_former_problem_of_a_healthy_member_is_not_reported() -> None:
    assert watch(changed(bootstrapped(), "db-1", problem=IMAGE_PROBLEM)) is None


def test_what_is_left_of_a_member_that_was_removed_is_waited_for_but_no_problem() -> None:
    """Its etcd ends with an error when it hears that it was removed."""
    failed = PodProblem(reason="PodFailed", message="the pod failed")
    left = pod("db-0001", is_terminating=True, is_finished=True, problem=failed)
    state = changed(
        bootstrapped(ephemeral()),
        "db-0001",
        entry=None,
        answer=None,
        has_service=False,
        problem=failed,
        pod=left,
    )
    made = watch(state)

    assert made is not None
    assert (made.stage, made.reason, made.actions) == (Stage.WORKING, "Removing", ())
    assert made.message == "removing what is left of db-0001"
    kept = watch(changed(state, "db-0001", pod=replace(left, is_terminating=False)))
    assert kept is not None
    assert kept.reason == "PodFailed"


def test_a_young_cluster_waits_for_its_last_initial_members_without_alarm() -> None:
    made = watch(down(bootstrapped(age=5.0), "db-1"))

    assert made is not None
    assert (made.stage, made.reason) == (Stage.WORKING, "Creating")


def test_a_quorum_whose_voters_reported_no_list_is_observed_again() -> None:
    state = bootstrapped()
    made = watch(replace(state, members=tuple(replace(m, entry=None) for m in state.members)))

    assert made is not None
    assert (made.stage, made.reason, made.requeue_after) == (Stage.WORKING, "Observing", RECHECK)
