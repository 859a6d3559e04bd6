"""What is counted before members are given up without a person, and when that is due."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.persisted import AdoptedMember, Adoption, Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import Stage
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ConfirmSilence
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import STABLE_AFTER, is_due, missed
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import Absence, BackupFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.rules import record_stable
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import left_of
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from etcd_operator.etcd.values import Refused
from unit.controllers.etcd_cluster.decide.builders import (
    VERSION,
    answer,
    answering,
    bootstrapped,
    changed,
    entry,
    peer,
    persistent,
    pod,
    silent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery import manual_recoveries as persistents
from unit.controllers.etcd_cluster.decide.recovery.automatics import (
    AFTER,
    SINCE,
    automatic,
    former,
    listing,
    silenced,
    with_desired,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.sizes import with_learner

# what is counted


def with_silent_voter(state: ClusterState) -> ClusterState:
    """The survivor does not know that db-0003 votes."""
    voter = silent(state.desired, "db-0003", has_service=True, pod=pod("db-0003", serves=False))
    return replace(state, members=(*state.members, voter))


def beside_learner(state: ClusterState, **changes: Any) -> ClusterState:
    """The survivor, db-2, lists a learner, db-3, that is silent."""
    survivor = state.by_name["db-2"].answer
    assert survivor is not None
    state = answering(state, "db-2", members=(*survivor.members, entry("db-3", is_learner=True)))
    learner = replace(silent(state.desired, "db-3", pod=pod("db-3")), **changes)
    return replace(state, members=(*state.members, learner))


def beside_follower(state: ClusterState) -> ClusterState:
    """A member that has no vote by any list, and never had one here, follows the leader of others."""
    other = silent(state.desired, "db-9", pod=pod("db-9"), followed_a_leader=True)
    return replace(state, members=(*state.members, other))


COUNTED = [
    pytest.param(beside_follower(persistents.lost()), {"db-0", "db-1"}, id="a leader of another cluster"),
    pytest.param(persistents.lost(), {"db-0", "db-1"}, id="persistent: those that do not answer"),
    pytest.param(beside_learner(persistents.lost()), {"db-0", "db-1"}, id="not that of a learner"),
    pytest.param(
        beside_learner(persistents.lost(), answer=answer("db-3", is_learner=True, leader="id-db-0")),
        {"db-0", "db-1"},
        id="beside a learner, which reports its last leader for ever",
    ),
    pytest.param(persistents.lost(5, 0, 1, 3), {"db-0", "db-1", "db-3"}, id="three of five"),
    pytest.param(silenced(3, 0, 1), {"db-0000", "db-0001"}, id="ephemeral: their pods exist"),
    pytest.param(silenced(3, 1, gone=(0,)), {"db-0000", "db-0001"}, id="ephemeral: one pod is gone"),
    pytest.param(
        with_silent_voter(silenced(3, gone=(0, 1))), {"db-0000", "db-0001", "db-0003"}, id="one that voted"
    ),
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
    return answering(state, "db-2", leader="id-db-0")


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
    pytest.param(
        beside_learner(automatic(persistents.lost()), followed_a_leader=True),
        id="a learner has heard from a leader since the loss",
    ),
    pytest.param(
        changed(automatic(persistents.lost()), "db-0", followed_a_leader=True),
        id="a silent one followed a leader since",
    ),
    pytest.param(
        changed(automatic(silenced(3, 0, 1)), "db-0001", followed_a_leader=True),
        id="so did an ephemeral one",
    ),
    pytest.param(with_desired(automatic(persistents.lost()), is_paused=True), id="paused"),
    pytest.param(with_desired(automatic(persistents.lost()), is_deleting=True), id="being deleted"),
    pytest.param(with_record(automatic(persistents.lost()), cluster_id=""), id="never served"),
    pytest.param(in_upgrade(automatic(persistents.lost())), id="an upgrade is in progress"),
    pytest.param(adopting(automatic(persistents.lost())), id="an adoption is in progress"),
    pytest.param(automatic(persistents.recovering(persistents.lost())), id="another recovery is in progress"),
    pytest.param(
        changed(automatic(persistents.lost()), "db-0", refusal=Refused()), id="authentication is enabled"
    ),
    pytest.param(
        answering(automatic(persistents.lost()), "db-2", corrupt=frozenset({"id-db-2"})),
        id="data is corrupt",
    ),
    pytest.param(automatic(blocked()), id="one does not start at its version"),
    pytest.param(automatic(listing(persistents.lost(), "old-0")), id="a survivor lists another member"),
    pytest.param(automatic(listing(persistents.lost(), "db-1")), id="a survivor lists one name twice"),
]


@pytest.mark.parametrize("state", NOT_COUNTED)
def test_where_a_quorum_may_come_about_or_a_person_decides_nothing_counts(state: ClusterState) -> None:
    assert missed(state) == frozenset()


# when it is due


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(automatic(persistents.lost()), True, id="the time is over"),
        pytest.param(automatic(persistents.lost(), AFTER - 0.1), False, id="not yet"),
        pytest.param(replace(automatic(persistents.lost()), absence=Absence()), False, id="not counted"),
        pytest.param(with_desired(automatic(persistents.lost()), recovers_after=None), False, id="Manual"),
        pytest.param(
            with_record(
                automatic(persistents.lost()), recovery=former(authority="Automatic", is_unstable=True)
            ),
            False,
            id="after another one",
        ),
        pytest.param(
            with_record(
                automatic(persistents.lost()), recovery=former(authority="Automatic", is_unstable=False)
            ),
            True,
            id="long after another one",
        ),
        pytest.param(
            with_record(automatic(persistents.lost()), recovery=former()), True, id="after one on request"
        ),
        pytest.param(
            with_record(automatic(persistents.lost()), recovery=former(is_unstable=True)),
            False,
            id="after a proven one that followed another one",
        ),
        pytest.param(
            with_record(
                automatic(persistents.lost()),
                recovery=msgspec.structs.replace(
                    former(authority="Automatic", is_unstable=True), replaces=""
                ),
            ),
            True,
            id="after one that was not needed",
        ),
    ],
)
def test_members_are_given_up_after_the_time_and_once(state: ClusterState, expected: bool) -> None:
    assert is_due(state) is expected


# persistent members


def test_backups_that_are_being_listed_are_waited_for() -> None:
    """One of them may have more than the survivor: then only a person decides."""
    state = replace(automatic(persistents.lost()), backups=BackupFacts(is_awaited=True))
    assert (plan(state).actions, plan(state).reason) == ((), "QuorumLost")
    assert plan(state).message.endswith("EtcdBackups are not listed yet, and one of them may have more data")


def test_backups_that_cannot_be_listed_are_not_waited_for() -> None:
    for unknown in (BackupFacts(refusal="403 Forbidden"), BackupFacts(unreadable="403 Forbidden")):
        made = plan(replace(automatic(persistents.lost()), backups=unknown))
        assert isinstance(made.actions[0], ConfirmSilence)
        assert "whether an EtcdBackup is newer is not known (403 Forbidden)" in made.message


def test_what_a_person_could_request_begins_by_itself() -> None:
    made = plan(automatic(persistents.lost()))

    silence = made.actions[0]
    assert isinstance(silence, ConfirmSilence)
    assert (silence.survivors, silence.silent) == ((("db-2", "pod-db-2"),), ("db-0", "db-1"))
    assert recorded(made) == msgspec.structs.replace(
        persistents.RECOVERY, authority="Automatic", is_unstable=True
    )


def test_a_request_is_carried_out_as_a_request() -> None:
    made = plan(automatic(persistents.lost(asked=persistents.NAME)))

    assert isinstance(made.actions[0], ConfirmSilence)
    assert made.actions[0].silent == ()
    assert recorded(made) == persistents.RECOVERY


@pytest.mark.parametrize("asked", ["", "feed/db-0/1"])
def test_the_message_reports_since_when_it_is_counted(asked: str) -> None:
    made = plan(automatic(persistents.lost(asked=asked), AFTER - 1.0))

    assert (made.stage, made.actions) == (Stage.HELD, ())
    assert f"counted since {SINCE}" in made.message


def test_the_message_reports_why_it_does_not_begin() -> None:
    recent = with_record(
        automatic(persistents.lost()), recovery=former(authority="Automatic", is_unstable=True)
    )

    assert "because an earlier recovery did" in plan(recent).message
    uncounted = replace(automatic(persistents.lost()), absence=Absence())
    assert "by itself" not in plan(uncounted).message
    led = changed(uncounted, "db-1", followed_a_leader=True)
    assert "because db-1 followed a leader after the quorum was lost" in plan(led).message
    elsewhere = beside_follower(automatic(persistents.lost(), AFTER - 1.0))
    assert "a recovery begins by itself after 10 min" in plan(elsewhere).message


# afterwards


def test_a_cluster_that_serves_for_an_hour_may_be_recovered_again() -> None:
    state = bootstrapped(persistent())
    recent = with_record(state, recovery=former(authority="Automatic", is_unstable=True))
    assert record_stable(replace(recent, served_for=STABLE_AFTER - 0.1)) is None
    assert record_stable(state) is None

    assert recorded(plan(replace(recent, served_for=STABLE_AFTER))) == former(
        authority="Automatic", is_unstable=False
    )
    for recovery in (former(authority="Automatic", is_unstable=False), None):
        assert record_stable(with_record(state, recovery=recovery)) is None


def test_a_learner_that_waits_for_a_node_does_not_keep_that_from_being_recorded() -> None:
    """It holds every rule for members: the next loss would wait for a person for ever."""
    problem = PodProblem(reason="Unschedulable", message="no node has room")
    whole = with_learner(bootstrapped(persistent(size=4), voters=3), "db-3", answer=None, problem=problem)
    unstable = former(authority="Automatic", is_unstable=True)
    waiting = replace(with_record(whole, recovery=unstable), served_for=STABLE_AFTER)
    assert recorded(plan(waiting)).is_unstable is False


def test_what_may_be_lost_reports_that_no_person_decided() -> None:
    state = with_record(bootstrapped(persistent()), recovery=former(authority="Automatic", is_unstable=True))
    (loss,) = (c for c in conditions(state, plan(state)) if c.type == "DataLossPossible")

    assert loss.message.endswith("; started automatically (spec.recovery: Automatic)")


def test_what_is_left_has_no_silent_member() -> None:
    assert left_of(silenced(3, 0, 1)).silent == ()
