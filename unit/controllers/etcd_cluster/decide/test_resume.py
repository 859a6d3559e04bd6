"""A persistent cluster made again on the claims of an earlier one; existing-only starts."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMember, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    NAMES,
    TOKEN,
    claim,
    not_bootstrapped,
    old_claim,
    persistent,
    voting,
)


def on_claims(*claims: ClaimFacts, size: int = 3) -> ClusterState:
    """A new resource that finds these claims."""
    cluster = persistent(uid="uid-2", size=size)
    return not_bootstrapped(cluster, members=tuple(Member(name=found.name, claim=found) for found in claims))


@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_cluster_that_was_bootstrapped_resumes_on_its_claims_whatever_size_is_asked(size: int) -> None:
    made = plan(on_claims(*(old_claim(name) for name in NAMES), size=size))

    persisted = PersistedState(bootstrap=Bootstrap(members=NAMES, token=TOKEN), cluster_id=CLUSTER_ID)
    assert made.actions == (Remember(persisted=persisted),)
    assert (made.reason, made.stage) == ("Resuming", Stage.WORKING)


def test_a_bootstrap_that_was_never_finished_goes_on_with_its_own_initial_members_and_token() -> None:
    made = plan(on_claims(claim("db-0"), claim("db-1"), claim("db-2"), size=5))

    start = Bootstrapping(members=NAMES, token=TOKEN)
    assert made.actions == (
        Remember(persisted=PersistedState(bootstrap=Bootstrap(members=NAMES, token=TOKEN), next_ordinal=3)),
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
    assert remembered.persisted.bootstrap == Bootstrap(members=NAMES, token=TOKEN)
    start = Bootstrapping(members=NAMES, token=TOKEN)
    assert created == [CreateMember(name=name, start=start) for name in made]


@pytest.mark.parametrize(
    "started",
    [
        pytest.param({"db-0": True}, id="too few that have run"),
        pytest.param({"db-0": None, "db-1": None}, id="claims that do not record whether they were started"),
        pytest.param({"db-0": None, "db-1": False}, id="one that does not record it"),
    ],
)
def test_a_bootstrap_that_may_have_lost_data_is_not_begun_again(started: dict[str, bool | None]) -> None:
    made = plan(on_claims(*(claim(name, is_started=is_on) for name, is_on in started.items())))

    assert (made.actions, made.reason) == ((), "ClaimsMissing")


def test_a_claim_that_does_not_name_its_initial_members_begins_nothing() -> None:
    """Left over from a member that joined and never answered: nobody knows of what cluster."""
    made = plan(on_claims(claim("db-3", cluster_uid="former", initial_members=())))

    assert (made.actions, made.reason, made.requeue_after) == ((), "ClaimsConflict", 10.0)


def test_claims_that_a_person_handed_over_are_never_given_out_for_deletion() -> None:
    """Annotated with a token, and the pods were gone: the names of the members are still to be annotated."""
    made = plan(on_claims(*(claim(name, initial_members=()) for name in NAMES)))

    assert (made.actions, made.reason, made.requeue_after) == ((), "OtherOperator", 10.0)
    assert "delete" not in made.message
    restored = plan(on_claims(claim("db-0", initial_members=(), is_restored=True)))
    assert restored.reason == "ClaimsConflict"


@pytest.mark.parametrize("voters", [("garbage",), ("db-0=id-db-0", ""), ("=",)])
def test_voters_that_somebody_edited_on_a_claim_stop_no_pass(voters: tuple[str, ...]) -> None:
    made = plan(on_claims(*(old_claim(name, voters=voters, voters_revision=3) for name in NAMES)))

    assert made.reason == "Resuming"


KEPT = old_claim("db-1", cluster_id="given up", given_up_by="a recovery")


def test_claims_that_were_given_up_are_neither_used_nor_counted() -> None:
    voters = ("db-3=id-db-3", "db-4=id-db-4", "db-5=id-db-5")
    found = on_claims(*(old_claim(f"db-{n}", voters=voters) for n in (3, 4, 5)))

    made = plan(replace(found, kept_claims=(KEPT,)))
    assert "db-3, db-4, db-5, not on claims that were given up: db-1" in made.message
    assert isinstance(made.actions[0], Remember)


def test_a_cluster_that_was_restored_does_not_begin_empty() -> None:
    state = not_bootstrapped(persistent(restored_by="back"), kept_claims=(KEPT,))
    made = plan(state)
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "RestoredDataMissing")
    resumed = on_claims(*(old_claim(name) for name in NAMES))
    resumed = replace(resumed, desired=replace(resumed.desired, restored_by="back"))
    assert plan(resumed).reason == "Resuming"


def test_a_new_cluster_does_not_start_on_what_an_earlier_one_gave_up() -> None:
    made = plan(not_bootstrapped(persistent(), kept_claims=(KEPT,)))
    assert (made.actions, made.reason, made.requeue_after) == ((), "ClaimInTheWay", 10.0)

    assert plan(not_bootstrapped(persistent(size=1), kept_claims=(KEPT,))).reason == "Creating"


def test_one_annotated_claim_is_enough_to_know_that_the_cluster_was_bootstrapped() -> None:
    made = plan(on_claims(old_claim("db-0"), claim("db-1"), claim("db-2")))

    assert made.reason == "Resuming"


def test_the_initial_members_are_read_from_any_claim_that_names_them() -> None:
    made = plan(on_claims(old_claim("db-0", initial_members=()), old_claim("db-1")))

    (remembered,) = made.actions
    assert isinstance(remembered, Remember)
    assert remembered.persisted.bootstrap == Bootstrap(members=NAMES, token=TOKEN)


SEED = claim("db-3", token=f"{TOKEN}-1", initial_members=(), cluster_uid=TOKEN, is_restored=True)
SERVED = replace(SEED, cluster_id="feed", member_id="id-db-3", voters=("db-3=id-db-3",), voters_revision=1)
OLD = tuple(old_claim(name) for name in NAMES)


def test_the_claim_of_a_restore_that_had_not_ended_is_named() -> None:
    """The EtcdCluster was deleted meanwhile, and its status with it."""
    made = plan(on_claims(*OLD, SEED))
    assert (made.actions, made.reason, made.requeue_after) == ((), "ClaimsConflict", 10.0)
    assert "; db-3 was created by a recovery or a restore in place that had not ended" in made.message
    assert plan(on_claims(*OLD)).reason == "Resuming"


def test_a_person_chooses_between_what_served_before_and_what_was_restored() -> None:
    kept = (claim("db-0", given_up_by=f"{CLUSTER_ID}/one/1"), claim("db-7", given_up_by="beef/one/1"))
    conflict = replace(on_claims(old_claim("db-2"), SERVED), kept_claims=kept)
    message = plan(conflict).message
    assert f"(db-2 of the etcd cluster {CLUSTER_ID}; db-3 of the etcd cluster feed)" in message
    assert message.endswith(
        "to continue with the other claims, remove the annotation etcd.improbable.io/given-up-by from db-0, "
        "then delete the claim db-3; to continue with the restored data, delete the claim db-2, with the "
        "data from before the restore"
    )
    assert "given-up" not in plan(on_claims(*OLD, SERVED)).message
    assert "restored data, delete the claims db-0, db-1, db-2" in plan(on_claims(*OLD, SERVED)).message
    assert plan(on_claims(SERVED)).reason == "Resuming"


def test_claims_of_a_cluster_that_was_restored_before_are_not_taken_for_the_attempt() -> None:
    """It has one member, the former seed, and there is another one."""
    again = replace(SEED, name="db-4", token=f"{TOKEN}-2")
    assert "other claims, delete the claim db-4" in plan(on_claims(SERVED, again)).message
    joined = replace(SERVED, name="db-5", is_restored=False)
    assert "delete the claims that do not belong" in plan(on_claims(*OLD, SERVED, joined)).message


def test_claims_that_do_not_record_their_cluster_yet_are_those_of_their_bootstrap() -> None:
    made = plan(on_claims(old_claim("db-0"), claim("db-1"), SEED))
    assert f"(db-0, db-1 of the etcd cluster {CLUSTER_ID}; db-3 of" in made.message


CONFLICTS = [
    pytest.param((old_claim("db-0"), old_claim("db-1", cluster_id="feed")), id="two cluster IDs"),
    pytest.param((claim("db-0"), claim("db-1", token="other")), id="two bootstraps"),
]


@pytest.mark.parametrize("claims", CONFLICTS)
def test_claims_of_different_origin_are_not_touched(claims: tuple[ClaimFacts, ...]) -> None:
    made = plan(on_claims(*claims))

    assert made.actions == ()
    assert (made.reason, made.stage, made.requeue_after) == ("ClaimsConflict", Stage.HELD, 10.0)
    assert all(found.name in made.message for found in claims)


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param((claim("db-0", token=""),), id="it alone"),
        pytest.param((claim("db-0", token=""), claim("db-1")), id="beside one of ours"),
    ],
)
def test_a_claim_of_another_operator_is_kept_and_named(claims: tuple[ClaimFacts, ...]) -> None:
    made = plan(on_claims(*claims))

    assert made.actions == ()
    assert (made.reason, made.stage, made.requeue_after) == ("OtherOperator", Stage.HELD, 10.0)
    assert made.message.startswith("the claims db-0 were not created by this operator")
    assert "delete" not in made.message


@pytest.mark.parametrize(
    ("left", "size", "resumes"),
    [(1, 1, True), (1, 2, True), (1, 3, False), (2, 3, True), (2, 4, True), (2, 5, False), (3, 5, True)],
)
def test_old_claims_resume_unless_a_quorum_is_missing_for_sure(left: int, size: int, resumes: bool) -> None:
    """Of an even number half may be a quorum: one of the others may have been removed since."""
    made = plan(on_claims(*(old_claim(f"db-{i}", size=size) for i in range(left))))

    assert made.reason == ("Resuming" if resumes else "ClaimsMissing")
    assert bool(made.actions) is resumes
    assert made.requeue_after == (None if resumes else 10.0)
    assert (made.stage is Stage.HELD) is not resumes


NOTED = [
    pytest.param({0: ((0, 1, 2), 7), 1: ((0, 1, 2), 7)}, True, id="shrunk from 5 to 3"),
    pytest.param({0: ((0, 1, 2), 7), 3: ((0, 1, 2, 3, 4), 6)}, False, id="one of those was removed"),
    pytest.param({0: ((0, 1, 2, 3, 4), 9), 1: ((0, 1, 2, 3, 4), 9)}, False, id="grown from 3 to 5"),
    pytest.param({0: ((0, 1, 2), 7), 1: ((0, 1, 2, 3, 4), 6)}, True, id="the newer one counts"),
    pytest.param({0: ((0, 1, 2), 6), 1: ((0, 1, 2, 3, 4), 7)}, False, id="also if it is larger"),
]


@pytest.mark.parametrize(("left", "resumes"), NOTED)
def test_the_voters_that_were_written_last_decide(
    left: dict[int, tuple[tuple[int, ...], int]], resumes: bool
) -> None:
    claims = [
        old_claim(f"db-{number}", voters=voting(*voters), voters_revision=revision)
        for number, (voters, revision) in left.items()
    ]
    made = plan(on_claims(*claims, size=5))

    assert made.reason == ("Resuming" if resumes else "ClaimsMissing")


def test_a_claim_of_an_earlier_member_of_that_name_is_none_of_a_voter() -> None:
    former = old_claim("db-1", member_id="former")

    assert plan(on_claims(old_claim("db-0"), former)).reason == "ClaimsMissing"
    assert plan(on_claims(old_claim("db-0"), replace(former, member_id=""))).reason == "Resuming"


def test_claims_of_earlier_versions_that_do_not_record_the_voters_resume() -> None:
    made = plan(on_claims(old_claim("db-1", voters=(), voters_revision=0)))

    assert made.reason == "Resuming"


def test_who_is_missing_is_reported_before_anybody_deletes_what_is_left() -> None:
    made = plan(on_claims(old_claim("db-1", size=5), old_claim("db-4", size=5)))

    assert "of a cluster of db-0, db-1, db-2, db-3, db-4 only db-1, db-4 are left" in made.message
    assert "instead, delete the claims" in made.message
    others = plan(on_claims(old_claim("db-7", size=3)))
    assert "only none are left" in others.message


@pytest.mark.parametrize("claims", [(old_claim("db-0"),), (old_claim("db-0"), claim("db-1", token="other"))])
def test_claims_that_are_being_deleted_are_waited_for(claims: tuple[ClaimFacts, ...]) -> None:
    going = (*claims[:-1], replace(claims[-1], is_terminating=True))
    made = plan(on_claims(*going))

    assert (made.actions, made.reason, made.stage) == ((), "ClaimTerminating", Stage.HELD)
    assert made.message.endswith(f": {claims[-1].name}")
    assert made.requeue_after == 1.0


def test_no_cluster_resumes_beside_a_copy_of_one_of_its_claims() -> None:
    """A clone of the volume has its annotations, too, and so the ID of the same member."""
    names = ("db-0", "db-1", "db-2")
    claims = (*map(old_claim, names), old_claim("db-3", member_id="id-db-2"))
    members = tuple(Member(name=claim.name, claim=claim) for claim in claims)
    made = plan(not_bootstrapped(persistent(), members=members))

    assert (made.actions, made.reason) == ((), "ClaimsConflict")
