"""Which answers of external members count, and which endpoints are probed."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide.adoption import external_answers
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.observation import is_own_quorum, observed
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply, Silence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.adoption.adoptions import adopting, endpoint, offered, theirs
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    answer,
    bootstrapped,
    claim,
    entry,
    ephemeral,
    persistent,
    pod,
    serving,
)

LISTED = (*theirs(2), entry("db-0"))


def join(desired: DesiredCluster, external: dict[str, Reply], ours: dict[str, Reply]) -> ClusterState:
    return observed(
        desired,
        {name: Member(name=name, pod=pod(name)) for name in ours},
        ours,
        {},
        external=external,
        name_at=lambda url: url.removeprefix("http://").removesuffix(":2380") if "db-" in url else "",
    )


DESIRED = adopting(ours=1, count=2).desired
BOTH: dict[str, Reply] = {endpoint(n): answer(f"old-{n}", LISTED) for n in range(2)}


def test_external_members_are_known_by_their_ids_and_ours_by_their_names() -> None:
    state = join(DESIRED, BOTH, {"db-0": answer("db-0", LISTED)})

    assert [member.name for member in state.external] == ["old-0 (id-old-0)", "old-1 (id-old-1)"]
    assert [voter.name for voter in state.voters] == ["db-0"]
    assert state.unknown_members == ()
    assert len(state.all_healthy_voters) == 3
    assert {each.id for each in state.etcd_members} == {each.id for each in LISTED}


def test_an_external_member_that_has_a_name_like_ours_is_not_taken_for_ours() -> None:
    same = tuple(replace(each, name="db-0") for each in theirs(1))
    state = join(DESIRED, {endpoint(0): answer("old-0", (*same, entry("db-0")))}, {})

    assert [member.name for member in state.external] == ["db-0 (id-old-0)"]
    assert [voter.id for voter in state.voters] == ["id-db-0"]


@pytest.mark.parametrize("mode", ["Complete", "Join", "Leave"])
def test_an_external_member_that_came_later_and_has_a_name_like_ours_is_not_removed(mode: Any) -> None:
    """Its manager has replaced one: it serves, and nothing of it is on record."""
    new = replace(theirs(3)[2], id="id-new", name="db-1")
    listed = (*theirs(2), new, entry("db-0"))
    desired = adopting(ours=1, mode=mode).desired
    replies: dict[str, Reply] = {
        endpoint(n): answer(name, listed) for n, name in enumerate(("old-0", "old-1", "new"))
    }
    state = join(desired, replies, {"db-0": answer("db-0", listed)})
    state = replace(state, has_client_service=True, budget=2, age=3600.0, has_quorum=True)

    assert state.unknown_members == (new,)
    assert [voter.id for voter in state.voters] == ["id-db-0"]
    assert (plan(state).actions, plan(state).reason) == ((), "UnknownMember")


WRONG = [
    pytest.param({"cluster_id": "other"}, id="another cluster"),
    pytest.param({"member_id": "id-old-1"}, id="another member"),
]


@pytest.mark.parametrize("changes", WRONG)
def test_what_else_answers_at_an_endpoint_is_no_answer_of_its_member(changes: dict[str, str]) -> None:
    replies = BOTH | {endpoint(0): answer("old-0", LISTED, **changes)}
    state = join(DESIRED, replies, {})

    assert [member.answer is None for member in state.external] == [True, False]
    assert state.rejected == (
        ("id-old-0", external_answers.Rejection(why=f"another process answers at {endpoint(0)}")),
    )


def test_a_silent_external_member_is_listed_by_the_others() -> None:
    state = join(DESIRED, BOTH | {endpoint(1): Silence(seconds=3.0)}, {})

    assert [member.is_healthy for member in state.external] == [True, False]
    assert state.rejected == ()


def test_before_the_record_no_member_is_known_and_peer_urls_are_compared_with_ours() -> None:
    asked = offered(2).desired
    clash = answer("old-0", (replace(theirs(1)[0], peer_urls=("http://db-7:2380",)),))
    state = join(asked, {endpoint(0): clash}, {})

    assert (state.external, state.members) == ((), ())
    assert state.clashes == ("http://db-7:2380",)
    assert join(asked, BOTH, {}).clashes == ("http://db-0:2380",)
    assert join(DESIRED, BOTH, {}).clashes == ()


def test_members_are_probed_until_their_removal_begins() -> None:
    assert external_answers.endpoints(offered(2).desired) == (endpoint(0), endpoint(1))
    assert external_answers.endpoints(adopting(count=1, removed=1).desired) == (endpoint(0),)
    assert external_answers.endpoints(bootstrapped().desired) == ()


def test_after_the_end_nobody_is_probed_and_nobody_is_external() -> None:
    recorded = DESIRED.persisted.adoption
    assert recorded is not None
    ended = msgspec.structs.replace(recorded, finished=True)
    desired = replace(DESIRED, persisted=replace(DESIRED.persisted, adoption=ended))

    assert external_answers.endpoints(desired) == ()
    assert external_answers.recorded(desired) == ()


def test_endpoints_that_are_added_to_a_bootstrapped_cluster_are_not_probed() -> None:
    desired = replace(bootstrapped().desired, adopt=offered(1).desired.adopt)

    assert external_answers.endpoints(desired) == ()


def test_an_answer_counts_by_the_member_that_gave_it() -> None:
    found, rejected = external_answers.own_answers(DESIRED, BOTH, with_ours=True)

    assert rejected == {}
    assert set(found) == {"id-old-0", "id-old-1"}
    assert all(isinstance(each, Answer) for each in found.values())


BLANK = answer("old-0", theirs(1))
"""Of a member that was started again without its data: it has the same IDs, and is alone."""
BEHIND = "lags behind, or restarted without its data"
NONE_OF_OURS = (
    "lists no member of this resource: it restarted without its data, or the members of this resource were "
    "removed from etcd"
)


def recorded(kind: DesiredCluster, ours: int = 1, **changes: Any) -> DesiredCluster:
    """An adoption of one member."""
    desired = adopting(ours=ours, count=1, desired=replace(kind, adopt=offered(1).desired.adopt)).desired
    made = desired.persisted.adoption
    assert made is not None
    noted = replace(desired.persisted, adoption=msgspec.structs.replace(made, **changes))
    return replace(desired, persisted=noted)


def found(desired: DesiredCluster, replies: dict[str, Reply], theirs_: Answer = BLANK) -> ClusterState:
    """Ours have all of their objects, whatever they reply."""
    listed = (*theirs(1), *(entry(name) for name in replies))
    state = observed(
        desired,
        {name: replace(serving(desired, name, listed), entry=None, answer=None) for name in replies},
        replies,
        {},
        external={endpoint(0): theirs_},
        name_at=lambda url: url.removeprefix("http://").removesuffix(":2380") if "db-" in url else "",
    )
    proven = is_own_quorum(state)  # the member without data has proven one
    return replace(state, has_client_service=True, budget=2, age=3600.0, has_quorum=proven)


KINDS = pytest.mark.parametrize("kind", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])
MODES = pytest.mark.parametrize("mode", ["Join", "Complete", "Leave"])


def only_data(kind: DesiredCluster) -> list[dict[str, Reply]]:
    one, *more = (kind.member_name(number) for number in range(3))
    listed = (*theirs(1), entry(one))
    return [
        {one: answer(one, is_learner=True, leader="", committed=5000)},
        {one: Silence(seconds=2.0)},
        {one: answer(one, listed, leader="", committed=5000)},
        {name: Silence(seconds=2.0) for name in (one, *more)},
    ]


@KINDS
@MODES
@pytest.mark.parametrize("case", range(4), ids=["a learner", "silent", "no leader", "three silent"])
def test_our_copies_outlive_an_external_member_that_restarts_without_data(
    kind: DesiredCluster, mode: Any, case: int
) -> None:
    desired = recorded(kind)
    assert desired.adopt is not None
    desired = replace(desired, adopt=replace(desired.adopt, mode=mode))
    state = found(desired, only_data(kind)[case])
    made = plan(state)

    why = f"the member at {endpoint(0)} {NONE_OF_OURS}"
    assert state.rejected == (("id-old-0", external_answers.Rejection(why=why, may_be_right=True)),)
    assert not state.has_quorum
    assert (made.actions, made.reason) == ((), "QuorumLost")
    assert ("kubectl delete" in made.message) is (not state.answers)


def test_a_claim_alone_shows_that_ours_have_joined_if_it_is_this_clusters() -> None:
    desired = recorded(persistent())

    def joined(**changes: Any) -> bool:
        return external_answers.have_joined(desired, [Member(name="db-0", claim=claim("db-0", **changes))])

    assert joined(cluster_uid=desired.uid)
    assert joined(cluster_id=CLUSTER_ID)
    assert not joined(cluster_uid="somebody", cluster_id="else")
    assert not external_answers.have_joined(desired, [Member(name="db-0")])
    assert external_answers.have_joined(desired, [Member(name="db-0", has_service=True)])


def test_a_list_without_ours_counts_before_they_join_and_once_the_last_one_leaves() -> None:
    joining, leaving = recorded(persistent(), ours=0), recorded(persistent(), last_member_removed=True)

    assert found(joining, {}).rejected == ()
    assert found(leaving, {"db-0": Silence(seconds=2.0)}).rejected == ()
    behind = recorded(persistent(), last_member_removed=True, committed=BLANK.committed + 1)
    assert found(behind, {"db-0": Silence(seconds=2.0)}).rejected[0][1].why.endswith(BEHIND)


@pytest.mark.parametrize(
    ("kind", "what", "copies"),
    [
        (persistent(), "pvc,etcdpeer db-0 db-1", "keep the claims: they have the last copies"),
        (ephemeral(), "pod,service db-0000 db-0001", "keep the pods: they have the last copies"),
    ],
    ids=["persistent", "ephemeral"],
)
def test_how_to_go_on_where_others_have_removed_all_of_ours(
    kind: DesiredCluster, what: str, copies: str
) -> None:
    names = [kind.member_name(number) for number in range(2)]
    message = plan(found(recorded(kind), {name: Silence(seconds=2.0) for name in names})).message

    assert f"delete what is left, so that new members join: kubectl delete {what}; " in message
    assert copies in message


def test_one_external_member_that_lists_ours_shows_that_nobody_removed_them() -> None:
    desired = adopting(ours=1, count=3).desired
    listed = (*theirs(3), entry("db-0"))
    replies: dict[str, Reply] = {
        endpoint(0): BLANK,
        endpoint(1): answer("old-1", listed, leader=""),
        endpoint(2): Silence(seconds=2.0),
    }
    state = join(desired, replies, {"db-0": Silence(seconds=2.0)})
    state = replace(state, has_client_service=True, budget=2)

    assert plan(state).reason == "QuorumLost"
    assert "kubectl delete" not in plan(state).message


def test_a_quorum_is_not_taken_from_a_member_without_data_but_from_the_others() -> None:
    names = ("db-0", "db-1", "db-2")
    listed = (*theirs(1), *map(entry, names))
    desired = recorded(persistent(), ours=3)
    replies: dict[str, Reply] = {name: answer(name, listed, leader="id-db-0") for name in names}

    assert found(desired, replies).has_quorum
    assert not found(desired, replies | {"db-1": answer("db-1", listed, leader="id-db-1")}).has_quorum
    assert not found(desired, replies | {"db-1": Silence(seconds=1.0)}).has_quorum
