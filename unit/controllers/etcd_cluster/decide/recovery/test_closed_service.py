"""A seed that does not serve while the Service selects nobody: the status reports how to end that."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.actions import Stage
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, PeerFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import SetSeedExistingOnly
from etcd_operator.controllers.etcd_cluster.decide.recovery.machine import PATIENCE
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import NAMES, peer, pod
from unit.controllers.etcd_cluster.decide.builders import claim as claim_of
from unit.controllers.etcd_cluster.decide.recovery.stored import (
    IN_PLACE,
    NAME,
    RECOVERY,
    backup,
    filling,
    final_claim,
    live,
    remembering,
    seeding,
    served,
    sight,
)

CLOSED = live(NAME, backups=sight(is_closed=True))
GOING = replace(final_claim(), is_terminating=True)
KEPT = tuple(claim_of(name, given_up_by=NAME) for name in NAMES)
GIVE_UP = "no client reaches the cluster meanwhile; to give db-3 up: kubectl delete etcdpeer/db-3 pvc/db-3"


def test_a_problem_of_a_seed_that_keeps_clients_out_is_reported_with_the_way_back() -> None:
    """Without its claim: the EtcdPeer alone would be made again."""
    problem = PodProblem(reason="Unschedulable", message="no node")
    made = plan(seeding(CLOSED, claim=final_claim(), problem=problem))
    assert (made.stage, made.reason) == (Stage.HELD, "Unschedulable")
    assert made.message.endswith(GIVE_UP)


def test_a_silent_seed_that_keeps_clients_out_is_reported_with_the_way_back() -> None:
    state = seeding(CLOSED, claim=final_claim(), silent_for=PATIENCE)
    made = plan(state)
    assert (made.actions, made.reason) == ((), "Restoring")
    assert made.message.endswith(GIVE_UP)
    reachable = plan(replace(state, backups=sight()))
    assert GIVE_UP not in reachable.message


def test_a_seed_without_a_pod_is_silent_for_as_long_as_no_quorum_answers() -> None:
    state = seeding(CLOSED, claim=final_claim(), pod=None)
    assert GIVE_UP not in plan(state).message
    assert GIVE_UP in plan(replace(state, unavailable_for=PATIENCE)).message


def test_one_probe_that_was_missed_is_no_reason_to_give_a_seed_up() -> None:
    """The quorum may have been lost long before the Service was closed."""
    state = replace(seeding(CLOSED, claim=final_claim()), unavailable_for=3600.0, has_quorum=False)
    assert "kubectl delete" not in plan(state).message


@pytest.mark.parametrize("claim", [final_claim(), GOING], ids=["its claim is there", "its claim is going"])
def test_a_seed_for_which_members_were_given_up_is_not_to_be_deleted(claim: ClaimFacts) -> None:
    state = seeding(CLOSED, claim=claim, silent_for=PATIENCE)
    state = replace(state, members=state.members[-1:], kept_claims=KEPT, has_quorum=False)
    made = plan(state)
    assert "kubectl delete" not in made.message
    assert "do not delete db-3: db-0, db-1, db-2 were given up for it" in made.message


@pytest.mark.parametrize("asked", [NAME, ""], ids=["requested still", "withdrawn"])
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(
            seeding(CLOSED, claim=GOING), "kubectl delete etcdpeer db-3", id="its EtcdPeer is there"
        ),
        pytest.param(
            seeding(CLOSED, claim=GOING, peer=peer("db-3", is_terminating=True), pod=None),
            "peer-name=db-3 --force",
            id="its EtcdPeer is going",
        ),
        pytest.param(
            filling(CLOSED, claim=GOING, pod=replace(pod("db-3"), is_terminating=True, node="node-7")),
            "kubectl delete pod db-3 --force)",
            id="its pod does not end",
        ),
        pytest.param(filling(CLOSED, claim=GOING), "peer-name=db-3 --force", id="only the claim is left"),
    ],
)
def test_a_claim_that_was_found_to_serve_is_waited_for_when_it_is_deleted(
    state: ClusterState, asked: str, expected: str
) -> None:
    """The Service is not opened, and nothing else is deleted, as long as it shows that."""
    state = replace(state, desired=replace(state.desired, restore_in_place=asked))
    made = plan(state)
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "Restoring")
    assert made.message.endswith(expected)


@pytest.mark.parametrize("left", [peer("db-3", is_terminating=True), peer("db-3"), None])
def test_members_are_not_given_up_for_a_seed_that_is_ending(left: PeerFacts | None) -> None:
    """A person gave it up; it answers until its process ends."""
    ending = replace(pod("db-3"), is_terminating=True)
    assert plan(served(CLOSED, claim=GOING, peer=left, pod=ending)).actions == ()
    without = plan(served(CLOSED, claim=GOING, peer=None))
    assert without.actions == (), "its EtcdPeer is not created again"


@pytest.mark.parametrize("recovery", [IN_PLACE, RECOVERY])
def test_a_seed_that_serves_goes_on_although_its_claim_is_being_deleted(recovery: Recovery) -> None:
    made = plan(served(CLOSED, recovery, claim=GOING))
    assert "is being deleted" not in made.message
    not_annotated = plan(served(CLOSED, IN_PLACE))
    assert any(isinstance(action, SetSeedExistingOnly) for action in not_annotated.actions)


def test_claims_of_members_that_were_given_up_are_named_where_nothing_else_is_left() -> None:
    """They have the newest data; no backup of this etcd cluster does."""
    failed = msgspec.structs.replace(IN_PLACE, replaces="", failure="db-3 was lost")
    left = live(NAME, backups=sight(backup(cluster_id="beef")), kept_claims=KEPT)
    state = replace(remembering(left, failed), members=(), has_quorum=False)
    made = plan(state)
    assert (made.actions, made.reason) == ((), "NoBackup")
    assert "remove the annotation etcd.improbable.io/given-up-by from these claims" in made.message
    others = tuple(replace(claim, given_up_by="beef/one/1") for claim in KEPT)
    assert "given-up-by" not in plan(replace(state, kept_claims=others)).message
