"""Ephemeral members whose pods exist are given up after the time; a quorum that returns ends that."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.recoveries import ToolBackup
from etcd_operator.controllers.etcd_cluster.decide.actions import Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    AddReader,
    ConfirmLoss,
    DropSeed,
    RetireMember,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import answer, changed, entry, pod, with_record
from unit.controllers.etcd_cluster.decide.recovery import quorum_losses as ephemerals
from unit.controllers.etcd_cluster.decide.recovery.automatics import AFTER, automatic, silenced
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded


def test_silent_ephemeral_members_are_given_up_after_the_time() -> None:
    made = plan(automatic(silenced(3, 1, gone=(0,))))

    loss = made.actions[0]
    assert isinstance(loss, ConfirmLoss)
    assert (loss.gone, loss.silent) == (("db-0000",), ("db-0001",))
    assert loss.survivors == (("db-0002", "pod-db-0002"),)
    assert recorded(made).authority == "Automatic"


def test_the_data_of_silent_members_is_read_before_they_are_given_up() -> None:
    readable = changed(automatic(silenced(3, 1, gone=(0,))), "db-0001", unreadable="")

    assert plan(readable).actions == (AddReader(name="db-0001"),)


def test_a_proven_loss_does_not_wait_for_the_time_and_is_not_automatic() -> None:
    made = plan(automatic(silenced(3, gone=(0, 1)), 0.0))

    assert isinstance(made.actions[0], ConfirmLoss)
    assert made.actions[0].silent == ()
    assert recorded(made) == ephemerals.RECOVERY


def test_a_proven_recovery_in_between_allows_no_second_one_without_a_person() -> None:
    """The cluster has not served for an hour since the first."""
    first = msgspec.structs.replace(
        ephemerals.RECOVERY, replaces="feed", authority="Automatic", is_unstable=True
    )
    second = recorded(plan(with_record(silenced(3, gone=(0, 1)), recovery=first)))
    assert (second.authority, second.is_unstable) == ("Proven", True)

    served = msgspec.structs.replace(second, replaces="beef")
    made = plan(with_record(automatic(silenced(3, 1, gone=(0,))), recovery=served))
    assert (made.stage, made.actions) == (Stage.HELD, ())


HELD = [
    pytest.param(automatic(silenced(3, 0, 1), AFTER - 1.0), id="not yet"),
    pytest.param(automatic(silenced(5, 3, gone=(0, 1, 2)), 9.0), id="no quorum"),
    pytest.param(silenced(3, 0, 1), id="Manual"),
    pytest.param(
        changed(automatic(silenced(3, 0, 1)), "db-0002", pod=pod("db-0002", is_terminating=True)),
        id="the survivor is being deleted",
    ),
]


@pytest.mark.parametrize("state", HELD)
def test_otherwise_ephemeral_members_are_waited_for(state: ClusterState) -> None:
    made = plan(state)

    assert (made.stage, made.actions, made.reason) == (Stage.HELD, (), "QuorumLost")


# what ends one


def begun(**seed: Any) -> ClusterState:
    """Two silent ephemeral members were given up; they lead again."""
    state = ephemerals.recovering(**seed)
    listed = tuple(entry(ephemerals.name_of(number)) for number in range(3))
    for member in listed:
        state = changed(state, member.name, answer=answer(member.name, listed), pod=pod(member.name))
    recovery = msgspec.structs.replace(ephemerals.RECOVERY, authority="Automatic", is_unstable=True)
    return with_record(replace(state, has_quorum=True), recovery=recovery)


def test_a_quorum_that_returns_ends_it_before_anything_is_changed() -> None:
    made = plan(begun())
    assert (made.reason, made.actions) == ("RecoveryEnding", (DropSeed(name="db-0003"),))
    going = plan(begun(has_service=False, pod=pod("db-0003", is_terminating=True)))
    assert (going.reason, going.actions) == ("RecoveryEnding", ())

    gone = replace(begun(), members=begun().members[:3])
    backup = ToolBackup(cluster="db", name="r9")
    recovery = msgspec.structs.replace(
        ephemerals.RECOVERY, authority="Automatic", is_unstable=True, source=backup
    )
    made = plan(with_record(gone, recovery=recovery))
    assert (len(made.actions), recorded(made)) == (1, msgspec.structs.replace(recovery, replaces=""))


def test_it_is_not_ended_when_that_is_too_late_or_without_a_leader() -> None:
    recovery = msgspec.structs.replace(ephemerals.RECOVERY, authority="Automatic", is_unstable=True)
    final = begun(pod=pod("db-0003", is_final_seed=True))
    proven = with_record(begun(), recovery=ephemerals.RECOVERY)
    leaderless = with_record(ephemerals.recovering(), recovery=recovery)
    for state in (final, proven, leaderless):
        assert plan(state).reason == "Recovering"


def test_what_still_runs_of_the_old_cluster_is_kept_from_clients() -> None:
    state = ephemerals.serving()
    recovery = msgspec.structs.replace(ephemerals.RECOVERY, authority="Automatic", is_unstable=True)
    for number, routed in ((0, True), (1, False)):
        name = ephemerals.name_of(number)
        state = changed(state, name, has_service=False, pod=pod(name, is_terminating=True, is_routed=routed))

    def retired(made: ClusterState) -> list[str]:
        return [action.name for action in plan(made).actions if isinstance(action, RetireMember)]

    assert retired(with_record(state, recovery=recovery)) == ["db-0000", "db-0002"]
    assert retired(state) == ["db-0002"]
