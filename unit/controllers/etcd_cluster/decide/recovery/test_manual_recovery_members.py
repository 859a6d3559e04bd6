"""What other rules make of a manual recovery: peers, numbers of new members, status."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import AddLearner, CreateMember
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import addition, next_removal
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import next_from_survivor
from etcd_operator.controllers.etcd_cluster.decide.rules.claims import set_existing_only
from etcd_operator.controllers.etcd_cluster.decide.rules.objects import repair
from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from unit.controllers.etcd_cluster.decide.builders import (
    TOKEN,
    VERSION,
    answer,
    bootstrapped,
    changed,
    entry,
    old_claim,
    persistent,
    serving,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import (
    NAME,
    NEW_ID,
    RECOVERY,
    existing_only_claim,
    lost,
    recovering,
    served,
)


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
    """With claims that the recovery gave addition."""
    return replace(state, kept_claims=tuple(old_claim(f"db-{n}", given_up_by=NAME) for n in numbers))


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
    made = addition(state)

    assert made is None if not added else made is not None and made.actions[0] == AddLearner(name=added)
    assert next_removal(state) is None


def test_a_later_recovery_takes_no_number_of_a_kept_claim() -> None:
    state = keeping(lost(), 7)
    survivor = state.by_name["db-2"]

    assert next_from_survivor(state, survivor, "Requested").seed == "db-8"


def test_a_number_whose_former_member_cannot_go_yet_is_left_for_later() -> None:
    state = recovered(3)
    blocked = [Member(name=f"db-{n}", claim=old_claim(f"db-{n}", is_terminating=True)) for n in (0, 1, 2)]
    some = replace(state, members=(*blocked[:2], *state.members))
    made = addition(some)
    assert made is not None
    assert made.actions[0] == AddLearner(name="db-2")

    made = addition(replace(state, members=(*blocked, *state.members)))
    assert made is not None
    assert (made.actions, made.message) == ((), "waiting until the former db-0 is deleted")

    own = Member(name="db-0", claim=old_claim("db-0", cluster_id=NEW_ID, is_terminating=True))
    made = addition(replace(state, members=(own, *state.members)))
    assert made is not None
    assert made.message == "waiting until the former db-0 is deleted"


@pytest.mark.parametrize(
    ("token", "expected"),
    [(TOKEN, None), (f"{TOKEN}-1", "an earlier recovery recovered the cluster as db-0")],
    ids=["never", "an earlier one"],
)
def test_a_recovery_that_was_not_needed_lost_nothing(token: str, expected: str | None) -> None:
    state = bootstrapped(persistent())
    recovery = msgspec.structs.replace(RECOVERY, replaces="")
    bootstrap = Bootstrap(members=("db-0",), token=token)
    for known in (bootstrap, None):
        found = with_record(state, recovery=recovery, bootstrap=known)
        message = {c.type: c.message for c in conditions(found, plan(found))}.get("DataLossPossible")
        if expected is None or known is None:
            assert message is None
        else:
            assert message is not None
            assert message.startswith(expected)
