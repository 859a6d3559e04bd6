"""A cluster that was created on claims with data starts for the first time: no quorum was lost."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.meta import Condition
from etcd_operator.api.persisted import Adoption, Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.cluster_metrics import cluster_metrics
from etcd_operator.controllers.etcd_cluster.decide.events import quorum_event
from etcd_operator.controllers.etcd_cluster.decide.first_start import LONG_BOOTSTRAP, is_resumed, is_resuming
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ConfirmSilence
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import Absence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import available, conditions
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    IMAGE_PROBLEM,
    NAMES,
    TOKEN,
    answer,
    bootstrapped,
    changed,
    down,
    entry,
    ephemeral,
    persistent,
    with_record,
)

AWAITED = "waiting for a quorum of db-0, db-1, db-2 to serve on the data of their claims"
LISTED = tuple(entry(name) for name in NAMES)


def resumed(**changes: Any) -> ClusterState:
    """Created again a moment ago, on claims of a resource with another UID."""
    cluster = persistent(**{"uid": "uid-2", "available_reason": "Creating", **changes})
    return bootstrapped(cluster, age=5.0)


def starting(*answering: str, **changes: Any) -> ClusterState:
    """Of its members, only these answer; no quorum does."""
    silent = [name for name in NAMES if name not in answering]
    state = replace(down(resumed(**changes), *silent), has_quorum=False, unavailable_for=5.0)
    for name in answering:
        state = changed(state, name, answer=answer(name, LISTED, leader=""))
    return state


def reported(state: ClusterState) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in conditions(state, plan(state))}


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(starting(), id="no member answers yet"),
        pytest.param(starting("db-1"), id="one answers before the others"),
        pytest.param(starting("db-1", "db-2"), id="a leader is being elected"),
        pytest.param(starting(available_reason=""), id="nothing was reported yet"),
        pytest.param(
            changed(starting("db-1"), "db-1", answer=answer("db-1", LISTED, leader="", version="3.5.9")),
            id="of a version that could not be recovered",
        ),
    ],
)
def test_a_cluster_that_starts_on_its_claims_is_being_created(state: ClusterState) -> None:
    made = plan(state)

    assert (made.reason, made.message, made.stage, made.actions) == ("Creating", AWAITED, Stage.WORKING, ())
    assert available(state) == (False, "Creating", f"the cluster has not served yet: {AWAITED}")
    assert reported(state)["Degraded"] == ("False", "AsExpected")
    assert cluster_metrics(state, made).is_available is None


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(replace(starting("db-1"), age=LONG_BOOTSTRAP), id="it takes long"),
        pytest.param(starting("db-1", available_reason="QuorumHealthy"), id="it has served"),
        pytest.param(starting("db-1", available_reason="QuorumLost"), id="the loss was reported"),
        pytest.param(starting("db-1", uid=TOKEN), id="it was bootstrapped by this resource"),
    ],
)
def test_a_loss_is_reported_as_one(state: ClusterState) -> None:
    made = plan(state)

    assert (made.reason, made.stage) == ("QuorumLost", Stage.HELD)
    assert available(state)[1] == "QuorumLost"
    assert cluster_metrics(state, made).is_available is False


def test_what_keeps_a_member_from_its_first_start_is_reported() -> None:
    made = plan(changed(starting(), "db-1", problem=IMAGE_PROBLEM))

    assert (made.reason, made.message, made.stage) == ("ErrImagePull", "db-1: no such image", Stage.HELD)


def test_a_loss_in_the_first_minute_is_recovered_all_the_same() -> None:
    state = replace(starting("db-1", recover=f"{CLUSTER_ID}/db-1/1"), unavailable_for=30.0)
    assert plan(state).reason == "Recovering"

    absence = Absence(seconds=40.0, since="2026-01-01T00:00:00Z")
    made = plan(replace(starting("db-1", recovers_after=30.0), absence=absence))
    assert (made.reason, isinstance(made.actions[0], ConfirmSilence)) == ("Recovering", True)


def test_a_request_that_is_not_possible_is_refused_from_the_beginning() -> None:
    assert plan(starting("db-1", recover="other/db-1/1")).reason == "RecoveryRefused"


def test_external_members_may_serve_while_those_of_an_adoption_start() -> None:
    state = with_record(starting(), adoption=Adoption(members=()))
    assert available(state)[1] == "Adopting"
    assert not is_resuming(state)


@pytest.mark.parametrize(
    ("token", "expected"),
    [("uid-0", True), (TOKEN, False), (f"{TOKEN}-1", False), (f"{TOKEN}.1", False)],
    ids=["of a resource before", "of the bootstrap", "of a recovery", "of a repeated bootstrap"],
)
def test_a_cluster_is_older_than_its_resource_if_its_token_is(token: str, *, expected: bool) -> None:
    state = with_record(bootstrapped(), bootstrap=Bootstrap(members=NAMES, token=token))
    assert is_resumed(state) is expected
    assert not is_resumed(with_record(state, bootstrap=None))


def before(available_as: str, degraded: str = "") -> tuple[Condition, ...]:
    """What the status had."""
    return (
        Condition(type="Available", status="False", reason=available_as),
        Condition(type="Degraded", status="True" if degraded else "False", reason=degraded or "AsExpected"),
    )


SETTLED = Plan.settled()
RETURNED = ("QuorumReturned", "a quorum answers again")
RESUMED = ("Resumed", f"a quorum serves on the data of the claims, cluster ID {CLUSTER_ID}")
HEALTHY = (Condition(type="Available", status="True", reason="QuorumHealthy"), *before("")[1:])
LOST = before("QuorumLost", "QuorumLost")


@pytest.mark.parametrize(
    ("found", "state", "expected"),
    [
        pytest.param(before("Creating"), resumed(), RESUMED, id="a resume"),
        pytest.param(before("Creating", "ErrImagePull"), resumed(), RESUMED, id="after a problem"),
        pytest.param(before("Creating"), bootstrapped(), None, id="a bootstrap, which has its own"),
        pytest.param(before("Creating"), starting(), None, id="no quorum yet"),
        pytest.param(LOST, resumed(), RETURNED, id="a resume that took long"),
        pytest.param(LOST, bootstrapped(), RETURNED, id="a loss"),
        pytest.param(before("QuorumLost", "Unschedulable"), bootstrapped(), RETURNED, id="for a reason"),
        pytest.param(before("Adopting", "QuorumLost"), bootstrapped(), RETURNED, id="of an adoption"),
        pytest.param(LOST, bootstrapped(has_quorum=False), None, id="it is still lost"),
        pytest.param(before("QuorumLost"), bootstrapped(), None, id="a member restarted on purpose"),
        pytest.param(before("QuorumLost", "Recovering"), bootstrapped(), None, id="a recovery ended"),
        pytest.param(HEALTHY, bootstrapped(), None, id="it served before"),
        pytest.param((), bootstrapped(), None, id="nothing was reported"),
    ],
)
def test_an_event_says_that_a_quorum_answers(
    found: tuple[Condition, ...], state: ClusterState, expected: tuple[str, str] | None
) -> None:
    assert quorum_event(found, state, SETTLED) == expected


@pytest.mark.parametrize(("gone", "expected"), [((0,), RETURNED), ((0, 1), None), ((0, 1, 2), None)])
def test_members_whose_pods_were_deleted_by_force_do_not_return(gone: tuple[int, ...], expected: Any) -> None:
    """Their processes run on for a moment, and answer through the last one that the operator reaches."""
    state = bootstrapped(ephemeral())
    for number in gone:
        state = changed(state, f"db-{number:04}", pod=None, answer=None)
    assert quorum_event(before("QuorumLost", "BackupPending"), state, SETTLED) == expected


@pytest.mark.parametrize("reason", ["Recovered", "QuorumReturned", "QuorumLost"])
def test_a_milestone_has_its_own_event_and_a_loss_that_goes_on_has_none(reason: str) -> None:
    assert quorum_event(LOST, bootstrapped(), Plan.wait(reason, "", requeue_after=1.0)) is None
