"""A persistent resource that is created again during an adoption: what it finds, records and reports."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.persisted import Adoption, Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import RecreatePod, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.adoption import external_answers
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.observation import is_own_quorum, observed
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.replies import Reply, Silence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.adoption.adoptions import endpoint, offered, theirs
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    NAMES,
    TOKEN,
    answer,
    bootstrapped,
    changed,
    entry,
    first_recovery,
    not_bootstrapped,
    old_claim,
    persistent,
    pod,
    serving,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery import manual_recoveries as persistents
from unit.controllers.etcd_cluster.decide.recovery.automatics import listing

UNCLEAR = PersistedState(
    bootstrap=Bootstrap(members=(), token=TOKEN), cluster_id=CLUSTER_ID, adoption=Adoption(members=())
)
SILENT = Silence(seconds=3.0)


def resumed(
    *,
    ours: int = 1,
    left: int = 3,
    replies: dict[int, Reply] | None = None,
    silent: tuple[str, ...] = (),
    quorum: bool = True,
    also: tuple[EtcdMember, ...] = (),
    **changes: Any,
) -> ClusterState:
    """Ours run again on their claims; of three external members the last ones may have been removed.

    replies: by the number of an external member. silent: of ours. also: what etcd lists, too.
    """
    desired = replace(offered(3).desired, persisted=UNCLEAR, **changes)
    names = NAMES[:ours]
    listed = (*theirs(left), *also, *map(entry, names))
    answering = {n: answer(f"old-{n}", listed) if n < left else SILENT for n in range(3)} | (replies or {})
    found = observed(
        desired,
        {name: replace(serving(desired, name, listed), entry=None, answer=None) for name in names},
        {name: SILENT if name in silent else answer(name, listed) for name in names},
        {},
        external={endpoint(n): reply for n, reply in answering.items()},
        name_at=lambda url: url.removeprefix("http://").removesuffix(":2380") if "db-" in url else "",
    )
    state = replace(found, has_client_service=True, budget=2, age=3600.0)
    return replace(state, has_quorum=quorum and is_own_quorum(state))


def recorded(state: ClusterState) -> Adoption | None:
    """What the only action of the plan records."""
    (remember,) = plan(state).actions
    assert isinstance(remember, Remember)
    return remember.persisted.adoption


def test_on_claims_an_adoption_is_neither_forgotten_nor_begun_again() -> None:
    offer = offered(cluster=persistent(uid="uid-2"))
    claims = tuple(Member(name=n, claim=old_claim(n, initial_members=(), size=0)) for n in NAMES)
    (remember,) = plan(replace(offer, members=claims)).actions

    assert remember == Remember(persisted=UNCLEAR)


def test_claims_that_name_more_voters_than_are_left_wait_for_no_person_during_an_adoption() -> None:
    """The external members may be a quorum without those."""
    claims = (Member(name="db-2", claim=old_claim("db-2", initial_members=())),)
    assert plan(replace(offered(), members=claims)).reason == "Resuming"
    assert plan(not_bootstrapped(persistent(), members=claims)).reason == "ClaimsMissing"


@pytest.mark.parametrize("ours", [1, 2, 3])
def test_external_members_that_are_left_are_recorded_again(ours: int) -> None:
    made = recorded(resumed(ours=ours))

    assert made is not None
    assert [(m.id, m.endpoint, m.peer_urls, m.removed) for m in made.members] == [
        (f"id-old-{n}", endpoint(n), (f"http://old-{n}.there:2380",), False) for n in range(3)
    ]
    assert (made.committed, made.finished) == (20, False)


def test_one_that_was_removed_before_is_recorded_so_that_nobody_turns_back() -> None:
    state = resumed(ours=3, left=2)
    made = recorded(state)

    assert made is not None
    assert [(m.id, m.endpoint) for m in made.members if m.removed] == [("", endpoint(2))]
    leaving = with_record(resumed(ours=3, left=2), adoption=made)
    assert leaving.desired.adopt is not None
    leave = replace(leaving.desired, adopt=replace(leaving.desired.adopt, mode="Leave"))
    assert plan(replace(leaving, desired=leave)).reason == "TooLateToLeave"


def test_where_a_learner_is_all_that_joined_the_external_members_report_it() -> None:
    listed = (*theirs(3), entry("db-0", is_learner=True))
    replies: dict[int, Reply] = {n: answer(f"old-{n}", listed) for n in range(3)}
    state = resumed(replies=replies)
    learner = observed(
        state.desired,
        {"db-0": replace(state.by_name["db-0"], entry=None, answer=None)},
        {"db-0": answer("db-0", is_learner=True)},
        {},
        external={endpoint(n): reply for n, reply in replies.items()},
        name_at=lambda _: "db-0",
    )
    state = replace(learner, has_client_service=True, has_quorum=True)
    assert (state.voters, len(state.external)) == ((), 3)
    assert recorded(state) is not None


def test_an_adoption_that_had_ended_is_recorded_as_such() -> None:
    assert recorded(resumed(ours=3, left=0)) == Adoption(members=(), finished=True)


def test_the_end_of_an_adoption_is_not_concluded_from_another_cluster_at_the_endpoints() -> None:
    """The claims are of a cluster that never adopted anything; the one at the endpoints is to be adopted."""
    other = answer("new", theirs(1), cluster_id="other")
    made = plan(resumed(ours=3, left=0, replies={1: other}))

    assert (made.actions, made.reason) == ((), "AdoptionUnclear")


BLANK = answer("old-0", theirs(1))
"""Of a member that runs again without its data: it has the same IDs, and is alone."""


def test_a_member_that_runs_again_without_its_data_proves_nothing() -> None:
    """Nothing of ours answers, and it proves a quorum by itself."""
    state = resumed(silent=("db-0",), replies={0: BLANK, 1: SILENT, 2: SILENT})
    made = plan(state)

    assert not state.has_quorum
    assert state.external == ()
    assert (made.actions, made.reason) == ((), "AdoptionUnclear")


def test_a_removed_member_that_runs_again_does_not_keep_the_adoption_from_ending() -> None:
    listed = tuple(map(entry, NAMES))
    state = resumed(ours=3, left=0, replies={0: BLANK})

    assert {m.answer.leader for m in state.voters if m.answer} == {listed[0].id}
    assert recorded(state) == Adoption(members=(), finished=True)


def test_a_listed_member_that_runs_again_without_its_data_is_not_recorded() -> None:
    made = plan(resumed(ours=3, replies={0: BLANK}))

    assert (made.actions, made.reason) == ((), "AdoptionUnclear")


def test_another_cluster_at_an_endpoint_is_not_believed() -> None:
    other = answer("new", theirs(1), cluster_id="other")
    state = resumed(ours=3, left=2, replies={2: other})

    why = f"a member of another cluster answers at {endpoint(2)}"
    assert state.rejected == (("id-new", external_answers.Rejection(why=why)),)
    made = recorded(state)
    assert made is not None
    assert [m.endpoint for m in made.members if not m.removed] == [endpoint(0), endpoint(1)]
    alone = plan(resumed(silent=("db-0",), replies={0: other, 1: SILENT, 2: SILENT}))
    assert "last copies" not in alone.message
    assert "restart the missing members with their data" in alone.message


def test_an_external_member_that_is_silent_is_waited_for() -> None:
    made = plan(resumed(ours=2, replies={1: SILENT}))

    assert (made.actions, made.reason) == ((), "AdoptionUnclear")


def test_without_a_quorum_nobody_is_asked_to_remove_a_member() -> None:
    made = plan(resumed(ours=1, quorum=False, replies={1: SILENT, 2: SILENT}))

    assert (made.actions, made.reason) == ((), "AdoptionUnclear")
    assert "etcdctl member remove" not in made.message


def test_a_quorum_that_follows_several_leaders_is_not_believed() -> None:
    listed = (*theirs(3), entry("db-0"))
    replies: dict[int, Reply] = {n: answer(f"old-{n}", listed, leader=f"id-old-{n}") for n in range(3)}
    made = plan(resumed(replies=replies))

    assert (made.actions, made.reason) == ((), "AdoptionUnclear")
    assert "had ended before" not in made.message


def test_a_member_of_ours_that_is_down_is_named_and_its_missing_volume_is_tried_again() -> None:
    state = resumed(ours=3, left=0, silent=NAMES, quorum=False)
    assert "db-0 does not answer" in plan(state).message
    empty = pod("db-0", is_running=False, has_no_data=True, restarts=3, is_existing_only=True)
    assert plan(changed(state, "db-0", pod=empty)).actions == (RecreatePod(name="db-0"),)


def test_an_endpoint_that_leads_to_the_member_of_another_one_is_refused() -> None:
    listed = (*theirs(2), entry("db-0"))
    made = plan(resumed(left=2, replies={2: answer("old-1", listed)}))

    assert (made.actions, made.reason) == ((), "AdoptionUnclear")


def test_an_external_member_with_a_name_like_ours_is_not_taken_for_ours() -> None:
    """It is silent: nothing but its peer URL shows whose it is."""
    same = EtcdMember(id="id-x", name="db-1", peer_urls=("http://old-9.there:2380",))
    state = resumed(left=2, also=(same,))

    assert state.unknown_members == (same,)
    assert plan(state).reason == "AdoptionUnclear"


def test_the_endpoints_are_asked_until_the_external_members_are_known() -> None:
    assert external_answers.endpoints(resumed().desired) == tuple(map(endpoint, range(3)))


def test_without_spec_adopt_a_person_is_asked_to_put_it_back() -> None:
    state = resumed(ours=2, adopt=None)
    assert external_answers.endpoints(state.desired) == ()
    assert recorded(state) is None

    forgotten = with_record(
        resumed(ours=2, adopt=None, replies=dict.fromkeys(range(3), SILENT)), adoption=None
    )
    assert plan(forgotten).reason == "UnknownMember"
    assert "set spec.adopt again" in plan(forgotten).message
    asked = replace(forgotten.desired, adopt=offered(3).desired.adopt)
    assert recorded(replace(forgotten, desired=asked)) == Adoption(members=())


def test_external_members_are_asked_for_where_nobody_lists_them_without_a_quorum() -> None:
    """A survivor that answers nobody, and is read, lists them: no recovery is considered any more."""
    lost = with_record(persistents.lost(), bootstrap=Bootstrap(members=(), token=TOKEN))
    asked = replace(lost, desired=replace(lost.desired, adopt=offered(3).desired.adopt))
    assert recorded(asked) == Adoption(members=())
    assert plan(with_record(asked, adoption=Adoption(members=()))).reason == "AdoptionUnclear"
    ours = replace(persistents.lost(), desired=replace(persistents.lost().desired, adopt=asked.desired.adopt))
    assert plan(ours).reason == "QuorumLost"


def test_who_else_votes_is_named_where_a_recovery_is_offered() -> None:
    state = listing(persistents.lost(), "old-0")
    resumed_on_claims = with_record(state, bootstrap=Bootstrap(members=(), token=TOKEN))
    back = "if this resource was created again during an adoption, set spec.adopt again instead"

    assert "db-1 (silent), old-0 (not a member of this resource): no quorum" in plan(state).message
    assert back not in plan(state).message
    assert back in plan(resumed_on_claims).message


def test_where_the_api_server_refuses_spec_adopt_nobody_is_asked_to_put_it_back() -> None:
    forgotten = with_record(
        resumed(ours=2, adopt=None, replies=dict.fromkeys(range(3), SILENT)), adoption=None
    )
    bootstrap = Bootstrap(members=("db-0",), token=TOKEN)
    for record in ({"bootstrap": bootstrap}, {"bootstrap": None}, {"recovery": first_recovery("db-3")}):
        made = plan(with_record(forgotten, **record))
        assert made.reason == "UnknownMember"
        assert "set spec.adopt again" not in made.message


def test_spec_adopt_without_effect_is_reported() -> None:
    state = with_record(bootstrapped(), bootstrap=Bootstrap(members=(), token=TOKEN))
    asked = replace(state, desired=replace(state.desired, adopt=offered().desired.adopt))

    assert (plan(asked).actions, plan(asked).reason) == ((), "AdoptionRefused")
    assert plan(state).stage is Stage.SETTLED
    assert plan(with_record(asked, adoption=Adoption(members=(), finished=True))).stage is Stage.SETTLED


def test_spec_adopt_of_a_cluster_that_adopts_nothing_changes_nothing() -> None:
    state = with_record(resumed(ours=3, left=0), adoption=None)
    assert not any(isinstance(action, Remember) for action in plan(state).actions)
    unknown = (EtcdMember(id="id-x", name="x", peer_urls=("http://x:2380",)),)
    not_annotated = changed(state, "db-0", claim=None)
    for name in NAMES[1:]:
        not_annotated = changed(not_annotated, name, claim=None)
    assert plan(replace(not_annotated, unknown_members=unknown)).reason == "UnknownMember"
