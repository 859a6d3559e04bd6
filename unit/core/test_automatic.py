"""What is counted before members are given up without a person, and when that is due."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.persisted import AdoptedMember, Adoption, Recovery, Upgrade
from etcd_operator.core.absence import Absence
from etcd_operator.core.actions import ConfirmLoss, ConfirmSilence, DropSeed, Remember, RetireMember, Stage
from etcd_operator.core.members import PodProblem
from etcd_operator.core.plan import plan
from etcd_operator.core.replies import Refusal
from etcd_operator.core.rules.automatic import SETTLED, is_due, missed
from etcd_operator.core.rules.given_up import returned
from etcd_operator.core.rules.loss import left_of
from etcd_operator.core.rules.manual_recovery import settle
from etcd_operator.core.state import ClusterState
from etcd_operator.core.status import conditions
from unit.core import manual_recoveries as persistents
from unit.core import quorum_losses as ephemerals
from unit.core.builders import VERSION, answer, bootstrapped, changed, entry, peer, persistent, pod

AFTER = 600.0
SINCE = "2026-01-01T00:00:00Z"


def automatic(state: ClusterState, seconds: float = AFTER, **changes: Any) -> ClusterState:
    """The field is set, and the loss has been counted for so long."""
    desired = replace(state.desired, recovers_after=AFTER)
    absence = Absence(seconds=seconds, since=SINCE)
    return replace(state, desired=desired, absence=absence, **changes)


def with_record(state: ClusterState, **changes: Any) -> ClusterState:
    persisted = replace(state.persisted, **changes)
    return replace(state, desired=replace(state.desired, persisted=persisted))


def with_desired(state: ClusterState, **changes: Any) -> ClusterState:
    return replace(state, desired=replace(state.desired, **changes))


def silenced(size: int, *silent: int, gone: tuple[int, ...] = ()) -> ClusterState:
    """An ephemeral cluster in which some pods are gone, and others are there and do not answer."""
    state = ephemerals.lost(size, *gone)
    for number in silent:
        state = changed(state, ephemerals.name_of(number), answer=None)
    return replace(state, unavailable_for=AFTER)


# what is counted


COUNTED = [
    pytest.param(persistents.lost(), {"db-0", "db-1"}, id="persistent: those that do not answer"),
    pytest.param(persistents.lost(5, 0, 1, 3), {"db-0", "db-1", "db-3"}, id="three of five"),
    pytest.param(silenced(3, 0, 1), {"db-0000", "db-0001"}, id="ephemeral: their pods exist"),
    pytest.param(silenced(3, 1, gone=(0,)), {"db-0000", "db-0001"}, id="ephemeral: one pod is gone"),
]


@pytest.mark.parametrize(("state", "names"), COUNTED)
def test_the_silence_of_voters_counts(state: ClusterState, names: set[str]) -> None:
    assert missed(automatic(state)) == names


def in_upgrade(state: ClusterState) -> ClusterState:
    return with_record(state, upgrade=Upgrade(origin=VERSION, target="3.6.17", member="db-0"))


def adopting(state: ClusterState) -> ClusterState:
    member = AdoptedMember(id="feed", endpoint="10.0.0.9:2379", peer_urls=("http://10.0.0.9:2380",))
    return with_record(state, adoption=Adoption(members=(member,)))


def led(state: ClusterState) -> ClusterState:
    return persistents.answered_by(state, "db-2", leader="id-db-0")


def blocked() -> ClusterState:
    """A member crashes at another version than the desired one."""
    crash = PodProblem(reason="CrashLoopBackOff", message="etcd exits")
    return changed(
        persistents.lost(),
        "db-0",
        problem=crash,
        peer=peer("db-0", version="3.6.15"),
        pod=pod("db-0", is_running=False, restarts=3, has_restarted=True),
    )


NOT_COUNTED = [
    pytest.param(with_desired(automatic(persistents.lost()), recovers_after=None), id="Manual"),
    pytest.param(automatic(bootstrapped(persistent())), id="a quorum answers"),
    pytest.param(automatic(persistents.lost(3, 0, 1, 2)), id="nobody answers"),
    pytest.param(automatic(persistents.lost(3, 0)), id="those that answer may be electing"),
    pytest.param(led(automatic(persistents.lost())), id="a survivor names a leader"),
    pytest.param(with_desired(automatic(persistents.lost()), is_paused=True), id="paused"),
    pytest.param(with_desired(automatic(persistents.lost()), is_deleting=True), id="being deleted"),
    pytest.param(with_record(automatic(persistents.lost()), cluster_id=""), id="never served"),
    pytest.param(in_upgrade(automatic(persistents.lost())), id="an upgrade is in progress"),
    pytest.param(adopting(automatic(persistents.lost())), id="an adoption is in progress"),
    pytest.param(automatic(persistents.recovering(persistents.lost())), id="another recovery is in progress"),
    pytest.param(
        changed(automatic(persistents.lost()), "db-0", refusal=Refusal()), id="authentication is enabled"
    ),
    pytest.param(
        persistents.answered_by(automatic(persistents.lost()), "db-2", corrupt=frozenset({"id-db-2"})),
        id="data is corrupt",
    ),
    pytest.param(automatic(blocked()), id="one does not start at its version"),
]


@pytest.mark.parametrize("state", NOT_COUNTED)
def test_where_a_quorum_may_come_about_or_a_person_decides_nothing_counts(state: ClusterState) -> None:
    assert missed(state) == frozenset()


# when it is due


def former(**changes: Any) -> Recovery:
    """An earlier recovery that replaced another cluster."""
    return msgspec.structs.replace(persistents.RECOVERY, replaces="feed", **changes)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(automatic(persistents.lost()), True, id="the time is over"),
        pytest.param(automatic(persistents.lost(), AFTER - 0.1), False, id="not yet"),
        pytest.param(replace(automatic(persistents.lost()), absence=Absence()), False, id="not counted"),
        pytest.param(with_desired(automatic(persistents.lost()), recovers_after=None), False, id="Manual"),
        pytest.param(
            with_record(automatic(persistents.lost()), recovery=former(automatic=True)),
            False,
            id="after another one",
        ),
        pytest.param(
            with_record(automatic(persistents.lost()), recovery=former(automatic=True, settled=True)),
            True,
            id="long after another one",
        ),
        pytest.param(
            with_record(automatic(persistents.lost()), recovery=former()), True, id="after one on request"
        ),
        pytest.param(
            with_record(
                automatic(persistents.lost()),
                recovery=msgspec.structs.replace(former(automatic=True), replaces=""),
            ),
            True,
            id="after one that was not needed",
        ),
    ],
)
def test_members_are_given_up_after_the_time_and_once(state: ClusterState, expected: bool) -> None:
    assert is_due(state) is expected


# persistent members


def test_what_a_person_could_request_begins_by_itself() -> None:
    made = plan(automatic(persistents.lost()))

    silence, remembered, _ = made.actions
    assert isinstance(silence, ConfirmSilence)
    assert (silence.survivors, silence.silent) == ((("db-2", "pod-db-2"),), ("db-0", "db-1"))
    assert isinstance(remembered, Remember)
    assert remembered.persisted.recovery == msgspec.structs.replace(persistents.RECOVERY, automatic=True)
    assert made.message.startswith(
        "db-0 (silent), db-1 (silent) given up without a request, after 10 min (spec.recovery: Automatic): "
    )


def test_a_request_is_carried_out_as_a_request() -> None:
    made = plan(automatic(persistents.lost(asked=persistents.NAME)))

    silence, remembered, _ = made.actions
    assert isinstance(silence, ConfirmSilence)
    assert silence.silent == ()
    assert isinstance(remembered, Remember)
    assert remembered.persisted.recovery == persistents.RECOVERY


@pytest.mark.parametrize("asked", ["", "feed/db-0/1"])
def test_the_message_reports_since_when_it_is_counted(asked: str) -> None:
    made = plan(automatic(persistents.lost(asked=asked), AFTER - 1.0))

    assert (made.stage, made.actions) == (Stage.HELD, ())
    assert f"it begins by itself after 10 min in which nothing of that changes, counted since {SINCE}" in (
        made.message
    )


def test_the_message_reports_why_it_does_not_begin() -> None:
    recent = with_record(automatic(persistents.lost()), recovery=former(automatic=True))

    assert (
        "because the last recovery did, and the cluster has not served for 1 h since" in plan(recent).message
    )
    uncounted = replace(automatic(persistents.lost()), absence=Absence())
    assert "by itself" not in plan(uncounted).message


# ephemeral members


def test_silent_ephemeral_members_are_given_up_after_the_time() -> None:
    made = plan(automatic(silenced(3, 1, gone=(0,))))

    loss, remembered, *_ = made.actions
    assert isinstance(loss, ConfirmLoss)
    assert (loss.gone, loss.silent) == (("db-0000",), ("db-0001",))
    assert loss.survivors == (("db-0002", "pod-db-0002"),)
    assert isinstance(remembered, Remember)
    assert remembered.persisted.recovery is not None
    assert remembered.persisted.recovery.automatic
    assert made.message.startswith("db-0000 lost for good, db-0001 given up without a request, after 10 min")


def test_a_proven_loss_does_not_wait_for_the_time_and_is_not_automatic() -> None:
    made = plan(automatic(silenced(3, gone=(0, 1)), 0.0))

    loss, remembered, *_ = made.actions
    assert isinstance(loss, ConfirmLoss)
    assert loss.silent == ()
    assert isinstance(remembered, Remember)
    assert remembered.persisted.recovery == ephemerals.RECOVERY


HELD = [
    pytest.param(automatic(silenced(3, 0, 1), AFTER - 1.0), "it begins by itself", id="not yet"),
    pytest.param(automatic(silenced(5, 3, gone=(0, 1, 2)), 9.0), "it begins by itself", id="no quorum"),
    pytest.param(silenced(3, 0, 1), "no quorum answers", id="Manual"),
    pytest.param(
        changed(automatic(silenced(3, 0, 1)), "db-0002", pod=pod("db-0002", is_terminating=True)),
        "no quorum answers",
        id="the survivor is being deleted",
    ),
]


@pytest.mark.parametrize(("state", "words"), HELD)
def test_otherwise_ephemeral_members_are_waited_for(state: ClusterState, words: str) -> None:
    made = plan(state)

    assert (made.stage, made.actions, made.reason) == (Stage.HELD, (), "QuorumLost")
    assert words in made.message


# what ends one


def begun(**seed: Any) -> ClusterState:
    """Two silent ephemeral members were given up; they lead again."""
    state = ephemerals.recovering(**seed)
    listed = tuple(entry(ephemerals.name_of(number)) for number in range(3))
    for member in listed:
        state = changed(state, member.name, answer=answer(member.name, listed), pod=pod(member.name))
    recovery = msgspec.structs.replace(ephemerals.RECOVERY, automatic=True)
    return with_record(replace(state, has_quorum=True), recovery=recovery)


def test_a_quorum_that_returns_ends_it_before_anything_is_changed() -> None:
    made = plan(begun())
    assert (made.reason, made.actions) == ("RecoveryEnding", (DropSeed(name="db-0003"),))
    going = plan(begun(has_service=False, pod=pod("db-0003", is_terminating=True)))
    assert (going.reason, going.actions) == ("RecoveryEnding", ())

    gone = replace(begun(), members=begun().members[:3])
    (remembered,) = plan(gone).actions
    assert isinstance(remembered, Remember)
    assert remembered.persisted.recovery is not None
    assert remembered.persisted.recovery.replaces == ""


def test_it_is_not_ended_when_that_is_too_late_or_without_a_leader() -> None:
    recovery = msgspec.structs.replace(ephemerals.RECOVERY, automatic=True)
    assert returned(begun(pod=pod("db-0003", is_final_seed=True)), recovery) is None
    assert returned(begun(), ephemerals.RECOVERY) is None, "nobody can return"
    assert returned(ephemerals.recovering(), recovery) is None, "nobody leads"


def test_what_still_runs_of_the_old_cluster_is_kept_from_clients() -> None:
    state = ephemerals.serving()
    recovery = msgspec.structs.replace(ephemerals.RECOVERY, automatic=True)
    for number, routed in ((0, True), (1, False)):
        name = ephemerals.name_of(number)
        state = changed(state, name, has_service=False, pod=pod(name, is_terminating=True, is_routed=routed))

    def retired(made: ClusterState) -> list[str]:
        return [action.name for action in plan(made).actions if isinstance(action, RetireMember)]

    assert retired(with_record(state, recovery=recovery)) == ["db-0000", "db-0002"]
    assert retired(state) == ["db-0002"]


# afterwards


def test_a_cluster_that_serves_for_an_hour_may_be_recovered_again() -> None:
    state = bootstrapped(persistent())
    recent = with_record(state, recovery=former(automatic=True))
    assert settle(replace(recent, served_for=SETTLED - 0.1)) is None
    assert settle(state) is None

    (remembered,) = plan(replace(recent, served_for=SETTLED)).actions
    assert isinstance(remembered, Remember)
    assert remembered.persisted.recovery == former(automatic=True, settled=True)
    assert (
        settle(
            with_record(
                state,
                recovery=former(automatic=True, settled=True),
            )
        )
        is None
    )
    assert settle(with_record(state, recovery=None)) is None


def test_what_may_be_lost_reports_that_no_person_decided() -> None:
    state = with_record(bootstrapped(persistent()), recovery=former(automatic=True))
    (loss,) = (c for c in conditions(state, plan(state)) if c.type == "DataLossPossible")

    assert loss.message.endswith("; it began without a person (spec.recovery: Automatic)")


def test_what_is_left_has_no_silent_member() -> None:
    assert left_of(silenced(3, 0, 1)).silent == ()
