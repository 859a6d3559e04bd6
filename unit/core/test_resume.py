"""A persistent cluster made again on the claims of an earlier one; sealing."""

from dataclasses import replace

import pytest

from etcd_operator.api.record import Bootstrap
from etcd_operator.core.actions import CreateMember, Founding, Remember, SealMember, Stage
from etcd_operator.core.desired import Record
from etcd_operator.core.members import ClaimFacts, Member
from etcd_operator.core.plan import plan
from etcd_operator.core.rules.bootstrap import seal
from etcd_operator.core.state import ClusterState
from unit.core.builders import (
    CLUSTER_ID,
    TOKEN,
    answer,
    born,
    changed,
    claim,
    ephemeral,
    founding,
    old_claim,
    peer,
    persistent,
    unborn,
)

NAMES = ("db-0", "db-1", "db-2")


def on_claims(*claims: ClaimFacts, size: int = 3) -> ClusterState:
    """A new resource that finds these claims."""
    cluster = persistent(uid="uid-2", size=size)
    return unborn(cluster, members=tuple(Member(name=found.name, claim=found) for found in claims))


@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_cluster_that_was_born_resumes_on_its_claims_whatever_size_is_asked(size: int) -> None:
    made = plan(on_claims(*(old_claim(name) for name in NAMES), size=size))

    record = Record(bootstrap=Bootstrap(members=NAMES, token=TOKEN), cluster_id=CLUSTER_ID)
    assert made.actions == (Remember(record=record),)
    assert (made.reason, made.stage) == ("Resuming", Stage.WORKING)
    assert made.message == "resuming on the data of db-0, db-1, db-2"


def test_a_birth_that_was_never_finished_goes_on_with_its_own_founders_and_token() -> None:
    made = plan(on_claims(claim("db-0"), claim("db-1"), claim("db-2"), size=5))

    start = Founding(founders=NAMES, token=TOKEN)
    assert made.actions == (
        Remember(record=Record(bootstrap=Bootstrap(members=NAMES, token=TOKEN), next_ordinal=3)),
        *(CreateMember(name=name, start=start) for name in NAMES),
    )


@pytest.mark.parametrize(
    ("started", "made"),
    [
        pytest.param({"db-0": False}, NAMES, id="nothing that is left has ever run"),
        pytest.param({"db-0": False, "db-2": False}, NAMES, id="nor of two"),
        pytest.param({"db-0": True, "db-2": False}, ("db-0", "db-2"), id="the lost one may have data"),
        pytest.param({"db-0": True, "db-2": True}, ("db-0", "db-2"), id="a quorum is left"),
        pytest.param({"db-0": None, "db-1": None, "db-2": None}, NAMES, id="all are there"),
    ],
)
def test_a_bootstrap_that_lost_claims_goes_on_with_what_may_be_used(
    started: dict[str, bool | None], made: tuple[str, ...]
) -> None:
    plan_made = plan(on_claims(*(claim(name, is_started=is_on) for name, is_on in started.items())))

    remembered, *created = plan_made.actions
    assert isinstance(remembered, Remember)
    assert remembered.record.bootstrap == Bootstrap(members=NAMES, token=TOKEN)
    start = Founding(founders=NAMES, token=TOKEN)
    assert created == [CreateMember(name=name, start=start) for name in made]


@pytest.mark.parametrize(
    "started",
    [
        pytest.param({"db-0": True}, id="too few that have run"),
        pytest.param({"db-0": None, "db-1": None}, id="claims that do not say whether they were started"),
        pytest.param({"db-0": None, "db-1": False}, id="one that does not say"),
    ],
)
def test_a_bootstrap_that_may_have_lost_data_is_not_begun_again(started: dict[str, bool | None]) -> None:
    made = plan(on_claims(*(claim(name, is_started=is_on) for name, is_on in started.items())))

    assert (made.actions, made.reason) == ((), "ClaimsMissing")


def test_one_marked_claim_is_enough_to_know_that_the_cluster_was_born() -> None:
    made = plan(on_claims(old_claim("db-0"), claim("db-1"), claim("db-2")))

    assert made.reason == "Resuming"


def test_the_founders_are_read_from_any_claim_that_names_them() -> None:
    made = plan(on_claims(old_claim("db-0", founders=()), old_claim("db-1")))

    (remembered,) = made.actions
    assert isinstance(remembered, Remember)
    assert remembered.record.bootstrap == Bootstrap(members=NAMES, token=TOKEN)


CONFLICTS = [
    pytest.param((old_claim("db-0"), old_claim("db-1", cluster_id="feed")), id="two cluster IDs"),
    pytest.param((claim("db-0"), claim("db-1", token="other")), id="two births"),
    pytest.param((claim("db-0", token=""),), id="no birth written on it"),
    pytest.param((claim("db-0"), claim("db-1", token="")), id="one of them is not ours"),
]


@pytest.mark.parametrize("claims", CONFLICTS)
def test_claims_of_different_origin_are_not_touched(claims: tuple[ClaimFacts, ...]) -> None:
    made = plan(on_claims(*claims))

    assert made.actions == ()
    assert (made.reason, made.stage, made.requeue_after) == ("ClaimsConflict", Stage.HELD, 10.0)
    assert all(found.name in made.message for found in claims)


@pytest.mark.parametrize(
    ("left", "size", "resumes"),
    [(1, 1, True), (1, 2, False), (1, 3, False), (2, 3, True), (2, 4, False), (2, 5, False), (3, 5, True)],
)
def test_old_claims_resume_only_with_a_quorum_of_what_they_were(left: int, size: int, resumes: bool) -> None:
    made = plan(on_claims(*(old_claim(f"db-{i}", size=size) for i in range(left))))

    assert made.reason == ("Resuming" if resumes else "ClaimsMissing")
    assert bool(made.actions) is resumes
    assert made.requeue_after == (None if resumes else 10.0)
    assert (made.stage is Stage.HELD) is not resumes


def test_the_largest_size_written_on_the_claims_counts() -> None:
    made = plan(on_claims(old_claim("db-0", size=1), old_claim("db-1", size=5)))

    assert made.reason == "ClaimsMissing"
    assert "db-0, db-1 of a cluster of 5" in made.message


@pytest.mark.parametrize("claims", [(old_claim("db-0"),), (old_claim("db-0"), claim("db-1", token="other"))])
def test_claims_that_are_being_deleted_are_waited_for(claims: tuple[ClaimFacts, ...]) -> None:
    going = (*claims[:-1], replace(claims[-1], is_terminating=True))
    made = plan(on_claims(*going))

    assert (made.actions, made.reason, made.stage) == ((), "ClaimTerminating", Stage.HELD)
    assert made.requeue_after == 1.0


# Sealing


def _unsealed(*names: str) -> ClusterState:
    state = born()
    for name in names:
        state = changed(state, name, peer=peer(name), claim=claim(name))
    return state


def test_members_that_answer_are_sealed_after_the_latch() -> None:
    made = plan(_unsealed("db-0", "db-2"))

    assert made.actions == tuple(
        SealMember(name=name, cluster_id=CLUSTER_ID, member_id=f"id-{name}", cluster_size=3)
        for name in ("db-0", "db-2")
    )
    assert (made.reason, made.stage) == ("Sealing", Stage.WORKING)


def test_a_member_that_never_answered_is_not_sealed() -> None:
    made = seal(changed(_unsealed("db-0", "db-1"), "db-0", answer=None))

    assert made is not None
    assert [action.name for action in made.actions if isinstance(action, SealMember)] == ["db-1"]


def test_a_peer_that_was_made_again_before_its_claim_was_marked_has_it_marked() -> None:
    made = seal(changed(born(), "db-1", claim=claim("db-1")))

    assert made is not None
    assert [action.name for action in made.actions if isinstance(action, SealMember)] == ["db-1"]


NO_SEAL = [
    pytest.param(changed(born(), "db-0", claim=None), id="there is no claim to mark"),
    pytest.param(born(), id="all are sealed"),
    pytest.param(changed(born(), "db-0", peer=None), id="a member without a peer cannot be sealed"),
    pytest.param(changed(_unsealed("db-0"), "db-0", answer=None), id="the unsealed one is silent"),
    pytest.param(born(ephemeral()), id="ephemeral members have nothing to seal"),
    pytest.param(
        changed(born(ephemeral()), "db-0000", peer=peer("db-0000")), id="nor with a peer of that name"
    ),
    pytest.param(changed(founding(persistent()), "db-0", answer=answer("db-0")), id="before the latch"),
]


@pytest.mark.parametrize("state", NO_SEAL)
def test_nothing_is_sealed(state: ClusterState) -> None:
    assert seal(state) is None
