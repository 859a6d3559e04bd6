"""Bootstraps in the model world that could lose acknowledged writes, step by step.

Each: a quorum formed and took a write before the operator decided; then objects were lost.
"""

import pytest

from unit.simulation.model import World
from unit.simulation.model_operator import KINDS, Operator

NAMES = ("db-0", "db-1", "db-2")


def _served_unseen(late: str) -> tuple[World, Operator]:
    """Two of three initial members have taken a write; the operator has only made the objects."""
    world = World(is_persistent=True, size=3)
    operator = Operator(world)
    operator.step()
    world.unpullable.add(late)
    world.run_controllers()
    for name in NAMES:
        world.run_kubelet(name)
    world.elect()
    world.write()
    world.unpullable.clear()
    return world, operator


def _observe(operator: Operator) -> None:
    for kind in KINDS:
        operator.deliver(kind)
    operator.step()
    operator.world.run_controllers()


def _elect(world: World, *names: str) -> None:
    for name in names:
        if name in world.pods:
            world.run_kubelet(name)
    world.elect()


def test_a_new_process_on_an_old_volume_is_no_proof_that_nobody_served() -> None:
    world, operator = _served_unseen(late="db-2")
    world.remove_pod("db-0")
    world.delete_claim("db-1")
    world.run_controllers()
    world.run_kubelet("db-0")
    _observe(operator)
    world.kill("db-0")
    _elect(world, "db-1", "db-2")

    assert world.losses == []


def test_a_lost_peer_with_data_on_its_claim_may_have_served() -> None:
    world, operator = _served_unseen(late="db-0")
    world.delete_peer("db-2")
    world.delete_claim("db-1")
    world.run_kubelet("db-0")
    _observe(operator)
    _elect(world, "db-0", "db-1")

    assert world.losses == []


def test_a_bootstrap_that_goes_on_with_a_claim_missing_waits_for_those_that_have_data() -> None:
    world, operator = _served_unseen(late="db-2")
    world.delete_cluster()
    world.delete_claim("db-1")
    world.create_cluster(3)
    _observe(operator)
    _observe(operator)
    _elect(world, "db-1", "db-2")

    assert world.losses == []


@pytest.mark.parametrize("late", NAMES)
@pytest.mark.parametrize("is_resource_kept", [True, False], ids=["the cluster is kept", "created again"])
def test_all_peers_and_one_claim_lost_before_the_recorded_cluster_id_bootstrap_nothing_again(
    late: str, is_resource_kept: bool
) -> None:
    world, operator = _served_unseen(late=late)
    if not is_resource_kept:
        world.delete_cluster()
        world.create_cluster(3)
    for name in NAMES:
        world.delete_peer(name)
    world.delete_claim("db-1")
    for _ in range(2):
        _observe(operator)
        assert "db-1" not in world.claims
        _elect(world, "db-0", "db-2")
    assert world.losses == []

    for _ in range(12):
        _observe(operator)
        _elect(world, *NAMES)
    made = operator.decide()
    assert made is not None
    assert (made[1].reason, world.losses) == ("Settled", [])
    assert world.claims["db-1"].member_id != "id-db-1"


def test_claims_of_which_none_was_started_are_used_by_the_next_bootstrap() -> None:
    world = World(is_persistent=True, size=3)
    operator = Operator(world)
    operator.step(stop_after=3)  # two of three peers
    world.run_controllers()
    world.delete_cluster()
    world.create_cluster(3)
    assert sorted(world.claims) == ["db-0", "db-1"]

    for _ in range(6):
        _observe(operator)
        _elect(world, *NAMES)
    made = operator.decide()
    assert made is not None
    assert (made[1].reason, world.losses) == ("Settled", [])
