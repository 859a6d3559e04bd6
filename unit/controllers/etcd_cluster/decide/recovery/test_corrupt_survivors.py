"""A member that an alarm CORRUPT names is a source only where nothing else is left, and on request."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import DisarmCorrupt, Plan, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ConfirmLoss
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import Reading, ToolBackups
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import ANYBODY
from etcd_operator.pods.reports import RestorableBackups
from unit.controllers.etcd_cluster.decide.builders import (
    answering,
    bootstrapped,
    changed,
    ephemeral,
    first_recovery,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery import manual_recoveries as persistents
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import lost
from unit.controllers.etcd_cluster.decide.recovery.stored import backup as stored_backup
from unit.controllers.etcd_cluster.decide.recovery.stored import sight
from unit.controllers.etcd_cluster.decide.recovery.test_backup_sources import backup, having, source_of


def named(state: ClusterState, *ids: str) -> ClusterState:
    """`state` where alarms name these members, in every answer as etcd does it."""
    names = [member.name for member in state.answers]
    return answering(state, *names, corrupt=frozenset(ids))


def stored(revision: int) -> ClusterState:
    """db-2 is left of three persistent members, at revision 7, and there is an EtcdBackup."""
    found = sight(stored_backup(f"b{revision}", revision=revision))
    return replace(persistents.lost(), backups=found)


def two_left(**revisions: int) -> ClusterState:
    """db-0003 and db-0004 are left of five."""
    return lost(5, 0, 1, 2, revisions={3: revisions.get("third", 7), 4: revisions.get("fourth", 7)})


def with_tool(state: ClusterState, revision: int) -> ClusterState:
    kept = ToolBackups(has_tool=True, report=having(backup(revision)))
    return replace(state, tool_backups=kept)


def offline(state: ClusterState, name: str) -> ClusterState:
    """That member answers nobody, and its data was read."""
    found = state.by_name[name].answer
    assert found is not None
    return changed(state, name, answer=None, reading=Reading(answer=found, sha256="ab"))


@pytest.mark.parametrize("third", [7, 6], ids=["the same revision", "a lower one"])
def test_a_member_that_is_not_named_comes_before_one_that_is(third: int) -> None:
    assert source_of(two_left(third=third)) == ("db-0003" if third == 7 else "db-0004")
    assert source_of(named(two_left(third=third), "id-db-0003")) == "db-0004"
    assert source_of(named(two_left(third=third), "id-db-0004")) == "db-0003"


def test_an_alarm_that_only_data_shows_counts() -> None:
    state = offline(named(two_left(), "id-db-0003"), "db-0004")
    unaware = answering(state, "db-0003", corrupt=frozenset())

    assert source_of(unaware) == "db-0004"


@pytest.mark.parametrize("ids", [("id-db-0002",), (ANYBODY,)], ids=["the member", "nobody in particular"])
@pytest.mark.parametrize(
    ("revision", "source"),
    [(8, "r8"), (7, "r7"), (6, "QuorumLost")],
    ids=["newer backup", "equal backup", "older backup"],
)
def test_a_backup_with_as_much_is_restored_instead_of_a_named_member(
    ids: tuple[str, ...], revision: int, source: str
) -> None:
    assert source_of(with_tool(named(lost(3, 0, 1), *ids), revision)) == source


def test_the_proof_for_a_backup_of_equal_revision_lets_the_named_member_have_it() -> None:
    made = plan(with_tool(named(lost(3, 0, 1), "id-db-0002"), 7))
    loss = next(action for action in made.actions if isinstance(action, ConfirmLoss))

    assert (loss.below, loss.corrupt) == (8, ())


def test_the_proof_for_a_backup_compares_it_with_members_that_are_not_named() -> None:
    made = plan(with_tool(named(two_left(third=5), "id-db-0004"), 6))
    loss = next(action for action in made.actions if isinstance(action, ConfirmLoss))

    assert (loss.below, loss.corrupt) == (6, ("db-0004",))


@pytest.mark.parametrize(
    ("state", "known"),
    [
        (lost(3, 0, 1), "no spec.backup"),
        (with_tool(lost(3, 0, 1), 6), "the newest backup is r6 at revision 6"),
        (
            replace(lost(3, 0, 1), tool_backups=ToolBackups(has_tool=True, report=having(None))),
            "no intact backup",
        ),
        (
            replace(lost(3, 0, 1), tool_backups=ToolBackups(has_tool=True, problem="it is down", waited=60)),
            "does not report its backups (it is down)",
        ),
    ],
    ids=["none are kept", "an older one", "none", "unknown"],
)
def test_a_named_member_that_is_the_last_waits_for_a_person(state: ClusterState, known: str) -> None:
    made = plan(named(state, "id-db-0002"))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "QuorumLost")
    assert known in made.message
    assert "the data of db-0002, at revision 7" in made.message
    assert ("kubectl delete pod db-0002" in made.message) is ("newest backup" in known)


def test_a_tool_that_lists_its_backups_is_waited_for_beside_a_named_member() -> None:
    state = replace(lost(3, 0, 1), tool_backups=ToolBackups(has_tool=True, report=RestorableBackups()))
    made = plan(named(state, "id-db-0002"))
    assert (made.actions, made.reason) == ((), "BackupPending")
    assert "remove spec.backup" not in made.message  # a named member is no source without a person


# Persistent members


def test_a_request_names_that_the_data_is_corrupt() -> None:
    made = plan(named(persistents.lost(), "id-db-2"))

    assert made.stage is Stage.HELD
    assert f"recover={persistents.NAME}" in made.message
    assert "reports the data of db-2 as corrupt" in made.message


def test_an_older_backup_can_be_requested_instead() -> None:
    state = named(stored(6), "id-db-2")
    value = "cdf818194e3a8c32/backup:b6/1"

    assert f"{value} requests the backup b6" in plan(state).message
    asked = replace(state, desired=replace(state.desired, recover=value))
    assert source_of(asked) == "b6"


def test_a_backup_with_as_much_is_offered_first() -> None:
    assert "recover=cdf818194e3a8c32/backup:b7/1" in plan(named(stored(7), "id-db-2")).message


# The alarm afterwards


def recovered(**changes: Any) -> ClusterState:
    """A cluster after a recovery; its data has the alarm of a member of the cluster before."""
    recovery = msgspec.structs.replace(first_recovery("db-0000", "db-0009"), replaces="old", **changes)
    return named(with_record(bootstrapped(ephemeral(size=3)), recovery=recovery), "id-old")


def begun(made: Plan) -> tuple[str, ...]:
    """The corrupt sources of the recovery that a plan begins."""
    found = [each.persisted.recovery for each in made.actions if isinstance(each, Remember)]
    return next(recovery.corrupt_sources for recovery in found if recovery is not None)


def test_a_recovery_from_a_named_member_records_it() -> None:
    requested = persistents.lost(asked=persistents.NAME)

    assert begun(plan(named(requested, "id-db-2"))) == ("id-db-2",)
    assert begun(plan(requested)) == ()


def test_the_alarm_that_names_the_source_is_left_to_a_person() -> None:
    made = plan(recovered(corrupt_sources=("id-old",)))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "DataCorrupt")
    assert "a member that a recovery restored, ID id-old" in made.message
    assert plan(recovered()).actions == (DisarmCorrupt(member_id="id-old"),)


def test_members_that_have_the_data_of_a_named_one_are_no_better() -> None:
    state = named(lost(3, 0, 1), "id-old")
    recovery = msgspec.structs.replace(
        first_recovery("db-0000", "db-0009"), replaces="old", corrupt_sources=("id-old",)
    )

    assert source_of(state) == "db-0002"
    assert source_of(with_record(state, recovery=recovery)) == "QuorumLost"
