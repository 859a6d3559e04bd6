"""Fixtures of several test files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.etcd.channel import Channels
from unit.reconcile.bench import bench
from unit.reconcile.jobs import Jobs, Made


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure coverage in the first case of each test only: a pass takes twice the time if traced."""
    here, traced = Path(__file__).parent, set()
    for item in items:
        if here in item.path.parents:
            name = item.nodeid.partition("[")[0]
            if name in traced:
                item.add_marker("no_cover")
            traced.add(name)


@pytest.fixture
def channels() -> Iterator[Channels]:
    """Channels to members, closed at the end."""
    channels = Channels()
    yield channels
    channels.close()


@pytest.fixture
def made() -> Iterator[Made]:
    """An operator at work, and the Jobs it creates. Modules that need another world override it."""
    with bench() as world:
        world.start()
        yield world, Jobs(world)
