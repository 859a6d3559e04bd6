"""In every order of events, members and clients accept each other, and every rotation comes to its end."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Phase
from unit.controllers.etcd_cluster.decide.certificates.certs import CA_LIFE, DAY, LEAF_LIFE
from unit.controllers.etcd_cluster.decide.certificates.model import World

MINUTE = timedelta(minutes=1)
Event = tuple[str, int]

EVENTS: dict[str, Callable[[World, int], object]] = {
    "act": lambda world, _: world.act(),
    "act on former handshakes": lambda world, _: world.act(is_fresh=False),
    "act and be killed": lambda world, _: world.act(is_killed=True),
    "follow": World.follow,
    "start": World.start,
    "load": World.load,
    "a little time": lambda world, number: world.pass_time(number * 2 * MINUTE),
    "the clock goes back": lambda world, number: world.set_back(number * MINUTE / 2),
    "add": lambda world, _: world.add_member() if len(world.members) < 5 else None,
    "remove": World.remove,
}
OFTEN = ("act", "act", "act", "follow", "follow", "start", "a little time")
EVENT = st.tuples(st.sampled_from([*EVENTS, *OFTEN]), st.integers(min_value=0, max_value=4))


def after(world: World, events: list[Event]) -> World:
    """What must hold is checked after each event."""
    assert world.faults() == []
    for number, (name, argument) in enumerate(events):
        EVENTS[name](world, argument)
        assert world.faults() == [], f"after {events[: number + 1]}"
    return world


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    size=st.integers(min_value=1, max_value=4),
    has_next=st.booleans(),
    age=st.sampled_from([timedelta(), LEAF_LIFE * 2 / 3, LEAF_LIFE * 2 / 3 - DAY / 8, CA_LIFE * 2 / 3]),
    offset=st.integers(min_value=-2, max_value=2),
    request=st.booleans(),
    events=st.lists(EVENT, max_size=120),
)
def test_all_accept_each_other_at_every_step(
    size: int, has_next: bool, age: timedelta, offset: int, request: bool, events: list[Event]
) -> None:
    world = World.created(size=size, clients=2, has_next=has_next)
    while age > timedelta():
        step = min(age, DAY)
        world.pass_time(step)
        age -= step
        if age > DAY:
            world.settle()
    world.offset = offset * MINUTE
    world.request = "1" if request else ""
    issuer = world.record.issuer
    after(world, events)
    world.settle()
    assert world.faults() == []
    assert world.record.phase is Phase.STABLE
    assert (world.record.issuer != issuer) is request
    assert len(world.record.trusted) == 1 + (has_next or request)
    assert all(member.loaded == world.record.trusted for member in world.members.values())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    size=st.integers(min_value=1, max_value=4),
    days=st.integers(min_value=-60, max_value=400),
    request=st.booleans(),
    before=st.lists(EVENT, max_size=40),
    events=st.lists(EVENT, max_size=40),
)
@example(size=3, days=365, request=False, before=[], events=[])
@example(size=3, days=-60, request=True, before=[("act", 0)] * 3, events=[])
def test_all_accept_each_other_again_although_nobody_was_there_or_the_clock_was_wrong(
    size: int, days: int, request: bool, before: list[Event], events: list[Event]
) -> None:
    world = World.created(size=size, clients=2)
    world.request = "1" if request else ""
    after(world, before)
    world.pass_time(days * DAY)
    for name, argument in events:
        EVENTS[name](world, argument)
    world.settle()
    assert world.faults() == []
    assert all(member.loaded == world.record.trusted for member in world.members.values())


def restarts(world: World) -> int:
    """How many processes the operator stops until nothing is left to do."""
    stopped = 0
    for _ in range(400):
        step = world.act()
        stopped += sum(member.loaded is None for member in world.members.values())
        for number in range(len(world.members)):
            world.follow(number)
            if list(world.members.values())[number].loaded is None:
                world.start(number)
        if step is None:
            return stopped
        world.pass_time(5 * MINUTE)
    raise AssertionError("not settled")


@pytest.mark.parametrize(
    ("days", "request_", "has_next", "expected"),
    [
        (6, "", True, 0),  # leafs
        (18, "", True, 3),  # CAs: one roll
        (0, "1", True, 3),  # a rotation: one roll, to drop the old CA
        (0, "1", False, 6),  # and one before it, to trust the new one
        (8.9, "", True, 0),  # leafs, nearly too late
        (10, "", True, 0),  # leafs that have expired
        (30, "", True, 3),  # all has expired
    ],
)
def test_each_change_costs_as_few_restarts_as_can_be(
    days: float, request_: str, has_next: bool, expected: int
) -> None:
    world = World.created(size=3, clients=0, has_next=has_next)
    world.now += days * DAY
    world.request = request_
    assert restarts(world) == expected
    world.add_member()
    world.start(3)
    assert restarts(world) == 0


def test_years_pass_without_a_person() -> None:
    world = World.created(size=3, clients=2)
    for number in range(365):
        world.pass_time(DAY)
        world.request = str(number // 100)
        world.settle()
        assert world.faults() == []
    assert world.cas == 2 + 4
