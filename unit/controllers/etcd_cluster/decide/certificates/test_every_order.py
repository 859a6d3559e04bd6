"""A rotation in a small cluster, in every order of events: all states that can be reached are visited."""

from collections.abc import Callable, Hashable, Iterator

import pytest

from etcd_operator.controllers.etcd_cluster.decide.certificates.facts import PATIENCE
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Phase
from unit.controllers.etcd_cluster.decide.certificates.model import GRACE, World

pytestmark = pytest.mark.exhaustive

Bundles = tuple[str, ...]


def moves(world: World, size: int) -> Iterator[Callable[[World], object]]:
    """What can happen next."""
    yield World.act
    yield lambda world: world.act(is_fresh=False)
    yield lambda world: world.act(is_killed=True)
    yield lambda world: world.pass_time(GRACE)
    for number in range(len(world.members)):
        yield lambda world, number=number: world.follow(number)  # type: ignore[misc]
        yield lambda world, number=number: world.start(number)  # type: ignore[misc]
    for number in range(len(world.clients)):
        yield lambda world, number=number: world.load(number)  # type: ignore[misc]
    if len(world.members) < size:
        yield World.add_member


def key(world: World) -> Hashable:
    """What distinguishes a state from others: who trusts and presents what, by the order of first mention."""
    numbers: dict[str, int] = {}

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers))

    def keys(bundle: tuple[object, ...] | None) -> Hashable:
        return None if bundle is None else tuple(number(each.key_id) for each in bundle)  # type: ignore[attr-defined]

    record = world.record
    return (
        record.phase,
        keys(record.trusted),
        number(record.issuer),
        record.request,
        None if record.since is None else world.now >= record.since + GRACE,
        keys(world.published),
        tuple(
            (
                *(
                    (number(each.leaf.issuer_key_id), number(each.leaf.serial), keys(each.bundle))
                    for each in (member.files, member.volume)
                ),
                keys(member.loaded),
                number(member.presented),
                world.now - member.files.leaf.not_before > PATIENCE,
            )
            for member in world.members.values()
        ),
        tuple(
            (
                number(client.secret.issuer_key_id),
                number(client.secret.serial),
                number(client.leaf.issuer_key_id),
                number(client.leaf.serial),
                keys(client.trusted),
                client.stale_since is None,
                client.stale_since is not None and world.now - client.stale_since >= GRACE,
            )
            for client in world.clients
        ),
    )


@pytest.mark.parametrize(
    ("size", "largest", "clients", "has_next"),
    [(1, 2, 1, True), (2, 2, 1, False), (3, 3, 1, True), (2, 3, 0, True)],
)
def test_a_rotation_in_every_order(size: int, largest: int, clients: int, has_next: bool) -> None:
    world = World.created(size=size, clients=clients, has_next=has_next)
    world.request = "1"
    seen, waiting, ended = {key(world)}, [world], 0
    phases = set()
    while waiting:
        world = waiting.pop()
        phases.add(world.record.phase)
        ended += world.record.phase is Phase.STABLE and world.record.issuer != "ca-1"
        if world.record.phase is Phase.STABLE and world.record.request == "1":
            continue
        for move in moves(world, largest):
            following = world.copied()
            move(following)
            if (state := key(following)) not in seen:
                assert following.faults() == []
                seen.add(state)
                waiting.append(following)
                end = following.copied()
                end.settle()
                assert end.record.issuer != "ca-1"
                assert end.faults() == []
    assert phases == set(Phase)
    assert ended
