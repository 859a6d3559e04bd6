"""A manual recovery under way: its seed, its end, and the way back."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.recoveries import Survivor
from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMember, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    DropSeed,
    OpenSeed,
    RetireMember,
    SetSeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import MOVED_ON
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    TOKEN,
    VERSION,
    answer,
    changed,
    claim,
    entry,
    old_claim,
    peer,
    pod,
    silent,
    without,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import (
    NAME,
    NEW_ID,
    RECOVERY,
    existing_only_claim,
    lost,
    recovering,
    served,
)


def test_a_seed_that_was_never_made_is_made() -> None:
    made = plan(without(recovering(), "db-3"))

    start = Seeding(source=Survivor(name="db-2"), token=f"{TOKEN}-1")
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

    recovery = recorded(plan(replace(state, desired=replace(state.desired, recover=again))))
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


def test_a_seed_that_is_not_started_for_long_is_reported() -> None:
    made = plan(recovering(pod=pod("db-3", is_running=False, creating_for=700.0)))
    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Recovering")
    assert "ContainerCreating" in made.message
    assert "ContainerCreating" not in plan(recovering(pod=None)).message


def test_what_keeps_a_seed_waiting_is_reported() -> None:
    assert plan(recovering(lost(3, 0, 1, 2))).stage is Stage.WORKING
    made = plan(recovering(problem=PodProblem(reason="ErrImagePull", message="no such image")))
    assert (made.stage, made.reason) == (Stage.HELD, "ErrImagePull")


def remembered(state: ClusterState) -> Remember:
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
        *(RetireMember(name=name, seed="db-3", keeps_data=keeps) for name in others),
        OpenSeed(name="db-3"),
        remembered(state),
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
