"""The source of a recovery of ephemeral members is kept until another member has the data of the seed."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.recoveries import REVISION_BUMP, Survivor
from etcd_operator.controllers.etcd_cluster.decide.actions import DeleteMember, Plan, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.observation import authoritative, of_one_history
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.readiness import routes
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    ConfirmLoss,
    ConfirmNothingLeft,
    DropEmpty,
    StartSurvivor,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ToolBackups
from etcd_operator.controllers.etcd_cluster.decide.recovery.proof import chooses_source
from etcd_operator.controllers.etcd_cluster.decide.recovery.source import TOOL_GRACE
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import missing
from etcd_operator.controllers.etcd_cluster.decide.rules.scale import UNSCHEDULED
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import member_names
from etcd_operator.pods.reports import BackupReport, RestorableBackups
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    answer,
    answering,
    changed,
    entry,
    pod,
    silent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import NEW_ID, RECOVERY, lost, serving

ISSUED = 7 + REVISION_BUMP
"""The revision with which the seed began."""


def handed_over(*voters: str, learner: Any = None, size: int = 3) -> ClusterState:
    """The seed db-0003 serves, beside these voters, and db-0002, which it was begun with, is kept."""
    state = with_record(serving(), cluster_id=NEW_ID, next_ordinal=5)
    kept = replace(state.by_name["db-0002"], pod=pod("db-0002", is_routed=False))
    names = ("db-0003", *voters)
    listed = [*map(entry, names)]
    if learner is not None:
        listed.append(entry("db-0004", is_learner=True))
    members = [
        silent(state.desired, name, entry=each, answer=answer(name, tuple(listed), cluster_id=NEW_ID))
        for name, each in zip(names, listed, strict=False)
    ]
    if learner is not None:
        members.append(silent(state.desired, "db-0004", entry=listed[-1], pod=learner))
    desired = replace(state.desired, size=size)
    return replace(state, desired=desired, members=(kept, *members), budget=2 if size > 1 else 1)


def deleted(made: Plan) -> list[str]:
    return [action.name for action in made.actions if isinstance(action, DeleteMember)]


WAITING = pod("db-0004", is_running=False, is_assigned=False, creating_for=UNSCHEDULED - 1)
WITHOUT_NODE = replace(WAITING, creating_for=UNSCHEDULED)


def unschedulable(state: ClusterState) -> ClusterState:
    return changed(state, "db-0004", problem=PodProblem(reason="Unschedulable", message="no node"))


@pytest.mark.parametrize(
    ("state", "is_kept"),
    [
        pytest.param(handed_over(), True, id="the seed alone"),
        pytest.param(handed_over(learner=pod("db-0004")), True, id="a learner"),
        pytest.param(handed_over(learner=WAITING), True, id="a learner without a node"),
        pytest.param(unschedulable(handed_over(learner=WITHOUT_NODE)), False, id="for long: make room"),
        pytest.param(handed_over(learner=WITHOUT_NODE), True, id="no scheduler"),
        pytest.param(changed(handed_over("db-0004"), "db-0004", answer=None), True, id="a silent voter"),
        pytest.param(
            answering(handed_over("db-0004"), "db-0004", is_learner=True, members=()),
            True,
            id="one that has not learned of its promotion",
        ),
        pytest.param(handed_over("db-0004"), False, id="two voters"),
        pytest.param(handed_over(size=1), False, id="one is desired"),
    ],
)
def test_it_is_deleted_once_two_voters_have_the_data(state: ClusterState, is_kept: bool) -> None:
    assert deleted(plan(state)) == ([] if is_kept else ["db-0002"])


def test_it_is_no_member_and_no_client_reaches_it() -> None:
    state = handed_over("db-0004")
    assert member_names(state) == ("db-0003", "db-0004")
    assert "db-0002" not in {each.name for each, _ in routes(state)}


def seed_lost(state: ClusterState | None = None, **kept: Any) -> ClusterState:
    state = state or handed_over()
    state = changed(state, "db-0003", pod=None, answer=None, entry=None)
    return changed(replace(state, has_quorum=False), "db-0002", **kept)


def test_if_the_seed_is_lost_before_that_the_recovery_begins_again_and_says_what_is_missing() -> None:
    state = seed_lost()
    made = plan(state)

    proof, started, remember = made.actions
    assert isinstance(proof, ConfirmNothingLeft)
    assert proof.kept == "db-0002"
    assert started == StartSurvivor(name="db-0002"), "its etcd was ended"
    assert isinstance(remember, Remember)
    assert remember.persisted.is_recovering
    assert (remember.persisted.cluster_id, recorded(made).former) == (CLUSTER_ID, (NEW_ID,))

    begun = plan(with_record(lost(3, 0, 1), recovery=recorded(made), next_ordinal=4))
    again = recorded(begun)
    assert isinstance(begun.actions[0], ConfirmLoss)
    assert (again.generation, again.survivor, again.seed) == (2, "db-0002", "db-0004")
    assert again.bump >= 2 * REVISION_BUMP, "no revision that the lost seed issued is issued again"
    assert f"from revision {ISSUED} on" in missing(again)
    assert NEW_ID in again.given_up_ids


def test_one_that_answers_nobody_is_gone_back_to_as_well() -> None:
    assert recorded(plan(seed_lost(answer=None))).survivor == "db-0002"


def test_it_is_not_gone_back_to_while_another_member_may_have_more() -> None:
    state = seed_lost(handed_over(learner=pod("db-0004")))
    made = plan(changed(state, "db-0004", entry=None))
    assert (made.stage, made.actions) == (Stage.HELD, ())
    step = "to give up the data of db-0004 and go back to db-0002 at revision 7: kubectl delete pod db-0004"
    assert step in made.message


def test_a_learner_without_a_node_has_no_data_and_keeps_nothing_from_going_back() -> None:
    state = changed(seed_lost(handed_over(learner=WAITING)), "db-0004", entry=None)
    assert plan(state).actions == (DropEmpty(name="db-0004"),)


def test_one_that_is_being_deleted_is_no_source() -> None:
    assert plan(seed_lost(pod=pod("db-0002", is_terminating=True))).reason == "NoBackup"


def test_a_stopped_one_is_neither_waited_for_nor_gone_back_to_in_a_later_recovery() -> None:
    """Of the seed's cluster, from a backup, whose seed was lost in turn."""
    report = RestorableBackups(is_listed=True, candidate=BACKUP, is_checked=True, newest=BACKUP)
    lost_again = seed_lost(pod=pod("db-0002", is_stopped=True), answer=None)
    state = replace(lost_again, tool_backups=ToolBackups(has_tool=True, report=report))
    second = recorded(plan(state))
    again = with_record(state, cluster_id=NEW_ID, recovery=second, next_ordinal=6)
    made = plan(replace(again, attempted_for=3600.0))
    assert (recorded(made).source.name, recorded(made).generation) == ("r8", 3)


@pytest.mark.parametrize(
    "report", [None, RestorableBackups(is_listed=True, candidate=None, is_checked=False)]
)
def test_backups_of_the_cluster_that_the_seed_began_are_waited_for(report: RestorableBackups | None) -> None:
    """Each of them is newer, also one that the status does not name yet."""
    tool = ToolBackups(has_tool=True, report=report, waited=TOOL_GRACE + 1)
    assert plan(replace(seed_lost(), tool_backups=tool)).reason == "BackupPending"


BACKUP = BackupReport(
    name="r8", time="2026-01-01T00:00:00Z", age=60.0, revision=ISSUED + 1, etcd_version="3.6.16",
    cluster_id=NEW_ID, sha256="ab", is_authentic=True,
)  # fmt: skip


@pytest.mark.parametrize("cluster_id", [NEW_ID, CLUSTER_ID])
def test_a_backup_of_the_cluster_that_the_seed_began_is_newer(cluster_id: str) -> None:
    backup = msgspec.structs.replace(BACKUP, cluster_id=cluster_id)
    report = RestorableBackups(is_listed=True, candidate=backup, is_checked=True, newest=backup)
    state = replace(seed_lost(), tool_backups=ToolBackups(has_tool=True, report=report))
    assert chooses_source(state), "the backup tool is asked"
    made = plan(state)
    assert (recorded(made).source.name, recorded(made).generation) == (
        ("r8", 2) if cluster_id == NEW_ID else ("db-0002", 1)
    )
    assert isinstance(made.actions[0], ConfirmNothingLeft)
    assert made.actions[0].kept == "db-0002"


def test_in_the_next_loss_it_is_neither_waited_for_nor_believed() -> None:
    """The seed is left of two voters; the survivor of the first loss has not been deleted yet."""
    state = replace(handed_over("db-0004"), has_quorum=False)
    state = changed(state, "db-0004", pod=None, answer=None)
    made = plan(changed(state, "db-0002", answer=None, pod=pod("db-0002", serves=False)))
    assert recorded(made).survivor == "db-0003"

    second = msgspec.structs.replace(
        RECOVERY, generation=2, source=Survivor(name="db-0003"), seed="db-0005", replaces=NEW_ID,
        former=(CLUSTER_ID,),
    )  # fmt: skip
    persisted = replace(state.persisted, recovery=second)
    older = answer("db-0002", (entry("db-0002"),), committed=99)
    newer = answer("db-0003", (entry("db-0003"),), cluster_id=NEW_ID)
    counted = of_one_history(persisted, {"db-0002": older, "db-0003": newer})
    assert set(counted) == {"db-0002", "db-0003"}
    assert authoritative(persisted, counted.values()) == [newer]
    answers = answering(state, "db-0003", cluster_id="beef")
    ended = replace(persisted, cluster_id="beef")
    assert plan(replace(answers, desired=replace(state.desired, persisted=ended))).reason != "SplitBrain"
