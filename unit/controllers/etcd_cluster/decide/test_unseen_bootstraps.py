"""The same model world, with a narrower script: a bootstrap that nobody observed, then losses, then one
observation at a time.

The state machine in test_model.py seldom gets where two initial members lose what a third still holds; here
nearly every run does.
"""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from unit.simulation.model import World
from unit.simulation.model_operator import KINDS, Operator

Round = tuple[set[int], set[int], set[int], set[int], bool]
"""Whose pod or peer is lost, whose data is lost as well, who is up when the operator observes, who
is up afterwards, whether the others freeze."""

SOME = st.sampled_from([{n for n in range(3) if bits >> n & 1} for bits in range(8)])
"""Evenly: sets drawn by hypothesis are small, and then nothing much is lost."""

ROUNDS = st.lists(st.tuples(SOME, SOME, SOME, SOME, st.booleans()), min_size=1, max_size=3)


def _names(world: World, ordinals: Iterable[int]) -> set[str]:
    return {f"db-{ordinal}" if world.is_persistent else f"db-{ordinal:04d}" for ordinal in ordinals}


def _run(world: World, up: set[str], *, freezes: bool) -> None:
    """Only these run; the others freeze, or end without being started again."""
    world.run_controllers()
    _hush(world, up, freezes=freezes)
    for name in sorted(up & set(world.pods)):
        world.run_kubelet(name)
    world.elect()
    world.write()


def _hush(world: World, up: set[str], *, freezes: bool) -> None:
    for process in list(world.processes.values()):
        process.is_frozen = freezes and process.name not in up
        if not freezes and process.name not in up:
            world.kill(process.name)


def _lose(world: World, objects: set[str], data: set[str]) -> None:
    for name in objects | data:
        if not world.is_persistent:
            world.remove_pod(name)
        elif name in data:
            world.delete_claim(name)
        else:
            world.delete_peer(name)


def _observe(operator: Operator) -> None:
    for kind in KINDS:
        operator.deliver(kind)
    operator.step()


@settings(max_examples=600, print_blob=True)
@given(is_persistent=st.booleans(), size=st.sampled_from([3, 3, 3, 2, 1]), started=SOME, rounds=ROUNDS)
def test_what_an_unseen_quorum_acknowledged_outlives_the_loss_of_some_of_its_members(
    is_persistent: bool, size: int, started: set[int], rounds: list[Round]
) -> None:
    world = World(is_persistent=is_persistent, size=size)
    operator = Operator(world)
    operator.step()
    _run(world, _names(world, started), freezes=False)
    for objects, data, seen, up, freezes in rounds:
        _lose(world, _names(world, objects), _names(world, data))
        _hush(world, _names(world, seen), freezes=freezes)
        _observe(operator)
        _run(world, _names(world, up), freezes=freezes)
        assert not world.losses


@settings(max_examples=200, print_blob=True)
@given(size=st.sampled_from([3, 5, 1]), started=SOME, data=SOME, resized=st.integers(1, 5), up=SOME)
def test_what_was_acknowledged_outlives_the_resource(
    size: int, started: set[int], data: set[int], resized: int, up: set[int]
) -> None:
    world = World(is_persistent=True, size=size)
    operator = Operator(world)
    operator.step()
    _run(world, _names(world, started), freezes=False)
    world.delete_cluster()
    for name in _names(world, data):
        world.delete_claim(name)
    world.create_cluster(resized)
    for _ in range(2):
        _observe(operator)
        _run(world, _names(world, up), freezes=False)
        assert not world.losses
