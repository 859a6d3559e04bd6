"""The steps of an adoption, from the first learner to the last external member."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    AddLearner,
    CreateMember,
    DeleteMember,
    MoveLeader,
    Promote,
    RecreatePod,
    Remember,
    RemoveExternal,
    RemoveMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import before_removal
from etcd_operator.controllers.etcd_cluster.decide.adoption.external_answers import Rejection
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.adoption.adoptions import adopting, led_by, silent_external, theirs
from unit.controllers.etcd_cluster.decide.builders import (
    answer,
    answering,
    bootstrapped,
    changed,
    down,
    entry,
    ephemeral,
    old_claim,
    peer,
    persistent,
    pod,
    with_record,
)

OURS = "id-db-0"


def removed(state: ClusterState) -> list[str]:
    """The IDs of the external members that the plan removes."""
    return [action.member_id for action in plan(state).actions if isinstance(action, RemoveExternal)]


def test_the_first_of_ours_joins_with_the_peer_urls_of_all_external_members() -> None:
    made = plan(adopting(ours=0))

    add, create = made.actions
    assert add == AddLearner(name="db-0")
    assert isinstance(create, CreateMember)
    assert isinstance(create.start, Joining)
    assert create.start.members == ("db-0",)
    assert create.start.external == tuple((f"id-old-{n}", f"http://old-{n}.there:2380") for n in range(3))
    assert create.version == "3.6.16"


def test_an_external_member_with_two_peer_urls_is_listed_with_both() -> None:
    state = adopting(ours=0, count=1)
    urls = ("http://10.0.0.1:2380", "http://10.1.0.1:2380")
    (other,) = state.external
    assert other.entry is not None
    state = replace(state, external=(replace(other, entry=replace(other.entry, peer_urls=urls)),))

    *_, create = plan(state).actions
    assert isinstance(create, CreateMember)
    assert isinstance(create.start, Joining)
    assert create.start.external == tuple(("id-old-0", url) for url in urls)


def test_peer_urls_that_were_changed_meanwhile_are_recorded_before_a_member_starts_with_them() -> None:
    """A peer with others than those on record is refused."""
    state = adopting(ours=0, count=1)
    (old,) = state.external
    assert old.entry is not None
    moved = replace(old, entry=replace(old.entry, peer_urls=("http://reachable:2380",)))
    _, record, create = plan(replace(state, external=(moved,))).actions

    assert isinstance(record, Remember)
    assert record.persisted.adoption is not None
    assert record.persisted.adoption.members[0].peer_urls == ("http://reachable:2380",)
    assert isinstance(create, CreateMember)
    assert isinstance(create.start, Joining)
    assert create.start.external == (("id-old-0", "http://reachable:2380"),)


@pytest.mark.parametrize("ours", [1, 2])
def test_ours_join_one_after_the_other_before_any_external_one_is_removed(ours: int) -> None:
    made = plan(adopting(ours=ours))

    assert made.actions[0] == AddLearner(name=f"db-{ours}")
    assert not removed(adopting(ours=ours))


def test_a_learner_of_ours_that_has_caught_up_is_promoted() -> None:
    state = with_learner(adopting(ours=0))

    assert plan(state).actions == (Promote(name="db-0", member_id="id-db-0"),)


def with_learner(state: ClusterState, **changes: Any) -> ClusterState:
    learner = Member(
        name="db-0",
        peer=peer("db-0", is_existing_only=True),
        claim=old_claim("db-0"),
        pod=pod("db-0"),
        entry=entry("db-0", is_learner=True),
        answer=answer("db-0", is_learner=True),
    )
    return replace(state, members=(replace(learner, **changes),))


def test_a_learner_that_receives_much_data_is_not_removed_because_an_upgrade_is_due() -> None:
    """Ours join at the version that runs; the upgrade comes after the adoption."""
    late = {"answer": None, "silent_for": 300.0}
    state = with_learner(adopting(ours=0), **late)
    outdated = replace(state, desired=replace(state.desired, version="3.6.17"))
    assert plan(outdated).reason == "LearnerSilent"


def test_no_member_joins_while_an_external_one_is_silent() -> None:
    made = plan(silent_external(adopting(ours=1), 2))

    assert (made.actions, made.reason) == ((), "MemberUnhealthy")


def test_the_leadership_moves_to_one_of_ours_before_the_first_removal() -> None:
    (move,) = plan(adopting()).actions

    assert isinstance(move, MoveLeader)
    assert move.name.startswith("db-")


def test_an_external_member_is_removed_after_that_is_recorded() -> None:
    record, removal = plan(led_by(adopting(), OURS)).actions

    assert removal == RemoveExternal(name="old-0 (id-old-0)", member_id="id-old-0")
    assert isinstance(record, Remember)
    assert record.persisted.adoption is not None
    assert [m.removed for m in record.persisted.adoption.members] == [True, False, False]


def test_a_silent_external_member_is_removed_first() -> None:
    assert removed(led_by(silent_external(adopting(), 1), OURS)) == ["id-old-1"]


def test_a_removal_that_has_begun_is_finished_before_the_next_one_and_recorded_once() -> None:
    state = led_by(adopting(), OURS)
    adoption = state.persisted.adoption
    assert adoption is not None
    members = tuple(
        type(m)(id=m.id, endpoint=m.endpoint, peer_urls=m.peer_urls, removed=m.id == "id-old-2")
        for m in adoption.members
    )
    begun = silent_external(with_record(state, adoption=type(adoption)(members=members)), 2)

    assert plan(begun).actions == (RemoveExternal(name="old-2 (id-old-2)", member_id="id-old-2"),)
    degraded = next(c for c in conditions(begun, plan(begun)) if c.type == "Degraded")
    assert degraded.status == "False"


AT_RISK = [
    pytest.param(down(adopting(), "db-1"), id="one of ours is silent"),
    pytest.param(down(adopting(count=1), "db-1"), id="one is silent that the quorum does not need"),
    pytest.param(
        changed(adopting(), "db-1", claim=old_claim("db-1", is_terminating=True)), id="one loses its data"
    ),
    pytest.param(adopting(count=5), id="ours are not a quorum of the rest"),
]


@pytest.mark.parametrize("state", AT_RISK)
def test_no_external_member_is_removed_before_ours_are_a_healthy_quorum(state: ClusterState) -> None:
    made = plan(led_by(state, OURS))

    assert not any(isinstance(action, RemoveExternal) for action in made.actions)
    assert made.reason == "QuorumAtRisk"


def test_where_it_is_to_stop_after_joining_all_members_are_kept() -> None:
    made = plan(adopting(mode="Join"))

    assert (made.actions, made.reason, made.stage) == ((), "Joined", Stage.WORKING)


def test_it_ends_when_no_external_member_is_left() -> None:
    (remember,) = plan(adopting(count=0, removed=3)).actions

    assert isinstance(remember, Remember)
    assert remember.persisted.adoption is not None
    assert remember.persisted.adoption.finished
    ended = adopting(count=0, removed=3)
    ended = replace(ended, desired=replace(ended.desired, persisted=remember.persisted))
    assert plan(ended).stage is Stage.SETTLED


def test_an_external_member_that_somebody_added_meanwhile_stops_everything() -> None:
    unknown = EtcdMember(id="id-new", name="new", peer_urls=("http://new:2380",))

    assert plan(adopting(unknown_members=(unknown,))).reason == "UnknownMember"


def test_a_lost_voter_of_ours_is_removed_while_the_others_have_a_quorum() -> None:
    state = changed(down(adopting(), "db-1"), "db-1", claim=None, peer=None, pod=None)

    assert RemoveMember(name="db-1", member_id="id-db-1") in plan(state).actions


def test_a_lost_voter_of_ours_is_kept_while_external_members_are_needed_for_the_quorum() -> None:
    state = changed(down(adopting(ours=2), "db-1"), "db-1", claim=None, peer=None, pod=None)
    state = silent_external(silent_external(state, 0), 1)

    assert plan(state).actions == ()


STOPPED = [
    pytest.param(adopting(has_quorum=False), "QuorumLost", id="no quorum"),
    pytest.param(silent_external(adopting(ours=0, count=1), 0), "QuorumLost", id="nobody to ask"),
]


@pytest.mark.parametrize(("state", "reason"), STOPPED)
def test_nothing_is_done_without_a_quorum(state: ClusterState, reason: str) -> None:
    made = plan(state)

    assert (made.actions, made.reason) == ((), reason)


def test_a_member_of_ours_that_missed_its_volume_is_tried_again_without_a_quorum() -> None:
    empty = pod("db-0", is_running=False, has_no_data=True, restarts=3, is_existing_only=True)
    state = changed(adopting(ours=1, count=1, has_quorum=False), "db-0", answer=None, pod=empty)

    assert plan(state).actions == (RecreatePod(name="db-0"),)


def test_who_has_the_newest_data_is_named_to_a_person_whose_members_never_come_back() -> None:
    state = adopting(ours=1, count=1, has_quorum=False)
    silent = plan(silent_external(state, 0)).message
    assert "old-0 (id-old-0) (" in silent
    assert "or, if their data is lost, restore a snapshot of db-0 (`etcdctl snapshot save`)" in silent
    nobody = silent_external(changed(state, "db-0", answer=None), 0)
    assert "snapshot" not in plan(nobody).message


def test_a_message_names_what_else_answers_and_to_restore_nothing_while_a_quorum_is_there() -> None:
    rejection = (("id-old-0", Rejection(why="another process answers at old-0.there:2379")),)
    state = adopting(ours=1, count=1, has_quorum=False, rejected=rejection)
    silent = plan(silent_external(state, 0)).message
    assert "old-0 (id-old-0) (another process answers at old-0.there:2379)" in silent
    unlisted = replace(changed(state, "db-0", entry=None), external=())
    assert "another process answers at old-0.there:2379" in plan(unlisted).message
    assert "restore a snapshot of db-0" in plan(unlisted).message
    assert "restore" not in plan(adopting(has_quorum=False)).message


def begun_removal(ours: int, **changes: Any) -> ClusterState:
    """The removal of old-0 is recorded, and was not carried out."""
    state = adopting(ours=ours, **changes)
    adoption = state.persisted.adoption
    assert adoption is not None
    first, *others = adoption.members
    members = (msgspec.structs.replace(first, removed=True), *others)
    return silent_external(with_record(state, adoption=msgspec.structs.replace(adoption, members=members)), 0)


def test_a_removal_that_was_recorded_only_does_not_keep_a_lost_member_from_being_replaced() -> None:
    """A member that leaves is not asked, so it is never healthy; etcd adds none while it is down."""
    removal = RemoveExternal(name="old-0 (id-old-0)", member_id="id-old-0")
    for count in (1, 3):
        assert plan(led_by(begun_removal(2, count=count), OURS)).actions == (removal,)


def test_a_recorded_removal_of_the_leader_is_carried_out_when_one_of_ours_leads() -> None:
    (move,) = plan(begun_removal(2)).actions

    assert isinstance(move, MoveLeader)
    assert move.name.startswith("db-")


def test_a_recorded_removal_waits_for_a_quorum_of_the_others() -> None:
    state = silent_external(silent_external(led_by(begun_removal(2), OURS), 1), 2)

    assert (plan(state).actions, plan(state).reason) == ((), "MemberUnhealthy")


def test_ours_join_again_although_a_removal_is_recorded_where_all_of_them_were_lost() -> None:
    """No member of ours can be asked for the removal."""
    assert plan(led_by(begun_removal(0), "id-old-1")).actions[0] == AddLearner(name="db-0")


def test_another_process_at_an_endpoint_is_reported_and_nothing_waits_for_it() -> None:
    rejection = (("id-old-2", Rejection(why="another process answers at old-2.there:2379")),)
    state = silent_external(adopting(mode="Join", rejected=rejection), 2)
    made = plan(state)
    assert (made.actions, made.reason) == ((), "MemberUnhealthy")
    unlisted = replace(state, external=state.external[:2])
    assert plan(unlisted).reason == "Joined"
    leaving = replace(state, desired=adopting(mode="Leave").desired)
    assert plan(leaving).actions == (RemoveMember(name="db-2", member_id="id-db-2"),)


def test_a_removal_that_has_begun_is_carried_out_whatever_the_mode_is() -> None:
    assert removed(led_by(begun_removal(3, mode="Join"), OURS)) == ["id-old-0"]
    at_risk = silent_external(silent_external(changed(begun_removal(3, mode="Join"), "db-0"), 1), 2)
    assert plan(replace(down(at_risk, "db-0"), budget=3)).reason == "QuorumAtRisk"


def test_how_to_go_on_without_an_external_member_that_is_lost() -> None:
    made = plan(silent_external(adopting(ours=2), 1))
    assert made.reason == "MemberUnhealthy"


def test_an_external_member_with_corrupt_data_is_named_as_such() -> None:
    """It is a member, and not one that was removed."""
    made = plan(answering(adopting(mode="Join"), "db-0", corrupt=frozenset({"id-old-0"})))

    assert made.reason == "DataCorrupt"
    assert "of old-0 (id-old-0) differs" in made.message


def test_no_recovery_begins_while_external_members_may_return() -> None:
    lost = adopting(ours=3, desired=replace(adopting().desired, kind=ephemeral().kind), has_quorum=False)
    for name in ("db-0001", "db-0002"):
        lost = changed(lost, name, pod=None, answer=None)

    assert (plan(lost).actions, plan(lost).reason) == ((), "QuorumLost")


def test_without_its_endpoints_an_adoption_stops() -> None:
    state = adopting()
    made = plan(replace(state, desired=replace(state.desired, adopt=None)))

    assert (made.actions, made.reason) == ((), "AdoptionStopped")


# Turning back


def is_vacating(action: Action) -> bool:
    return (
        isinstance(action, Remember)
        and action.persisted.adoption is not None
        and action.persisted.adoption.last_member_removed
    )


def last_member_removed(state: ClusterState, committed: int = 0) -> ClusterState:
    adoption = state.persisted.adoption
    assert adoption is not None
    return with_record(
        state, adoption=msgspec.structs.replace(adoption, committed=committed, last_member_removed=True)
    )


def test_the_removal_of_the_last_of_ours_is_recorded_once_with_the_index_of_the_log() -> None:
    state = adopting(ours=1, mode="Leave")
    record, removal = plan(state).actions

    assert is_vacating(record)
    assert isinstance(record, Remember)
    assert record.persisted.adoption is not None
    assert record.persisted.adoption.committed == 20
    assert isinstance(removal, RemoveMember)
    assert plan(last_member_removed(state)).actions == (removal,)
    assert not any(map(is_vacating, plan(adopting(ours=2, mode="Leave")).actions))


def test_a_lost_member_that_is_the_only_one_of_ours_is_removed_as_the_last_one() -> None:
    state = changed(adopting(ours=1), "db-0", claim=None, peer=None, pod=None, answer=None)
    record, removal = plan(state).actions

    assert is_vacating(record)
    assert removal == RemoveMember(name="db-0", member_id="id-db-0")


def test_when_ours_are_to_join_again_lists_without_them_no_longer_count() -> None:
    for state in (adopting(ours=1), adopting(ours=0)):
        record = next(a for a in plan(last_member_removed(state, 30)).actions if isinstance(a, Remember))
        assert record.persisted.adoption is not None
        assert (record.persisted.adoption.last_member_removed, record.persisted.adoption.committed) == (
            False,
            30,
        )
    first, second, *_ = plan(last_member_removed(adopting(ours=0))).actions
    assert isinstance(first, AddLearner)
    assert isinstance(second, Remember)


def test_the_pending_learner_leaves_first() -> None:
    state = with_learner(adopting(ours=0, mode="Leave"))

    record, *rest = plan(state).actions
    assert is_vacating(record)
    assert tuple(rest) == (
        RemoveMember(name="db-0", member_id="id-db-0"),
        DeleteMember(name="db-0"),
    )


def test_ours_leave_one_at_a_time_as_when_a_cluster_shrinks() -> None:
    assert plan(adopting(mode="Leave")).actions == (RemoveMember(name="db-2", member_id="id-db-2"),)


def test_an_unhealthy_member_of_ours_leaves_first() -> None:
    assert plan(down(adopting(mode="Leave"), "db-0")).actions == (
        RemoveMember(name="db-0", member_id="id-db-0"),
    )


def test_a_member_of_ours_that_leads_gives_the_leadership_to_an_external_one() -> None:
    move, removal = plan(led_by(adopting(mode="Leave"), "id-db-2")).actions

    assert isinstance(move, MoveLeader)
    assert move.member_id.startswith("id-old")
    assert removal == RemoveMember(name="db-2", member_id="id-db-2")


def test_ours_stay_while_the_external_members_are_no_quorum_without_them() -> None:
    state = adopting(mode="Leave")

    state = replace(silent_external(silent_external(state, 0), 1), budget=3)
    assert plan(state).reason == "QuorumAtRisk"


def test_after_the_first_removal_there_is_no_way_back() -> None:
    made = plan(adopting(mode="Leave", count=2, removed=1))

    assert (made.actions, made.reason) == ((), "TooLateToLeave")


def test_when_all_have_left_nothing_is_done_any_more_and_nothing_is_wrong() -> None:
    state = adopting(ours=0, mode="Leave")
    made = plan(state)

    assert (made.actions, made.reason) == ((), "TurnedBack")
    assert theirs(3) == tuple(member.entry for member in state.external)
    degraded = next(c for c in conditions(state, made) if c.type == "Degraded")
    assert degraded.status == "False"


def test_without_an_adoption_nothing_is_recorded_of_the_only_member() -> None:
    state = bootstrapped(persistent(size=1))
    assert before_removal(state, "db-0") == state.persisted
