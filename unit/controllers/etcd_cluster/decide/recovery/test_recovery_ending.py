"""A recovery that ends, while the node of what it made is cut off: the cluster that goes on is repaired."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import Action, CreateMember, RemoveMember, Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import DropFilling, DropSeed
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import DELETION_PATIENCE
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import record
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import RECHECK
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import NAMES, TOKEN, changed, claim, down, peer, pod
from unit.controllers.etcd_cluster.decide.recovery.stored import (
    IN_PLACE,
    NAME,
    RECOVERY,
    filling,
    job,
    live,
    remembering,
    seeding,
    sight,
)

FAILED = msgspec.structs.replace(IN_PLACE, failure="it is damaged")
GOING = claim("db-3", token=f"{TOKEN}-1", is_restored=True, is_terminating=True)
CUT_OFF = job(
    is_terminating=True, is_running=False, waited=DELETION_PATIENCE, pod="db-seed-1-x", node="node-7"
)
WAY_OUT = "(if its node node-7 never responds again: kubectl delete pod db-seed-1-x --force)"


def ending(asked: str = "", recovery: Any = IN_PLACE, *, found: Any = CUT_OFF, **parts: Any) -> ClusterState:
    """The claim and the Job of the seed are being deleted."""
    return filling(live(asked, backups=sight(job=found)), recovery, **{"claim": GOING, **parts})


def ended(asked: str = "", recovery: Any = IN_PLACE, *, found: Any = CUT_OFF) -> ClusterState:
    """The same, and the status reports that it has ended."""
    return ending(asked, msgspec.structs.replace(recovery, replaces=""), found=found)


UNUSED = claim("db-3", token=f"{TOKEN}-1", is_restored=True)
"""What was made for the seed, and never used."""
DROP_JOB = DropFilling(name="db-3")


def late(recovery: Any = IN_PLACE, *, found: Any = None, **parts: Any) -> ClusterState:
    """It has ended, and nothing of it is being deleted."""
    return filling(
        live(backups=sight(job=found)),
        msgspec.structs.replace(recovery, replaces=""),
        **parts,
    )


NO_QUORUM = replace(late(RECOVERY, claim=UNUSED), has_quorum=False)


def alone(found: Any) -> ClusterState:
    """The same without an object of the seed but the Job."""
    return remembering(live(backups=sight(job=found)), msgspec.structs.replace(IN_PLACE, replaces=""))


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(ending(), "RestoreCancelled", id="cancelled"),
        pytest.param(ending(NAME, FAILED), "RestoreFailed", id="failed"),
        pytest.param(ending(recovery=RECOVERY), "QuorumReturned", id="a quorum is back"),
        pytest.param(ending(found=None), "RestoreCancelled", id="the Job is gone"),
    ],
)
def test_it_has_ended_as_soon_as_all_of_it_is_being_deleted(state: ClusterState, reason: str) -> None:
    recovery = state.persisted.recovery
    assert recovery is not None
    made = plan(state)
    assert made.actions == (record(state, msgspec.structs.replace(recovery, replaces="")),)
    assert made.reason == reason


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(ending(found=job()), id="the Job"),
        pytest.param(filling(live(backups=sight(job=CUT_OFF))), id="its claim"),
    ],
)
def test_what_is_not_being_deleted_is(state: ClusterState) -> None:
    assert plan(state).actions == (DropSeed(name="db-3"),)


def test_an_etcd_that_may_answer_is_waited_for_and_named() -> None:
    gone = peer("db-3", is_terminating=True, is_for_cleanup=True)
    held = replace(pod("db-3"), name="db-3-abc", node="node-7", is_terminating=True)
    made = plan(seeding(live(), claim=GOING, peer=gone, pod=held))
    assert (made.actions, made.reason, made.requeue_after) == ((), "RecoveryEnding", RECHECK)
    for other in (replace(held, node=""), None):
        assert plan(seeding(live(), claim=GOING, peer=gone, pod=other)).reason == "RecoveryEnding"


def test_the_members_of_the_cluster_are_repaired_meanwhile() -> None:
    lost = changed(ended(), "db-1", claim=None, answer=None)
    lost = changed(lost, "db-1", has_lost_claim=True)
    (remove,) = plan(lost).actions
    assert remove == RemoveMember(name="db-1", member_id="id-db-1")


def test_a_pod_that_does_not_end_is_named() -> None:
    made = plan(ended())
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "RecoveryEnding")
    assert made.requeue_after == RECHECK
    assert made.message.endswith(WAY_OUT)
    assert plan(ended(found=replace(CUT_OFF, pod="", node=""))).reason == "RecoveryEnding"


@pytest.mark.parametrize("found", [None, replace(CUT_OFF, waited=DELETION_PATIENCE - 1)])
def test_what_ends_soon_is_waited_for(found: Any) -> None:
    made = plan(ended(found=found))
    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Removing")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(ended(NAME, FAILED), "RestoreFailed", id="failed"),
        pytest.param(ended("one"), "RestoreRefused", id="another one is requested"),
    ],
)
def test_the_answer_to_a_request_names_it_too(state: ClusterState, reason: str) -> None:
    made = plan(state)
    assert made.reason == reason
    assert made.message.endswith(WAY_OUT)


def test_a_job_that_has_to_go_before_the_next_one_begins_is_named() -> None:
    assert plan(ending(NAME)).message.endswith(WAY_OUT)
    soon = plan(ending(NAME, found=replace(CUT_OFF, waited=1.0)))
    assert soon.message.endswith("waiting until its former Job is deleted")


@pytest.mark.parametrize(
    ("state", "action"),
    [
        pytest.param(late(claim=UNUSED), DropSeed(name="db-3"), id="the claim"),
        pytest.param(late(found=job(), claim=UNUSED), DropSeed(name="db-3"), id="both"),
        pytest.param(alone(job()), DropSeed(name="db-3"), id="the Job"),
        pytest.param(late(found=job(), claim=claim("db-3")), DROP_JOB, id="a member has the name"),
        pytest.param(ended(found=job()), DROP_JOB, id="the Job, while the claim is being deleted"),
        pytest.param(late(RECOVERY, claim=UNUSED), DropSeed(name="db-3"), id="after a quorum returned"),
    ],
)
def test_what_is_created_after_the_end_is_deleted(state: ClusterState, action: Action) -> None:
    assert plan(state).actions == (action,)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(alone(None), id="nothing"),
        pytest.param(alone(job(is_terminating=True)), id="the Job is being deleted"),
        pytest.param(late(claim=replace(UNUSED, cluster_id="feed")), id="it served"),
        pytest.param(NO_QUORUM, id="no quorum confirms the end"),
        pytest.param(filling(live(NAME), claim=UNUSED), id="under way"),
    ],
)
def test_nothing_else_is_deleted_after_the_end(state: ClusterState) -> None:
    assert not [each for each in plan(state).actions if isinstance(each, DropSeed | DropFilling)]


def test_a_claim_of_a_seed_that_never_served_is_no_member_where_nobody_answers() -> None:
    made = plan(down(NO_QUORUM, *NAMES))
    assert not [each for each in made.actions if isinstance(each, CreateMember)]
