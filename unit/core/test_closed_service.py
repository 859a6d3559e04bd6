"""A seed that does not serve while the Service selects nobody: a person is told how to end that."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.persisted import Recovery
from etcd_operator.core.actions import Stage
from etcd_operator.core.members import PeerFacts, PodProblem
from etcd_operator.core.plan import plan
from etcd_operator.core.recovery_actions import SetSeedExistingOnly
from etcd_operator.core.rules.last_writes import PATIENCE
from etcd_operator.core.state import ClusterState
from unit.core.builders import NAMES, answering, peer, pod
from unit.core.stored import IN_PLACE, NAME, RECOVERY, filling, final_claim, live, seeding, served, sight

CLOSED = live(NAME, backups=sight(is_closed=True))
GOING = replace(final_claim(), is_terminating=True)
GIVE_UP = "no client reaches the cluster meanwhile; to give db-3 up: kubectl delete etcdpeer/db-3 pvc/db-3"


def test_a_problem_of_a_seed_that_keeps_clients_out_is_reported_with_the_way_back() -> None:
    """Without its claim: the EtcdPeer alone would be made again."""
    problem = PodProblem(reason="Unschedulable", message="no node")
    made = plan(seeding(CLOSED, claim=final_claim(), problem=problem))
    assert (made.stage, made.reason) == (Stage.HELD, "Unschedulable")
    assert made.message.endswith(f"; no node; {GIVE_UP}")


def test_a_silent_seed_that_keeps_clients_out_is_reported_with_the_way_back() -> None:
    state = seeding(CLOSED, claim=final_claim())
    assert GIVE_UP not in plan(state).message
    made = plan(replace(state, unavailable_for=PATIENCE))
    assert (made.actions, made.reason) == ((), "Restoring")
    assert made.message.endswith(f"; db-3 does not answer; {GIVE_UP}")
    reachable = plan(replace(state, backups=sight(), unavailable_for=PATIENCE))
    assert GIVE_UP not in reachable.message


@pytest.mark.parametrize("asked", [NAME, ""], ids=["requested still", "withdrawn"])
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(
            seeding(CLOSED, claim=GOING),
            "; to begin again: kubectl delete etcdpeer db-3",
            id="its EtcdPeer is there",
        ),
        pytest.param(
            seeding(CLOSED, claim=GOING, peer=peer("db-3", is_terminating=True), pod=None),
            "clients reach no member until that has ended",
            id="its EtcdPeer is going",
        ),
        pytest.param(
            filling(CLOSED, claim=GOING, pod=replace(pod("db-3"), is_terminating=True, node="node-7")),
            "; waiting for the pod db-3 (if its node node-7 never responds again: kubectl delete pod db-3 "
            "--force)",
            id="its pod does not end",
        ),
        pytest.param(
            filling(CLOSED, claim=GOING),
            "clients reach no member until that has ended",
            id="only the claim is left",
        ),
    ],
)
def test_a_claim_that_was_found_to_serve_is_waited_for_when_it_is_deleted(
    state: ClusterState, asked: str, expected: str
) -> None:
    """The Service is not opened, and nothing else is deleted, as long as it shows that."""
    state = replace(state, desired=replace(state.desired, restore_in_place=asked))
    made = plan(state)
    assert (made.actions, made.stage, made.reason) == ((), Stage.HELD, "Restoring")
    assert "the claim db-3, which was found to serve, is being deleted" in made.message
    assert made.message.endswith(expected)


@pytest.mark.parametrize("left", [peer("db-3", is_terminating=True), peer("db-3"), None])
def test_members_are_not_given_up_for_a_seed_that_is_ending(left: PeerFacts | None) -> None:
    """A person gave it up; it answers until its process ends."""
    full = answering(CLOSED, *NAMES, errors=("alarm:NOSPACE",))
    ending = replace(pod("db-3"), is_terminating=True)
    stopped = msgspec.structs.replace(IN_PLACE, stopped=True)
    assert plan(served(full, stopped, claim=GOING, peer=left, pod=ending)).actions == ()
    without = plan(served(full, stopped, claim=GOING, peer=None))
    assert without.actions == (), "its EtcdPeer is not created again"


@pytest.mark.parametrize("recovery", [IN_PLACE, RECOVERY])
def test_a_seed_that_serves_goes_on_although_its_claim_is_being_deleted(recovery: Recovery) -> None:
    made = plan(served(CLOSED, recovery, claim=GOING))
    assert "is being deleted" not in made.message
    unmarked = plan(served(CLOSED, IN_PLACE))
    assert any(isinstance(action, SetSeedExistingOnly) for action in unmarked.actions)
