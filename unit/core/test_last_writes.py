"""A restore in place: where the writes of the old cluster end, and what is known of the last one."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.core.actions import Remember
from etcd_operator.core.members import PodFacts
from etcd_operator.core.plan import plan
from etcd_operator.core.recovery_actions import OpenSeed, RetireMember, SetSeedExistingOnly, StopWrites
from etcd_operator.core.rules.last_writes import PATIENCE
from etcd_operator.core.rules.seed import record
from etcd_operator.core.state import ClusterState
from unit.core.builders import AN_ERROR, CLUSTER_ID, FULL_STORE, NAMES, answering, changed, claim, down
from unit.core.stored import IN_PLACE, NAME, final_claim, live, remembering, served


def stopped(state: ClusterState) -> ClusterState:
    return answering(state, "db-0", "db-1", **FULL_STORE, revision=31)


def test_writes_end_before_the_members_do() -> None:
    """What is about to end is written before: an operator that dies after it knows whose alarm it is."""
    state, stop = served(live(), claim=final_claim()), StopWrites(name="db-0", member_id="id-db-0")
    stopping = msgspec.structs.replace(IN_PLACE, stopped=True)
    assert plan(state).actions == (record(state, stopping), stop)
    assert plan(remembering(state, stopping)).actions == (stop,)
    *_, done = plan(remembering(stopped(state), stopping)).actions
    assert isinstance(done, Remember)
    assert done.persisted.recovery is not None
    assert not done.persisted.recovery.stopped, "nothing of it takes writes again"


def test_the_last_revision_is_recorded_before_anything_is_deleted() -> None:
    made = plan(stopped(served(live(), claim=final_claim())))
    remember, existing_only, *retired, opened, done = made.actions
    assert isinstance(remember, Remember)
    recovery = remember.persisted.recovery
    assert recovery is not None
    assert (recovery.given_up, remember.persisted.cluster_id) == (31, CLUSTER_ID)
    assert isinstance(existing_only, SetSeedExistingOnly)
    assert retired == [RetireMember(name=f"db-{n}", seed="db-3", keeps_claim=True) for n in range(3)]
    assert opened == OpenSeed(name="db-3")
    assert isinstance(done, Remember)
    assert done.persisted.recovery == recovery
    again = plan(remembering(stopped(served(live(), claim=final_claim())), recovery))
    assert isinstance(again.actions[0], SetSeedExistingOnly), "it is recorded already"


FINAL = served(live(), claim=final_claim())
LEADERLESS = answering(FINAL, *NAMES, leader="", revision=25)
MUTE = down(FINAL, *NAMES)
LATER: dict[str, Any] = {"unavailable_for": PATIENCE}


@pytest.mark.parametrize(
    ("state", "given_up", "silent_members"),
    [
        pytest.param(down(stopped(FINAL), "db-2"), 31, (), id="one shows the alarm"),
        pytest.param(down(LEADERLESS, "db-1", "db-2", pod=None), 25, ("db-1", "db-2"), id="most are gone"),
        pytest.param(
            changed(down(MUTE, "db-0", pod=None), "db-1", pod=PodFacts(name="p", uid="u", is_finished=True)),
            20,
            NAMES,
            id="most have ended, and nobody answers",
        ),
        pytest.param(replace(LEADERLESS, **LATER), 25, (), id="all answer without a leader"),
        pytest.param(replace(down(LEADERLESS, "db-2"), **LATER), 25, ("db-2",), id="two do"),
        pytest.param(replace(MUTE, **LATER), 20, NAMES, id="nobody answers"),
    ],
)
def test_an_old_cluster_is_given_up_with_its_last_revision_or_the_words_that_it_is_not_known(
    state: ClusterState, given_up: int, silent_members: tuple[str, ...]
) -> None:
    made = plan(state)
    done = made.actions[-1]
    assert isinstance(done, Remember)
    recovery = done.persisted.recovery
    assert recovery is not None
    assert (recovery.given_up, recovery.silent_members) == (given_up, silent_members)
    assert ("is not known" in made.message) == bool(silent_members)
    assert all(name in made.message for name in silent_members)


@pytest.mark.parametrize(
    ("state", "names"),
    [
        pytest.param(MUTE, "db-0, db-1, db-2", id="nobody answers"),
        pytest.param(down(MUTE, "db-0", pod=None), "db-1, db-2", id="nobody answers, one is gone"),
        pytest.param(
            answering(down(FINAL, "db-1", "db-2"), "db-0", leader=""), "db-0, db-1, db-2", id="one, alone"
        ),
        pytest.param(down(FINAL, "db-1", "db-2"), "db-0, db-1, db-2", id="one that follows a leader"),
        pytest.param(LEADERLESS, "db-0, db-1, db-2", id="an election"),
    ],
)
def test_silence_does_not_prove_that_an_old_cluster_takes_no_writes(state: ClusterState, names: str) -> None:
    made = plan(replace(state, unavailable_for=PATIENCE - 1))
    assert (made.actions, made.reason) == ((), "Restoring")
    assert f"{names} still take writes" in made.message


CORRUPT = answering(
    FINAL, *NAMES, corrupt=frozenset({"id-db-1", "id-db-2"}), errors=("alarm:CORRUPT",), revision=31
)
UNABLE = answering(FINAL, *NAMES, **AN_ERROR)


def test_the_alarm_corrupt_ends_puts_without_another_one() -> None:
    """Also where it names so many that nobody is left to raise another alarm through."""
    made = plan(down(CORRUPT, "db-0"))
    done = made.actions[-1]
    assert isinstance(done, Remember)
    assert done.persisted.recovery is not None
    assert (done.persisted.recovery.given_up, done.persisted.recovery.silent_members) == (31, ())


def test_members_that_follow_a_leader_and_are_not_healthy_are_waited_for_but_not_for_ever() -> None:
    made = plan(UNABLE)
    assert (made.actions, made.reason) == ((), "Restoring")
    assert "db-0, db-1, db-2 still take writes" in made.message
    assert RetireMember(name="db-0", seed="db-3", keeps_claim=True) in plan(replace(UNABLE, **LATER)).actions


def test_what_was_recorded_counts_once_a_member_is_given_up() -> None:
    """Members that were deleted answer nobody any more."""
    kept = (claim("db-0", given_up_by=NAME),)
    made = plan(replace(remembering(MUTE, IN_PLACE), kept=kept))
    assert isinstance(made.actions[0], SetSeedExistingOnly)
    assert "up to revision 20 of the cluster" in made.message
