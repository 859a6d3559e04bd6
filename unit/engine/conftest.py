from collections.abc import Iterator

import pytest

from etcd_operator.engine.workqueue import WorkQueue
from unit.engine.worlds import World
from unit.fakes.clock import FakeClock


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    assert world.controller.stop(30)
    assert not world.crashes


@pytest.fixture
def running(world: World) -> World:
    world.controller.start()
    return world


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock)
