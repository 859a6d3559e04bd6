"""The recovery of a lost quorum under way: its seed, its end, and its status."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.recoveries import REVISION_BUMP, Survivor
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    CreateMember,
    CreateMemberService,
    Remember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    DropEmpty,
    OpenSeed,
    RetireMember,
    SetSeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import MOVED_ON
from etcd_operator.controllers.etcd_cluster.decide.recovery.rules import recover
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import RECHECK, SEED_POLL
from etcd_operator.controllers.etcd_cluster.decide.starts import Seeding
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    TOKEN,
    VERSION,
    answer,
    changed,
    entry,
    pod,
    silent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.entries import recorded
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import (
    NEW_ID,
    RECOVERY,
    lost,
    recovering,
    serving,
)


def test_a_seed_that_was_never_made_is_made() -> None:
    made = plan(recovering(is_made=False))

    assert [type(action) for action in made.actions] == [CreateMember, Remember, CreateMemberService]
    assert made.actions[0] == CreateMember(
        name="db-0003", start=Seeding(source=Survivor(name="db-0002"), token=f"{TOKEN}-1"), version=VERSION
    )


def test_a_seed_runs_what_its_survivor_ran_whatever_is_asked_for_by_then() -> None:
    state = lost(3, 0, 1)
    made = plan(replace(state, desired=replace(state.desired, version="3.7.3")))

    seed = next(action for action in made.actions if isinstance(action, CreateMember))
    assert seed.version == VERSION


def test_a_seed_that_was_lost_is_followed_by_the_next_number_with_a_token_of_its_own() -> None:
    for state in (recovering(pod=None), recovering(pod=pod("db-0003", is_finished=True))):
        recovery = recorded(plan(state))
        assert (recovery.generation, recovery.seed, recovery.token) == (2, "db-0004", f"{TOKEN}-2")
        assert recovery.attempt == 2


@pytest.mark.parametrize(
    ("attempt", "pause", "text"),
    [(2, 10, "10 s"), (3, 20, "20 s"), (7, 320, "5 min 20 s"), (8, 600, "10 min"), (9999, 600, "10 min")],
)
def test_seeds_that_keep_failing_follow_one_another_more_and_more_slowly(
    attempt: int, pause: int, text: str
) -> None:
    """As where a kubelet rejects each of their pods at once."""
    failed = msgspec.structs.replace(RECOVERY, attempt=attempt)
    state = with_record(recovering(pod=None), recovery=failed, next_ordinal=4)
    made = plan(replace(state, attempted_for=pause - 0.5))
    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Recovering")
    assert made.requeue_after == 0.5
    assert made.message == (
        f"{attempt} attempts in a row have failed, the last one as db-0003; the next one begins {text} after "
        "that one began"
    )
    assert recorded(plan(replace(state, attempted_for=float(pause)))).attempt == attempt + 1
    outdated = msgspec.structs.replace(failed, failure="another member has more")
    assert plan(with_record(state, recovery=outdated, next_ordinal=4)).actions, (
        "a better source is used at once"
    )


def test_attempts_are_counted_until_one_has_served() -> None:
    served = msgspec.structs.replace(RECOVERY, attempt=5, replaces="feed")
    assert recorded(plan(with_record(lost(3, 0, 1), recovery=served))).attempt == 1


WAITING = [
    pytest.param(recovering(), id="it fetches"),
    pytest.param(changed(recovering(), "db-0002", answer=None), id="its survivor is busy"),
    pytest.param(
        changed(recovering(pod=pod("db-0003", has_fetched=True)), "db-0002", pod=None, answer=None),
        id="it has fetched, and the survivor is gone",
    ),
    pytest.param(replace(serving(), has_quorum=False), id="it does not lead yet"),
    pytest.param(serving(revision=7), id="its revisions have not moved on"),
    pytest.param(serving(revision=6 + MOVED_ON), id="its revisions have not moved on far enough"),
    pytest.param(serving(7 + REVISION_BUMP, "db-0009"), id="it is not alone in its cluster"),
]


@pytest.mark.parametrize("state", WAITING)
def test_a_seed_is_waited_for_and_nothing_is_deleted(state: ClusterState) -> None:
    made = recover(state)

    assert made is not None
    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Recovering")


def test_a_survivor_that_keeps_a_seed_waiting_is_named_and_waited_for_in_peace() -> None:
    made = plan(changed(recovering(), "db-0002", answer=None))

    assert (made.requeue_after, plan(recovering()).requeue_after) == (RECHECK, SEED_POLL)


@pytest.mark.parametrize(
    ("seconds", "age"), [(119.9, ""), (120.0, "2 min"), (299.0, "2 min"), (300.0, "5 min"), (1e6, "1 d")]
)
def test_a_seed_that_is_not_started_for_long_is_reported_with_its_age_in_steps(
    seconds: float, age: str
) -> None:
    made = plan(recovering(pod=pod("db-0003", is_running=False, creating_for=seconds)))

    assert (made.actions, made.stage, made.reason) == ((), Stage.WORKING, "Recovering")
    assert ("db-0003 has been ContainerCreating for more than" in made.message) == bool(age)
    assert age in made.message
    assert plan(recovering(pod=None)).actions, "one that is lost is not reported"


def test_what_keeps_a_seed_from_running_is_reported() -> None:
    state = recovering(problem=PodProblem(reason="ErrImagePull", message="no such image"))

    made = plan(state)

    assert (made.stage, made.reason) == (Stage.HELD, "ErrImagePull")


def test_a_seed_whose_survivor_is_gone_gives_way_to_nobody_or_to_one_that_another_feeds() -> None:
    gone = changed(recovering(), "db-0002", pod=None, answer=None)
    assert plan(gone).reason == "NoBackup"

    recovery = msgspec.structs.replace(RECOVERY, source=Survivor(name="db-0003"), seed="db-0005")
    five = with_record(lost(5, 0, 1, 2, 3), recovery=recovery, next_ordinal=6)
    five = replace(five, members=(*five.members, silent(five.desired, "db-0005")))
    assert (recorded(plan(five)).source.name, recorded(plan(five)).seed) == ("db-0004", "db-0006")


def orphaned(revision: int, **seed: object) -> ClusterState:
    """The seed was to fetch revision 90 of db-0003, which is lost; db-0004 is left at this revision."""
    state = lost(5, 0, 1, 2, 3, revisions={4: revision})
    recovery = msgspec.structs.replace(RECOVERY, source=Survivor(name="db-0003"), revision=90, seed="db-0005")
    made = silent(state.desired, "db-0005", pod=pod("db-0005", is_running=False, has_run=False, **seed))
    state = with_record(state, recovery=recovery, next_ordinal=6)
    return replace(state, members=(*state.members, made))


def test_a_seed_that_may_have_fetched_more_than_the_next_survivor_is_given_up_by_a_person() -> None:
    made = plan(orphaned(89))
    assert (made.stage, made.actions) == (Stage.HELD, ())

    assert plan(orphaned(89, is_assigned=False)).actions == (DropEmpty(name="db-0005"),)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(orphaned(90), id="as much is left"),
        pytest.param(changed(orphaned(89), "db-0005", pod=None), id="the seed is lost"),
    ],
)
def test_otherwise_the_next_survivor_is_recovered_from(state: ClusterState) -> None:
    assert recorded(plan(state)).source.name == "db-0004"


def test_a_seed_that_serves_is_set_existing_only_then_others_are_deleted_and_it_is_opened() -> None:
    made = plan(serving())

    persisted = serving().persisted
    assert made.actions == (
        SetSeedExistingOnly(name="db-0003", revision=7 + MOVED_ON),
        RetireMember(name="db-0000", seed="db-0003"),
        RetireMember(name="db-0001", seed="db-0003"),
        Remember(
            persisted=replace(
                persisted,
                cluster_id=NEW_ID,
                bootstrap=Bootstrap(members=("db-0003",), token=f"{TOKEN}-1", version=VERSION),
            )
        ),
        RetireMember(name="db-0002", seed="db-0003", keeps_data=True),
        OpenSeed(name="db-0003"),
    )
    assert made.reason == "Recovered"


def test_a_seed_of_an_empty_survivor_serves_although_there_was_no_revision_to_count_from() -> None:
    assert plan(serving(revision=REVISION_BUMP)).reason == "Recovered"


def recovered() -> ClusterState:
    """As `serving`, with the cluster ID recorded; a survivor that is being deleted still answers."""
    state = serving()
    return with_record(state, cluster_id=NEW_ID)


def test_what_is_left_of_the_old_cluster_is_no_split() -> None:
    left: Member = recovered().by_name["db-0002"]
    assert left.answer is not None
    assert left.answer.cluster_id == CLUSTER_ID

    assert plan(recovered()).reason != "SplitBrain"
    foreign = changed(
        recovered(), "db-0002", answer=answer("db-0002", (entry("db-0002"),), cluster_id="beef")
    )
    assert plan(foreign).reason == "SplitBrain"


def reported(state: ClusterState) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in conditions(state, plan(state))}


def test_status_reports_of_a_recovery_and_never_forgets_that_data_may_be_lost() -> None:
    assert "DataLossPossible" not in reported(lost(3, 0, 1, 2))
    assert reported(recovering()) == {
        "Available": ("False", "QuorumLost"),
        "Progressing": ("True", "Recovering"),
        "Degraded": ("True", "Recovering"),
        "DataLossPossible": ("True", "RecoveredFromSurvivor"),
    }
    assert reported(serving())["Available"] == ("False", "QuorumLost")
    after = reported(recovered())
    assert after["Available"] == ("True", "QuorumHealthy")
    assert after["DataLossPossible"] == ("True", "RecoveredFromSurvivor")
