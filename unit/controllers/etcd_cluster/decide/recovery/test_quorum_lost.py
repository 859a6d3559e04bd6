"""When a lost majority is recovered from, from whom, and when nothing is touched."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.recoveries import Survivor
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    CreateMember,
    CreateMemberService,
    Remember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import AddReader, ConfirmLoss
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ReaderFacts, Reading
from etcd_operator.controllers.etcd_cluster.decide.recovery.proof import LEARNER_GRACE
from etcd_operator.controllers.etcd_cluster.decide.recovery.rules import recover
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import ELECTION
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    TOKEN,
    VERSION,
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    down,
    entry,
    ephemeral,
    persistent,
    pod,
    silent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import RECOVERY, lost, name_of, survived_at


def test_two_of_three_gone_are_recovered_from_the_third_as_the_next_number() -> None:
    made = plan(lost(3, 0, 1))

    loss, remembered, seed, used, address = made.actions
    assert isinstance(loss, ConfirmLoss)
    assert (loss.gone, loss.survivors) == (("db-0000", "db-0001"), (("db-0002", "pod-db-0002"),))
    assert isinstance(remembered, Remember)
    assert (remembered.persisted.recovery, remembered.persisted.next_ordinal) == (RECOVERY, 3)
    assert remembered.persisted.is_recovering
    assert seed == CreateMember(
        name="db-0003", start=Seeding(source=Survivor(name="db-0002"), token=f"{TOKEN}-1"), version=VERSION
    )
    assert used == Remember(persisted=replace(remembered.persisted, next_ordinal=4))
    assert address == CreateMemberService(name="db-0003")
    assert made.reason == "Recovering"


def missed_the_promotion(unavailable_for: float = ELECTION) -> ClusterState:
    """Two of four are gone. db-0002 does not know yet that db-0003 votes, so it counts three voters."""
    state = replace(lost(4, 0, 3), unavailable_for=unavailable_for)
    older = tuple(entry(name_of(number), is_learner=number == 3) for number in range(4))
    reply = answer("db-0002", older, leader="", revision=7, committed=17)
    return changed(state, "db-0002", answer=reply)


def test_who_missed_a_promotion_and_cannot_lead_is_named_after_the_time_of_an_election() -> None:
    made = plan(missed_the_promotion())

    assert (made.stage, made.reason, made.actions) == (Stage.HELD, "QuorumLost", ())


def test_its_deletion_recovers_from_the_other() -> None:
    made = plan(changed(missed_the_promotion(), "db-0002", pod=None, answer=None))

    assert recorded(made).source.name == "db-0001"


def test_members_with_one_list_that_elect_nobody_are_reported_as_disconnected() -> None:
    assert plan(replace(lost(3, 0), unavailable_for=ELECTION)).reason == "QuorumLost"


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(missed_the_promotion(unavailable_for=ELECTION - 0.1), id="an election may be held"),
        pytest.param(
            changed(replace(lost(5, 0), unavailable_for=ELECTION), "db-0002", answer=None),
            id="one that is silent may be restarting",
        ),
    ],
)
def test_nobody_is_named_while_a_leader_may_be_elected(state: ClusterState) -> None:
    assert recover(state) is None


@pytest.mark.parametrize(
    ("state", "survivor"),
    [
        pytest.param(lost(5, 0, 1, 2, revisions={3: 8, 4: 9}), "db-0004", id="the newest data"),
        pytest.param(lost(5, 0, 1, 4, revisions={2: 9, 3: 8}), "db-0002", id="the newest data, listed first"),
        pytest.param(lost(5, 0, 1, 2), "db-0003", id="the first of equals"),
        pytest.param(
            changed(
                lost(5, 0, 1, 2, revisions={3: 8, 4: 9}),
                "db-0004",
                pod=pod("db-0004", is_terminating=True),
            ),
            "db-0003",
            id="nobody who is being deleted",
        ),
        pytest.param(
            changed(lost(3, 0, 1), "db-0000", pod=pod("db-0000", is_finished=True)),
            "db-0002",
            id="a pod that will never run again is gone",
        ),
        pytest.param(lost(2, 1), "db-0000", id="one of two"),
    ],
)
def test_the_survivor_with_the_newest_data_is_taken(state: ClusterState, survivor: str) -> None:
    assert recorded(plan(state)).source.name == survivor


def with_list(state: ClusterState, name: str, *numbers: int, learners: tuple[int, ...] = ()) -> ClusterState:
    """`name` answers with another list than the others."""
    listed = tuple(entry(name_of(number), is_learner=number in learners) for number in numbers)
    return changed(state, name, answer=answer(name, listed, leader=""))


def with_learner(state: ClusterState, **changes: object) -> ClusterState:
    """A member without a vote, which the others list, is added; it does not answer."""
    name = "db-0007"
    learner = replace(
        silent(state.desired, name, entry=entry(name, is_learner=True)),
        **changes,  # type: ignore[arg-type]
    )
    return replace(state, members=(*state.members, learner))


UNDECIDED = [
    pytest.param(down(lost(3), "db-0000", "db-0001"), id="two of three are only silent"),
    pytest.param(lost(3, 0), id="one of three is gone"),
    pytest.param(
        changed(lost(3, 0), "db-0001", answer=None, pod=pod("db-0001", is_on_lost_node=True)),
        id="one is gone and one is on a silent node: it may be back",
    ),
    pytest.param(
        changed(lost(3, 0), "db-0001", answer=None, pod=pod("db-0001", is_terminating=True)),
        id="one is gone and one is not gone yet",
    ),
    pytest.param(
        with_list(lost(5, 0, 1, 2), "db-0004", 2, 3, 4),
        id="one survivor knows that the first two were removed",
    ),
    pytest.param(lost(3), id="all answer, and elect a leader just now"),
    pytest.param(replace(lost(3, 0, 1), has_quorum=True), id="a quorum answers"),
    pytest.param(bootstrapping(ephemeral()), id="a cluster that is not bootstrapped"),
    pytest.param(
        replace(bootstrapped(persistent()), has_quorum=False, members=()),
        id="a cluster that keeps its data on claims",
    ),
]


@pytest.mark.parametrize("state", UNDECIDED)
def test_nothing_is_recovered_while_a_quorum_may_come_back(state: ClusterState) -> None:
    assert recover(state) is None


HELD = [
    pytest.param(lost(3, 0, 1, 2), "NoBackup", id="all are gone"),
    pytest.param(lost(1, 0), "NoBackup", id="the only one is gone"),
    pytest.param(down(lost(3, 0, 1), "db-0002"), "QuorumLost", id="the survivor is silent"),
    pytest.param(
        down(lost(3, 0, 1), "db-0002", problem=PodProblem(reason="DataLost", message="it is empty")),
        "QuorumLost",
        id="the survivor does not run",
    ),
    pytest.param(
        down(lost(3, 0, 1), "db-0002", pod=pod("db-0002", restarts=1)),
        "QuorumLost",
        id="the survivor restarted",
    ),
    pytest.param(
        with_learner(
            lost(3, 0, 1, 2), answer=answer("db-0007", is_learner=True, revision=7), pod=pod("db-0007")
        ),
        "QuorumLost",
        id="only a learner is left: it may have received only a part",
    ),
    pytest.param(down(lost(5, 0, 1, 2), "db-0004"), "QuorumLost", id="one survivor is silent"),
    pytest.param(
        changed(lost(3, 0, 1), "db-0002", pod=pod("db-0002", is_terminating=True)),
        "QuorumLost",
        id="the survivor is being deleted",
    ),
    pytest.param(survived_at("3.4.30"), "RecoveryUnsupported", id="a version that cannot restore safely"),
    pytest.param(survived_at("3.5.9"), "RecoveryUnsupported", id="the last one that cannot restore safely"),
]


@pytest.mark.parametrize(("state", "reason"), HELD)
def test_without_a_safe_way_nothing_is_touched_and_the_reason_is_reported(
    state: ClusterState, reason: str
) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, reason)
    assert made.requeue_after is not None


def test_silent_members_without_a_vote_are_waited_for_only_for_a_while() -> None:
    state = with_learner(lost(3, 0, 1))

    waiting = plan(replace(state, unavailable_for=LEARNER_GRACE - 0.1))
    assert (waiting.actions, waiting.stage, waiting.reason) == ((), Stage.WORKING, "QuorumLost")
    assert plan(replace(state, unavailable_for=LEARNER_GRACE)).reason == "Recovering"


def test_a_learner_that_answers_cannot_bring_a_quorum_back() -> None:
    state = with_list(lost(2, 0), "db-0001", 0, 1, 7, learners=(7,))
    learner = answer("db-0007", is_learner=True, leader="", revision=7)

    assert plan(with_learner(state, answer=learner)).reason == "Recovering"


def test_a_voter_that_has_not_reported_its_name_is_known_by_its_id() -> None:
    state = lost(3, 0, 1)
    listed = (entry("db-0000"), replace(entry("db-0001"), name=""), entry("db-0002"))
    state = changed(state, "db-0002", answer=answer("db-0002", listed, leader=""))

    assert plan(state).reason == "Recovering"


def test_a_voter_that_nobody_knows_may_be_alive() -> None:
    state = lost(3, 0, 1)
    listed = (entry("db-0000"), replace(entry("x"), name=""), entry("db-0002"))

    assert recover(changed(state, "db-0002", answer=answer("db-0002", listed, leader=""))) is None


def promoted_unknown(**seen: Any) -> ClusterState:
    """db-0000 was cut off when db-0003 was promoted by the two that are lost; db-0003 is silent."""
    state = lost(3, 1, 2)
    listed = (*(entry(name_of(number)) for number in range(3)), entry("db-0003", is_learner=True))
    state = changed(state, "db-0000", answer=answer("db-0000", listed, leader=""))
    facts = {"is_running": True, "has_restarted": True, "serves": False, **seen}
    voter = silent(state.desired, "db-0003", has_service=True, entry=listed[-1], pod=pod("db-0003", **facts))
    return replace(state, members=(*state.members, voter), unavailable_for=LEARNER_GRACE + 1.0)


def test_a_voter_that_the_survivor_takes_for_a_learner_is_read_and_waited_for() -> None:
    assert plan(promoted_unknown()).actions == (AddReader(name="db-0003"),)
    crashed = plan(promoted_unknown(is_running=False))
    assert (crashed.stage, crashed.actions) == (Stage.HELD, ())


@pytest.mark.parametrize("is_read", [False, True], ids=["it answers", "it was read"])
def test_a_voter_that_has_not_heard_of_its_promotion_and_has_newer_data_is_left_to_a_person(
    is_read: bool,
) -> None:
    def with_committed(committed: int) -> ClusterState:
        reply = answer("db-0003", is_learner=True, revision=committed, committed=committed)
        if not is_read:
            return changed(promoted_unknown(), "db-0003", answer=reply)
        reader = ReaderFacts(name="survivor-reader-1", is_running=True)
        return changed(promoted_unknown(reader=reader), "db-0003", reading=Reading(answer=reply, sha256="ab"))

    survivor = promoted_unknown().by_name["db-0000"].answer
    assert survivor is not None
    assert plan(with_committed(survivor.committed)).reason == "Recovering"
    made = plan(with_committed(survivor.committed + 1))
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "QuorumLost")


def test_one_that_never_voted_or_was_removed_is_not_waited_for() -> None:
    survivor = (("db-0000", "pod-db-0000"),)
    listed = tuple(entry(name_of(number)) for number in range(3))
    removed = changed(promoted_unknown(is_terminating=True), "db-0003", has_service=False, entry=None)
    removed = changed(removed, "db-0000", answer=answer("db-0000", listed, leader=""))
    for state in (promoted_unknown(serves=None), removed):
        loss = plan(state).actions[0]
        assert isinstance(loss, ConfirmLoss)
        assert loss.survivors == survivor


def beside_given_up(*left: int) -> ClusterState:
    """Of db-0003 to db-0005 these are left; db-0000 and db-0001 were given up before, and still answer."""
    new, old = (tuple(entry(name_of(number)) for number in numbers) for numbers in ((3, 4, 5), (0, 1, 2)))
    state = bootstrapped(ephemeral(), has_quorum=False, unavailable_for=600.0)
    members = []
    for each in old[:2]:
        reply = answer(each.name, old, cluster_id="feed", leader="id-db-0000", revision=9)
        going = pod(each.name, is_terminating=True, is_routed=False)
        members.append(silent(state.desired, each.name, answer=reply, pod=going))
    for each in new:
        is_left = int(each.name[-1]) in left
        alive = answer(each.name, new, leader="", revision=10**9) if is_left else None
        found = pod(each.name) if is_left else None
        members.append(
            silent(state.desired, each.name, has_service=True, answer=alive, entry=each, pod=found)
        )
    record = msgspec.structs.replace(RECOVERY, replaces="feed", authority="Automatic")
    return with_record(replace(state, members=tuple(members)), recovery=record, next_ordinal=6)


def test_members_of_a_cluster_that_was_given_up_keep_no_recovery_away() -> None:
    made = plan(beside_given_up(3))
    loss = made.actions[0]
    assert isinstance(loss, ConfirmLoss)
    assert (loss.gone, loss.survivors) == (("db-0004", "db-0005"), (("db-0003", "pod-db-0003"),))
    assert recorded(made).source.name == "db-0003"


def test_they_are_neither_taken_for_silent_nor_advised_to_elect_a_leader() -> None:
    made = plan(beside_given_up())
    assert (made.stage, made.actions) == (Stage.HELD, ())


def test_they_are_named_beside_those_that_are_silent() -> None:
    state = beside_given_up(3)
    for name in ("db-0000", "db-0001"):
        state = changed(state, name, pod=pod(name))
    made = plan(down(state, "db-0003", pod=pod("db-0003", is_running=False)))
    assert (made.stage, made.actions) == (Stage.HELD, ())
