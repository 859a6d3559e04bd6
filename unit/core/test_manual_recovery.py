"""Persistent members are given up by name only: when a recovery is offered, refused, begun, ended."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.improbable import RECOVER_ANNOTATION
from etcd_operator.api.persisted import REVISION_BUMP, Bootstrap, Recovery, Upgrade
from etcd_operator.core.actions import (
    AddLearner,
    ConfirmSilence,
    CreateMember,
    DropSeed,
    OpenSeed,
    Remember,
    RetireMember,
    SetSeedExistingOnly,
    Stage,
)
from etcd_operator.core.members import ClaimFacts, Member, PodProblem
from etcd_operator.core.plan import plan
from etcd_operator.core.rules.claims import set_existing_only
from etcd_operator.core.rules.manual_recovery import SILENCE, name_of, offer, recover, refused
from etcd_operator.core.rules.objects import repair
from etcd_operator.core.rules.scale import down, up
from etcd_operator.core.rules.seed import MOVED_ON, next_recovery
from etcd_operator.core.starts import Resuming, Seeding
from etcd_operator.core.state import ClusterState
from etcd_operator.core.status import conditions
from unit.core.builders import (
    CLUSTER_ID,
    TOKEN,
    VERSION,
    answer,
    bootstrapped,
    bootstrapping,
    changed,
    claim,
    entry,
    ephemeral,
    old_claim,
    peer,
    persistent,
    pod,
    serving,
    silent,
    without,
)

NEW_ID = "feed"
NAME = f"{CLUSTER_ID}/db-2/1"
RECOVERY = Recovery(
    generation=1,
    survivor="db-2",
    revision=7,
    version=VERSION,
    seed="db-3",
    token=f"{TOKEN}-1",
    replaces=CLUSTER_ID,
)


def lost(size: int = 3, *gone: int, asked: str = "", **changes: Any) -> ClusterState:
    """Some members are silent (by default a majority, the first ones); the others follow no leader."""
    silents = gone or tuple(range(size // 2 + 1))
    state = replace(
        bootstrapped(persistent(size=size, recover=asked)), has_quorum=False, unavailable_for=SILENCE
    )
    listed = tuple(entry(f"db-{number}") for number in range(size))
    for number in range(size):
        reply = answer(f"db-{number}", listed, leader="", revision=7)
        state = changed(state, f"db-{number}", answer=None if number in silents else reply)
    return replace(state, **changes)


def answered_by(state: ClusterState, name: str, **changes: Any) -> ClusterState:
    """`name` answers something else."""
    before = state.by_name[name].answer
    assert before is not None
    return changed(state, name, answer=replace(before, **changes))


def recovering(state: ClusterState | None = None, **seed: Any) -> ClusterState:
    """A recovery is under way; its seed runs and is silent by default."""
    state = state or lost(asked=NAME)
    persisted = replace(state.persisted, recovery=RECOVERY)
    state = replace(state, desired=replace(state.desired, persisted=persisted))
    parts = {"claim": claim("db-3", token=f"{TOKEN}-1"), "has_replica_set": True, **seed}
    return replace(state, members=(*state.members, silent(state.desired, "db-3", **parts)))


def served(revision: int = 7 + REVISION_BUMP, **seed: Any) -> ClusterState:
    """As `recovering`, and the seed leads a cluster of its own."""
    listed = (entry("db-3"),)
    reply = answer("db-3", listed, cluster_id=NEW_ID, revision=revision)
    state = recovering(entry=listed[0], answer=reply, **seed)
    for name in ("db-0", "db-1", "db-2"):
        state = changed(state, name, entry=None)
    return replace(state, has_quorum=True)


def existing_only_claim() -> ClaimFacts:
    return claim("db-3", token=f"{TOKEN}-1", cluster_id=NEW_ID, member_id="id-db-3", voters=("db-3=id-db-3",))


# Before it begins


NOT_OFFERED = [
    pytest.param(bootstrapped(persistent()), id="a quorum answers"),
    pytest.param(lost(3, 0), id="most answer, and elect a leader just now"),
    pytest.param(lost(3, 0, 1, 2), id="nobody answers: that is reported by another rule"),
    pytest.param(
        changed(lost(), "db-2", pod=pod("db-2", is_terminating=True)), id="who answers is being deleted"
    ),
    pytest.param(
        replace(bootstrapped(ephemeral()), has_quorum=False), id="members whose data ends with their pods"
    ),
    pytest.param(bootstrapping(persistent()), id="a cluster that is not bootstrapped"),
]


@pytest.mark.parametrize("state", NOT_OFFERED)
def test_where_nothing_is_lost_for_sure_no_recovery_is_offered(state: ClusterState) -> None:
    assert recover(state) is None
    assert offer(state) is None


def missed_the_promotion(unavailable_for: float = SILENCE) -> ClusterState:
    """Two of four are silent. db-2 has not heard yet that db-3 votes, so it counts three voters."""
    older = tuple(entry(f"db-{number}", is_learner=number == 3) for number in range(4))
    state = replace(lost(4, 0, 3), unavailable_for=unavailable_for)
    return answered_by(state, "db-2", members=older, committed=17)


def test_who_missed_a_promotion_does_not_keep_a_recovery_from_being_offered() -> None:
    made = plan(missed_the_promotion())

    assert made.reason == "QuorumLost"
    assert f"{RECOVER_ANNOTATION}={CLUSTER_ID}/db-1/1" in made.message
    assert offer(missed_the_promotion(SILENCE - 0.1)) is None


def test_a_member_that_is_away_for_an_upgrade_is_no_loss() -> None:
    state = lost(2, 0)
    upgrade = Upgrade(origin=VERSION, target="3.6.17", member="db-0")
    persisted = replace(state.persisted, upgrade=upgrade)

    assert plan(replace(state, desired=replace(state.desired, persisted=persisted))).reason == "Upgrading"


def test_an_upgrade_that_waits_does_not_keep_a_person_from_asking() -> None:
    upgrade = Upgrade(origin=VERSION, target="3.6.17", member="db-2")

    def reason(asked: str) -> str:
        state = lost(asked=asked)
        persisted = replace(state.persisted, upgrade=upgrade)
        return plan(replace(state, desired=replace(state.desired, persisted=persisted))).reason

    assert (reason(""), reason("?"), reason(NAME)) == ("Upgrading", "RecoveryRefused", "Recovering")


def with_revisions(first: int, second: int) -> ClusterState:
    state = lost(5, 0, 1, 2)
    return answered_by(answered_by(state, "db-3", revision=first), "db-4", revision=second)


SURVIVORS = [
    pytest.param(lost(), NAME, id="the only one"),
    pytest.param(with_revisions(8, 9), f"{CLUSTER_ID}/db-4/1", id="the newest data"),
    pytest.param(with_revisions(9, 9), f"{CLUSTER_ID}/db-3/1", id="the first of equals"),
    pytest.param(
        changed(with_revisions(8, 9), "db-4", peer=peer("db-4", is_existing_only=True, is_terminating=True)),
        f"{CLUSTER_ID}/db-3/1",
        id="nobody who is being deleted",
    ),
    pytest.param(
        changed(with_revisions(8, 9), "db-4", claim=None),
        f"{CLUSTER_ID}/db-3/1",
        id="nobody whose data is being deleted",
    ),
]


@pytest.mark.parametrize(("state", "name"), SURVIVORS)
def test_a_loss_is_reported_with_the_name_of_what_could_be_recovered(state: ClusterState, name: str) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "QuorumLost")
    assert f"{RECOVER_ANNOTATION}={name} " in made.message


def test_each_missing_member_is_reported_with_what_is_known_of_it() -> None:
    state = changed(lost(5, 0, 1, 2), "db-0", claim=None)
    state = changed(state, "db-1", problem=PodProblem(reason="DataLost", message="empty"))

    assert plan(state).message.startswith("db-0 (its claim is missing), db-1 (DataLost), db-2 (silent): ")


REFUSED = [
    pytest.param(lost(asked=f"{CLUSTER_ID}/db-1/1"), "RecoveryRefused", f"={NAME} ", id="another survivor"),
    pytest.param(lost(asked=f"{CLUSTER_ID}/db-2/2"), "RecoveryRefused", f"={NAME} ", id="another attempt"),
    pytest.param(lost(asked="feed/db-2/1"), "RecoveryRefused", f"={NAME} ", id="another cluster"),
    pytest.param(
        lost(3, 0, 1, 2, asked=NAME),
        "RecoveryRefused",
        "no member that could be recovered from answers",
        id="nobody is left",
    ),
    pytest.param(
        changed(lost(asked=NAME), "db-2", pod=pod("db-2", is_terminating=True)),
        "RecoveryRefused",
        "no member that could be recovered from answers",
        id="the survivor is being deleted",
    ),
    pytest.param(
        answered_by(lost(asked=NAME), "db-2", version="3.5.9"), "RecoveryUnsupported", "3.5.9", id="too old"
    ),
]


@pytest.mark.parametrize(("state", "reason", "words"), REFUSED)
def test_what_cannot_be_done_is_refused_and_reported(state: ClusterState, reason: str, words: str) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, reason)
    assert words in made.message
    assert made.requeue_after is not None


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(lost(asked=NAME, unavailable_for=SILENCE - 0.1), id="only just silent"),
        pytest.param(answered_by(lost(asked=NAME), "db-2", leader="id-db-0"), id="it still names a leader"),
    ],
)
def test_a_silence_has_to_last_before_anybody_is_given_up(state: ClusterState) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "QuorumLost")


def test_what_is_asked_for_by_its_name_is_begun() -> None:
    made = plan(lost(asked=NAME))

    silence, remembered, seed = made.actions
    assert isinstance(silence, ConfirmSilence)
    assert silence.survivors == (("db-2", "pod-db-2"),)
    assert isinstance(remembered, Remember)
    assert remembered.persisted.recovery == RECOVERY
    assert remembered.persisted.is_recovering
    start = Seeding(survivor="db-2", token=f"{TOKEN}-1")
    assert seed == CreateMember(name="db-3", start=start, version=VERSION)
    assert made.reason == "Recovering"
    assert name_of(RECOVERY) == NAME


@pytest.mark.parametrize(
    ("asked", "recovery", "is_refused"),
    [
        pytest.param("", None, False, id="nothing is asked for"),
        pytest.param(NAME, None, True, id="nothing was ever lost"),
        pytest.param(NAME, RECOVERY, False, id="it is done"),
        pytest.param("feed/db-0/2", RECOVERY, True, id="another one is done"),
        pytest.param(NAME, msgspec.structs.replace(RECOVERY, replaces=""), True, id="it was not needed"),
    ],
)
def test_with_a_quorum_an_annotation_is_refused_unless_it_names_what_was_done(
    asked: str, recovery: Recovery | None, is_refused: bool
) -> None:
    state = bootstrapped(persistent(recover=asked))
    persisted = replace(state.persisted, cluster_id=CLUSTER_ID, recovery=recovery)
    made = refused(replace(state, desired=replace(state.desired, persisted=persisted)))

    assert (made is not None and made.reason == "RecoveryRefused") is is_refused


def test_a_healthy_cluster_reports_that_it_refuses() -> None:
    assert plan(bootstrapped(persistent(recover=NAME))).reason == "RecoveryRefused"


# Under way


def test_a_seed_that_was_never_made_is_made() -> None:
    made = plan(without(recovering(), "db-3"))

    start = Seeding(survivor="db-2", token=f"{TOKEN}-1")
    assert made.actions == (CreateMember(name="db-3", start=start, version=VERSION),)


NO_SEED: list[Any] = [
    pytest.param({"peer": None}, id="its peer was deleted"),
    pytest.param({"peer": peer("db-3", is_terminating=True)}, id="its peer is being deleted"),
    pytest.param({"claim": None}, id="its claim was deleted"),
    pytest.param({"claim": claim("db-3", token="t", is_lost=True)}, id="its volume was lost"),
    pytest.param({"claim": claim("db-3", token="t", is_terminating=True)}, id="its claim is being deleted"),
]


@pytest.mark.parametrize("parts", NO_SEED)
def test_a_seed_that_lost_a_part_is_followed_by_another_once_that_is_asked_for(parts: Any) -> None:
    state = recovering(**parts)
    made = plan(state)
    assert (made.stage, made.reason) == (Stage.HELD, "RecoveryRefused")
    again = f"{CLUSTER_ID}/db-2/2"
    assert f"={again} " in made.message

    made = plan(replace(state, desired=replace(state.desired, recover=again)))
    remembered = made.actions[1]
    assert isinstance(remembered, Remember)
    recovery = remembered.persisted.recovery
    assert recovery is not None
    assert (recovery.generation, recovery.seed, recovery.token) == (2, "db-4", f"{TOKEN}-2")


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(without(recovering(lost(3, 0, 1, 2)), "db-3"), id="the seed was never made"),
        pytest.param(recovering(lost(3, 0, 1, 2), peer=None), id="the seed was deleted"),
    ],
)
def test_without_seed_and_survivor_nothing_is_touched(state: ClusterState) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "QuorumLost")
    assert "nothing is changed" in made.message


WAITING = [
    pytest.param(recovering(), id="it fetches"),
    pytest.param(recovering(claim=None, has_replica_set=False), id="its claim is only being made"),
    pytest.param(recovering(lost(3, 0, 1, 2), pod=pod("db-3", has_fetched=True)), id="it has all of it"),
    pytest.param(replace(served(), has_quorum=False), id="it does not lead yet"),
    pytest.param(served(revision=6 + MOVED_ON), id="its revisions have not moved on"),
    pytest.param(recovering(claim=existing_only_claim()), id="it is existing-only, and starts again"),
]


@pytest.mark.parametrize("state", WAITING)
def test_a_seed_is_waited_for_and_nothing_is_deleted(state: ClusterState) -> None:
    made = plan(state)

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Recovering")
    assert "silent" not in made.message


def test_what_keeps_a_seed_waiting_is_reported() -> None:
    assert plan(recovering(lost(3, 0, 1, 2))).message.endswith("db-2 does not answer now")
    made = plan(recovering(problem=PodProblem(reason="ErrImagePull", message="no such image")))
    assert (made.stage, made.reason) == (Stage.HELD, "ErrImagePull")
    assert made.message.endswith("no such image; to begin again: kubectl delete etcdpeer db-3")


def recorded(state: ClusterState) -> Remember:
    bootstrap = Bootstrap(members=("db-3",), token=f"{TOKEN}-1", version=VERSION)
    return Remember(persisted=replace(state.persisted, cluster_id=NEW_ID, bootstrap=bootstrap))


@pytest.mark.parametrize(
    "state",
    [served(), served(claim=existing_only_claim())],
    ids=["not existing-only yet", "existing-only before"],
)
@pytest.mark.parametrize(
    ("asked", "keeps"),
    [
        pytest.param(NAME, True, id="their claims stay"),
        pytest.param(f"{NAME}/delete-claims", False, id="and so do their claims"),
        pytest.param("", True, id="the annotation is gone"),
        pytest.param("another/delete-claims", True, id="it speaks of another recovery"),
    ],
)
def test_when_the_seed_serves_it_is_set_existing_only_the_others_go_and_clients_come(
    state: ClusterState, asked: str, keeps: bool
) -> None:
    state = replace(state, desired=replace(state.desired, recover=asked))
    others = ("db-0", "db-1", "db-2")
    assert plan(state).actions == (
        SetSeedExistingOnly(name="db-3", revision=7 + MOVED_ON),
        *(RetireMember(name=name, seed="db-3", keeps_claim=keeps) for name in others),
        OpenSeed(name="db-3"),
        recorded(state),
    )


def test_the_claim_of_a_seed_that_never_served_is_not_kept() -> None:
    attempt = silent(served().desired, "db-4", claim=claim("db-4", token=f"{TOKEN}-0"))
    state = served()
    actions = plan(replace(state, members=(*state.members, attempt))).actions

    assert RetireMember(name="db-4", seed="db-3") in actions


@pytest.mark.parametrize(
    ("parts", "goes"),
    [
        pytest.param({"peer": peer("db-0", is_terminating=True)}, True, id="its claim would stay"),
        pytest.param(
            {"peer": peer("db-0", is_terminating=True, is_for_cleanup=True)},
            False,
            id="it goes with its claim",
        ),
        pytest.param({"peer": None}, True, id="only its claim is left"),
        pytest.param(
            {"peer": None, "claim": old_claim("db-0", is_terminating=True)}, False, id="its claim is going"
        ),
        pytest.param({"peer": None, "claim": None}, False, id="nothing is left"),
        pytest.param({"claim": None}, True, id="only its peer is left"),
    ],
)
def test_what_is_left_of_a_member_is_deleted_once(parts: Any, goes: bool) -> None:
    actions = plan(changed(served(), "db-0", **parts)).actions

    retired = [action.name for action in actions if isinstance(action, RetireMember)]
    assert ("db-0" in retired) is goes


# The way back


def returned(state: ClusterState) -> ClusterState:
    """All of the old members follow a leader again."""
    listed = tuple(entry(f"db-{number}") for number in range(3))
    for name in ("db-0", "db-1", "db-2"):
        state = changed(state, name, answer=answer(name, listed))
    return replace(state, has_quorum=True)


def test_a_quorum_that_returns_before_the_seed_is_existing_only_is_kept_and_the_seed_goes() -> None:
    made = plan(returned(served()))
    assert (made.actions, made.reason) == ((DropSeed(name="db-3"),), "RecoveryEnding")

    earlier = Member(name="db-4", claim=claim("db-4", token=f"{TOKEN}-0"))
    state = returned(recovering(peer=peer("db-3", is_terminating=True, is_for_cleanup=True)))
    state = replace(state, members=(*state.members, earlier))
    assert plan(state).actions == (DropSeed(name="db-4"),)
    assert plan(without(state, "db-4")).actions == ()

    gone = without(state, "db-3", "db-4")
    persisted = replace(gone.persisted, recovery=msgspec.structs.replace(RECOVERY, replaces=""))
    made = plan(gone)
    assert (made.actions, made.reason) == ((Remember(persisted=persisted),), "QuorumReturned")
    assert not persisted.is_recovering


def test_once_the_seed_is_existing_only_there_is_no_way_back() -> None:
    made = plan(returned(served(claim=existing_only_claim())))

    assert made.reason == "Recovered"


def test_members_that_answer_without_a_leader_do_not_end_a_recovery() -> None:
    state = recovering(lost(3, 0, asked=NAME))

    assert plan(state).reason == "Recovering"


# What other rules make of it


def test_while_there_are_two_clusters_each_peer_is_made_again_for_its_own() -> None:
    state = replace(recovering(peer=None), has_quorum=False)
    assert repair(state) is None
    made = repair(recovering(peer=None, claim=existing_only_claim()))
    assert made is not None
    start = Resuming(token=f"{TOKEN}-1")
    assert made.actions == (CreateMember(name="db-3", start=start, version=VERSION),)
    made = repair(changed(state, "db-0", peer=None))
    assert made is not None
    assert made.actions == (CreateMember(name="db-0", start=Resuming(token=TOKEN), version=VERSION),)


def test_the_seed_is_not_set_existing_only_as_a_member_of_the_old_cluster() -> None:
    assert set_existing_only(served()) is None


def recovered(*numbers: int, size: int = 3) -> ClusterState:
    """After a recovery; `numbers` are its voters, the seed is 3."""
    listed = tuple(entry(f"db-{number}") for number in numbers)
    state = bootstrapped(persistent(size=size))
    persisted = replace(
        state.persisted,
        cluster_id=NEW_ID,
        recovery=RECOVERY,
        bootstrap=Bootstrap(members=("db-3",), token=f"{TOKEN}-1", version=VERSION),
    )
    cluster = replace(state.desired, persisted=persisted)
    members = tuple(
        serving(cluster, each.name, listed, answer=answer(each.name, listed, cluster_id=NEW_ID))
        for each in listed
    )
    return replace(state, desired=cluster, members=members)


def keeping(state: ClusterState, *numbers: int) -> ClusterState:
    """With claims that the recovery gave up."""
    return replace(state, kept=tuple(old_claim(f"db-{n}", given_up=NAME) for n in numbers))


@pytest.mark.parametrize(
    ("state", "added"),
    [
        pytest.param(recovered(3), "db-0", id="all claims were deleted"),
        pytest.param(recovered(0, 3), "db-1", id="two of three"),
        pytest.param(recovered(0, 1, 3), "", id="as desired: the seed is a member like others"),
        pytest.param(recovered(3, size=1), "", id="a cluster of one"),
        pytest.param(keeping(recovered(3), 0, 1, 2), "db-4", id="all are kept"),
        pytest.param(keeping(recovered(3, 4), 0, 1, 2), "db-5", id="and one has joined"),
        pytest.param(keeping(recovered(3), 0, 2), "db-1", id="one was deleted by a person"),
        pytest.param(keeping(recovered(3, 4, 5), 0, 1), "", id="as desired, whatever is deleted later"),
        pytest.param(recovered(3, 4, 5), "", id="also when all are"),
    ],
)
def test_members_join_under_the_lowest_numbers_that_no_claim_has(state: ClusterState, added: str) -> None:
    made = up(state)

    assert made is None if not added else made is not None and made.actions[0] == AddLearner(name=added)
    assert down(state) is None


def test_a_later_recovery_takes_no_number_of_a_kept_claim() -> None:
    state = keeping(lost(), 7)
    survivor = state.by_name["db-2"]

    assert next_recovery(state, survivor).seed == "db-8"


def test_a_number_whose_former_member_cannot_go_yet_is_left_for_later() -> None:
    state = recovered(3)
    blocked = [Member(name=f"db-{n}", claim=old_claim(f"db-{n}", is_terminating=True)) for n in (0, 1, 2)]
    some = replace(state, members=(*blocked[:2], *state.members))
    made = up(some)
    assert made is not None
    assert made.actions[0] == AddLearner(name="db-2")

    made = up(replace(state, members=(*blocked, *state.members)))
    assert made is not None
    assert (made.actions, made.message) == ((), "waiting until the former db-0 is deleted")

    own = Member(name="db-0", claim=old_claim("db-0", cluster_id=NEW_ID, is_terminating=True))
    made = up(replace(state, members=(own, *state.members)))
    assert made is not None
    assert made.message == "waiting until the former db-0 is deleted"


@pytest.mark.parametrize(
    ("token", "expected"),
    [(TOKEN, None), (f"{TOKEN}-1", "recovered as db-0 once")],
    ids=["never", "an earlier one"],
)
def test_a_recovery_that_was_not_needed_lost_nothing(token: str, expected: str | None) -> None:
    state = bootstrapped(persistent())
    recovery = msgspec.structs.replace(RECOVERY, replaces="")
    bootstrap = Bootstrap(members=("db-0",), token=token)
    for known in (bootstrap, None):
        persisted = replace(state.persisted, recovery=recovery, bootstrap=known)
        found = replace(state, desired=replace(state.desired, persisted=persisted))
        message = {c.type: c.message for c in conditions(found, plan(found))}.get("DataLossPossible")
        if expected is None or known is None:
            assert message is None
        else:
            assert message is not None
            assert message.startswith(expected)
