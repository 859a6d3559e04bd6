"""What is named where members are left and none of them has a list that counts: how to restore a backup."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import DropEmpty
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ReaderFacts, ToolBackups
from etcd_operator.controllers.etcd_cluster.decide.recovery.proof import chooses_source, names_backup
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pods.reports import BackupReport, RestorableBackups
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    answer,
    changed,
    down,
    pod,
    silent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import RECOVERY, lost

R9 = BackupReport(
    name="r9",
    time="2026-01-01T00:00:00Z",
    age=60.0,
    revision=9,
    etcd_version="3.6.16",
    cluster_id=CLUSTER_ID,
    sha256="ab",
    is_authentic=True,
)
HAS_R9 = RestorableBackups(is_listed=True, candidate=R9, is_checked=True, newest=R9)
GIVE_UP = (
    "; to give up the data of db-0007 and restore the backup r9 at revision 9: kubectl delete pod db-0007"
)


def learner_left(report: RestorableBackups | None = HAS_R9, **backups: Any) -> ClusterState:
    """All voters are gone; a learner answers, and still reports the leader that it had."""
    state = lost(3, 0, 1, 2)
    reply = answer("db-0007", is_learner=True, revision=7, leader="id-db-0000")
    learner = silent(state.desired, "db-0007", answer=reply)
    known = ToolBackups(has_tool=True, report=report, **backups)
    return replace(state, members=(*state.members, learner), tool_backups=known)


def held(state: ClusterState) -> Plan:
    made = plan(state)
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "QuorumLost")
    return made


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(learner_left(), id="a learner"),
        pytest.param(
            changed(learner_left(), "db-0007", answer=None, unreadable="it follows a leader"),
            id="one that is silent, whose reader heard from a leader",
        ),
    ],
)
def test_the_backup_and_the_pod_to_delete_are_named(state: ClusterState) -> None:
    assert names_backup(state), "the backup tool is asked"
    assert not chooses_source(state)
    assert held(state).message.endswith(GIVE_UP)


def test_the_deletion_that_is_named_restores_that_backup() -> None:
    state = changed(learner_left(), "db-0007", pod=None, answer=None)
    assert (chooses_source(state), names_backup(state)) == (True, False)
    assert recorded(plan(state)).source.name == "r9"


def test_a_pod_that_does_not_go_needs_force() -> None:
    state = changed(learner_left(), "db-0007", pod=pod("db-0007", is_terminating=True))
    assert held(state).message.endswith(f"{GIVE_UP}, with --force where the node never responds again")


def test_all_pods_are_named_that_keep_the_backup_from_being_restored() -> None:
    former = msgspec.structs.replace(RECOVERY, replaces="dead")
    state = with_record(learner_left(), recovery=former)
    other = silent(state.desired, "db-0008", answer=answer("db-0008", cluster_id="dead"))
    state = down(replace(state, members=(*state.members, other)), "db-0007")
    message = held(state).message
    assert "to go on without their data: kubectl delete pod db-0008)" in message
    assert message.endswith(f"{GIVE_UP} db-0008")


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(learner_left(None), id="not asked yet"),
        pytest.param(learner_left(None, problem="its pod is not ready"), id="the tool does not answer"),
        pytest.param(learner_left(RestorableBackups(is_listed=True, is_checked=True)), id="no backup"),
        pytest.param(replace(learner_left(), tool_backups=ToolBackups()), id="no spec.backup"),
    ],
)
def test_nothing_is_given_up_for_a_backup_that_is_not_known(state: ClusterState) -> None:
    assert "kubectl delete" not in held(state).message


NEVER_JOINED = pod("db-0007", is_running=False, never_joined=True)
BROKEN_OFF = ReaderFacts(name="survivor-reader-1", is_running=True)


def empty_left(**facts: Any) -> ClusterState:
    """The same, and the learner's etcd ends, because there was nobody who could give it the data."""
    return changed(learner_left(), "db-0007", answer=None, pod=replace(NEVER_JOINED, **facts))


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({}, id="it never joined"),
        pytest.param({"reader": BROKEN_OFF}, id="and a reader waits for it"),
        pytest.param({"never_joined": False, "is_assigned": False}, id="it has no node"),
    ],
)
def test_a_learner_without_data_is_given_up(facts: dict[str, Any]) -> None:
    assert plan(empty_left(**facts)).actions == (DropEmpty(name="db-0007"),)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"is_running": True, "never_joined": False}, id="its process runs"),
        pytest.param({"serves": False}, id="it was found to vote"),
        pytest.param({"is_on_lost_node": True}, id="its kubelet is silent"),
    ],
)
def test_one_that_may_have_joined_since_is_given_up_by_a_person(facts: dict[str, Any]) -> None:
    assert held(empty_left(**facts)).message.endswith(GIVE_UP)


def test_one_whose_data_was_read_is_given_up_by_a_person() -> None:
    state = changed(learner_left(), "db-0007", pod=NEVER_JOINED)
    assert held(state).message.endswith(GIVE_UP)


def test_nothing_is_restored_until_the_pod_without_data_is_gone() -> None:
    message = held(empty_left(is_terminating=True)).message
    assert "db-0007 never joined, so it has no data: waiting until it is gone; kubectl delete pod" in message


def test_only_data_that_may_be_there_is_waited_for() -> None:
    state = changed(empty_left(), "db-0002", pod=pod("db-0002"))
    assert "to give up the data of db-0002 and restore" in held(state).message


def test_a_learner_without_data_stays_while_a_quorum_serves() -> None:
    state = replace(empty_left(), has_quorum=True)
    assert not any(isinstance(action, DropEmpty) for action in plan(state).actions)
