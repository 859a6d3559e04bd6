"""Which answers of external members count, and which endpoints are probed."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.core import adoption
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.members import Member
from etcd_operator.core.observation import observed
from etcd_operator.core.replies import Answer, Reply, Silence
from etcd_operator.core.state import ClusterState
from unit.core.adoptions import adopting, endpoint, offered, theirs
from unit.core.builders import answer, bootstrapped, entry, pod

LISTED = (*theirs(2), entry("db-0"))


def join(desired: DesiredCluster, external: dict[str, Reply], ours: dict[str, Reply]) -> ClusterState:
    return observed(
        desired,
        {name: Member(name=name, pod=pod(name)) for name in ours},
        ours,
        {},
        external=external,
        url_of=lambda name: f"http://{name}:2380",
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


WRONG = [
    pytest.param({"cluster_id": "other"}, id="another cluster"),
    pytest.param({"member_id": "id-old-1"}, id="another member"),
]


@pytest.mark.parametrize("changes", WRONG)
def test_what_else_answers_at_an_endpoint_is_no_answer_of_its_member(changes: dict[str, str]) -> None:
    replies = BOTH | {endpoint(0): answer("old-0", LISTED, **changes)}
    state = join(DESIRED, replies, {})

    assert [member.answer is None for member in state.external] == [True, False]
    assert adoption.conflicting_endpoints(DESIRED, replies) == (endpoint(0),)


def test_a_silent_external_member_is_listed_by_the_others() -> None:
    state = join(DESIRED, BOTH | {endpoint(1): Silence(seconds=3.0)}, {})

    assert [member.is_healthy for member in state.external] == [True, False]
    assert adoption.conflicting_endpoints(DESIRED, dict(state.endpoints)) == ()


def test_before_the_record_no_member_is_known_and_peer_urls_are_compared_with_ours() -> None:
    asked = offered(2).desired
    clash = answer("old-0", (replace(theirs(1)[0], peer_urls=("http://db-7:2380",)),))
    state = join(asked, {endpoint(0): clash}, {})

    assert (state.external, state.members) == ((), ())
    assert state.clashes == ("http://db-7:2380",)
    assert join(asked, BOTH, {}).clashes == ("http://db-0:2380",)
    assert join(DESIRED, BOTH, {}).clashes == ()


def test_members_are_probed_until_their_removal_begins() -> None:
    assert adoption.endpoints(offered(2).desired) == (endpoint(0), endpoint(1))
    assert adoption.endpoints(adopting(count=1, removed=1).desired) == (endpoint(0),)
    assert adoption.endpoints(bootstrapped().desired) == ()


def test_after_the_end_nobody_is_probed_and_nobody_is_external() -> None:
    recorded = DESIRED.persisted.adoption
    assert recorded is not None
    ended = msgspec.structs.replace(recorded, finished=True)
    desired = replace(DESIRED, persisted=replace(DESIRED.persisted, adoption=ended))

    assert adoption.endpoints(desired) == ()
    assert adoption.recorded(desired) == ()


def test_endpoints_that_are_added_to_a_bootstrapped_cluster_are_not_probed() -> None:
    desired = replace(bootstrapped().desired, adopt=offered(1).desired.adopt)

    assert adoption.endpoints(desired) == ()


def test_an_answer_counts_by_the_member_that_gave_it() -> None:
    found = adoption.own_answers(DESIRED, BOTH)

    assert set(found) == {"id-old-0", "id-old-1"}
    assert all(isinstance(each, Answer) for each in found.values())
