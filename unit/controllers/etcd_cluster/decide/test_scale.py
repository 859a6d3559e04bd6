"""Growing and shrinking: which single step comes next."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AddLearner,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    MoveLeader,
    Remember,
    RemoveMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import addition
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import next_removal as shrink
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.rules.learner import finish as finish_learner
from etcd_operator.controllers.etcd_cluster.decide.rules.scale import unlisted_objects
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining
from unit.controllers.etcd_cluster.decide.builders import (
    AN_ERROR,
    TOKEN,
    VERSION,
    answer,
    bootstrapped,
    changed,
    claim,
    down,
    entry,
    ephemeral,
    old_claim,
    peer,
    persistent,
    pod,
    serving,
    with_record,
    without,
)
from unit.controllers.etcd_cluster.decide.protected import plan
from unit.controllers.etcd_cluster.decide.sizes import kinds, sized, with_learner, with_members


def test_a_persistent_cluster_grows_by_a_learner_with_the_lowest_free_number() -> None:
    made = plan(sized(persistent(), 5))

    joining = Joining(members=("db-0", "db-1", "db-2", "db-3"), token=TOKEN)
    assert made.actions == (
        AddLearner(name="db-3"),
        CreateMember(name="db-3", start=joining, version=VERSION),
    )
    assert (made.stage, made.reason) == (Stage.WORKING, "ScalingUp")


def test_an_ephemeral_cluster_grows_by_a_number_that_is_remembered_once_etcd_lists_it() -> None:
    made = plan(sized(ephemeral(), 5))

    assert kinds(made) == ["AddLearner", "Remember", "CreateMember", "CreateMemberService"]
    assert made.actions[0] == AddLearner(name="db-0003")
    assert made.actions[3] == CreateMemberService(name="db-0003")
    assert isinstance(made.actions[1], Remember)
    assert made.actions[1].persisted.next_ordinal == 4


def test_a_number_is_never_used_again_even_if_the_record_is_behind_what_exists() -> None:
    state = sized(ephemeral(), 4)
    state = without(state, "db-0002")
    members = (*state.members, serving(state.desired, "db-0007", ()))

    assert plan(replace(state, members=members)).actions[0] == AddLearner(name="db-0008")


def test_numbers_are_compared_as_numbers() -> None:
    state = replace(bootstrapped(persistent(size=11)), budget=7)
    state = replace(state, desired=replace(state.desired, size=12))

    assert plan(state).actions[0] == AddLearner(name="db-11")
    state = replace(state, budget=6)
    assert plan(replace(state, desired=replace(state.desired, size=10))).actions[-1] == RemoveMember(
        name="db-10", member_id="id-db-10"
    )


def test_a_replaced_persistent_member_takes_its_own_number_again() -> None:
    assert plan(without(sized(persistent(), 3), "db-1")).actions[0] == AddLearner(name="db-1")


def test_nothing_grows_while_a_voter_is_not_healthy() -> None:
    made = plan(down(sized(persistent(), 5), "db-1"))

    assert (made.actions, made.reason) == ((), "MemberUnhealthy")


@pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])
def test_nobody_is_removed_while_another_one_has_ended_since_it_answered(cluster: DesiredCluster) -> None:
    state = sized(cluster, 2)
    first, middle, _ = (member.name for member in state.members)
    ended = middle if cluster.kind is EPHEMERAL else first
    before = state.by_name[ended].pod
    assert before is not None
    made = plan(changed(state, ended, pod=replace(before, is_running=False)))

    assert (made.actions, made.reason) == ((), "QuorumAtRisk")


def test_growing_waits_for_a_claim_of_the_same_number_to_go() -> None:
    former = Member(name="db-3", claim=old_claim("db-3", is_terminating=True))
    made = plan(with_members(sized(persistent(), 5), former))

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "ScalingUp")


def test_a_claim_that_is_not_this_clusters_is_never_removed_but_reported() -> None:
    made = plan(with_members(sized(persistent(), 5), Member(name="db-3", claim=claim("db-3"))))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "ClaimInTheWay")


def test_a_claim_that_this_cluster_made_for_a_member_that_never_came_is_removed() -> None:
    """Its creation was applied after the member had gone again: nobody else would ever remove it."""
    own = claim("db-3", cluster_uid=TOKEN)
    made = plan(with_members(sized(persistent(), 5), Member(name="db-3", claim=own)))

    assert made.actions == (DeleteMember(name="db-3"),)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"cluster_uid": "another"}, id="made for another resource of this name"),
        pytest.param({"cluster_uid": TOKEN, "token": f"{TOKEN}-1"}, id="of another etcd cluster of its own"),
        pytest.param(
            {"cluster_uid": TOKEN, "member_id": "id-db-3", "cluster_id": "another"},
            id="with the data of an etcd cluster that was given addition",
        ),
    ],
)
def test_a_claim_that_may_hold_other_data_is_not_removed(changes: dict[str, str]) -> None:
    made = plan(with_members(sized(persistent(), 5), Member(name="db-3", claim=claim("db-3", **changes))))

    assert (made.actions, made.reason) == ((), "ClaimInTheWay")


def test_a_persistent_cluster_shrinks_from_the_highest_number() -> None:
    made = plan(sized(persistent(), 1))

    assert made.actions == (RemoveMember(name="db-2", member_id="id-db-2"),)


def test_an_ephemeral_cluster_shrinks_from_the_oldest_and_its_leader_hands_over_first() -> None:
    made = plan(sized(ephemeral(), 1))

    assert made.actions == (
        MoveLeader(name="db-0002", member_id="id-db-0002"),
        RemoveMember(name="db-0000", member_id="id-db-0000"),
    )


def test_a_leader_that_leaves_hands_over_to_the_member_that_leaves_last() -> None:
    state = bootstrapped(persistent(size=5))
    for name in (f"db-{number}" for number in range(5)):
        state = changed(state, name, answer=answer(name, state.etcd_members, leader="id-db-4"))
    made = plan(replace(state, desired=replace(state.desired, size=3)))

    assert made.actions[0] == MoveLeader(name="db-0", member_id="id-db-0")


@pytest.mark.parametrize(("behind", "transferee"), [(10, "db-0002"), (11, "db-0001")])
def test_a_leader_that_leaves_hands_over_to_a_member_that_has_not_to_catch_up(
    behind: int, transferee: str
) -> None:
    """The member that leaves last may have been promoted a moment ago, a tenth of the log behind."""
    state = sized(ephemeral(), 2)
    for member in state.members:
        reply = answer(member.name, state.etcd_members, committed=5000)
        if member.name == "db-0002":
            reply = replace(reply, committed=5000 - behind)
        state = changed(state, member.name, answer=reply)

    assert plan(state).actions[0] == MoveLeader(name=transferee, member_id=f"id-{transferee}")


def test_an_unhealthy_member_goes_first() -> None:
    state = down(bootstrapped(persistent(size=5)), "db-1")
    made = plan(replace(state, desired=replace(state.desired, size=3)))

    assert made.actions[0] == RemoveMember(name="db-1", member_id="id-db-1")


def test_nothing_shrinks_while_the_rest_would_have_no_quorum() -> None:
    state = bootstrapped(persistent(size=5))
    for name in ("db-0", "db-1"):
        state = down(state, name)
    state = changed(state, "db-4", answer=answer("db-4", (entry("db-4"),), **AN_ERROR))
    made = plan(replace(state, desired=replace(state.desired, size=3)))

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "QuorumAtRisk")


def test_what_is_left_of_a_removed_member_is_removed() -> None:
    left = Member(
        name="db-3", peer=peer("db-3", is_existing_only=True), claim=old_claim("db-3"), pod=pod("db-3")
    )

    assert plan(with_members(sized(persistent(), 3), left)).actions == (DeleteMember(name="db-3"),)


@pytest.mark.parametrize(
    ("left", "is_removed"),
    [
        pytest.param({"claim": old_claim("db-3")}, True, id="a claim that was a member's"),
        pytest.param({"claim": claim("db-3")}, False, id="a claim that nobody annotated"),
        pytest.param(
            {"claim": old_claim("db-3", cluster_id="other")}, False, id="a claim of another cluster"
        ),
        pytest.param({"claim": old_claim("db-3", is_terminating=True)}, False, id="a claim that goes"),
        pytest.param({"peer": peer("db-3", is_terminating=True)}, False, id="a peer that goes"),
        pytest.param({"pod": pod("db-3", is_gated=True)}, True, id="a pod"),
        pytest.param({"pod": pod("db-3")}, False, id="a pod of another operator"),
        pytest.param({"pod": pod("db-3", is_terminating=True)}, False, id="a pod that goes"),
        pytest.param(
            {"pod": pod("db-3", is_terminating=True), "has_service": True},
            True,
            id="a pod that goes, with a service that does not",
        ),
    ],
)
def test_only_what_is_ours_and_still_stands_is_removed(left: dict[str, Any], is_removed: bool) -> None:
    made = unlisted_objects(with_members(sized(persistent(), 3), Member(name="db-3", **left)))

    assert (made is not None) is is_removed


def test_without_a_quorum_no_membership_changes() -> None:
    left = Member(name="db-3", peer=peer("db-3"))
    state = replace(with_learner(with_members(sized(persistent(), 1), left), "db-4"), has_quorum=False)

    assert [rule(state) for rule in (unlisted_objects, finish_learner, shrink, addition)] == [None] * 4


def test_nothing_is_left_to_do_at_the_size_that_is_asked() -> None:
    assert [rule(bootstrapped()) for rule in (unlisted_objects, finish_learner, shrink, addition)] == [
        None
    ] * 4


def test_an_ephemeral_cluster_shrinks_by_the_member_whose_pod_is_just_being_deleted() -> None:
    """It still answers; without it and another one the rest would be no quorum."""
    state = changed(sized(ephemeral(), 2), "db-0001", pod=pod("db-0001", is_terminating=True))

    assert RemoveMember(name="db-0001", member_id="id-db-0001") in plan(state).actions


def test_a_persistent_cluster_shrinks_by_the_member_whose_claim_is_being_deleted() -> None:
    """It serves as long as its pod lives, and never again."""
    state = changed(sized(persistent(), 2), "db-1", claim=old_claim("db-1", is_terminating=True))

    assert RemoveMember(name="db-1", member_id="id-db-1") in plan(state).actions


def test_a_persistent_cluster_does_not_shrink_while_the_rest_depends_on_a_pod_that_is_going() -> None:
    """It comes back, and then the last member may go."""
    state = changed(sized(persistent(), 2), "db-0", pod=pod("db-0", is_terminating=True))

    made = plan(state)

    assert (made.stage, made.reason, made.actions) == (Stage.HELD, "QuorumAtRisk", ())


def test_a_number_that_is_remembered_is_not_used_again_though_nothing_is_left_of_its_member() -> None:
    state = sized(ephemeral(), 4)
    state = with_record(state, next_ordinal=7)

    assert plan(state).actions[0] == AddLearner(name="db-0007")
