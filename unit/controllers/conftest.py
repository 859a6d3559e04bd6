"""Fixtures of several test files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.etcd.conftest import channels
from unit.passes.bench import bench
from unit.passes.jobs import Jobs, Made

__all__ = ["channels"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure coverage in the first case of each test only: a pass takes twice the time if traced."""
    pure, traced = {"decide", "dialects", "manifests"}, set()
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and not pure.intersection(item.path.parts):
            name = item.nodeid.partition("[")[0]
            if name in traced:
                item.add_marker("no_cover")
            traced.add(name)


@pytest.fixture
def made() -> Iterator[Made]:
    """An operator at work, and the Jobs it creates. Modules that need another world override it."""
    with bench() as world:
        world.start()
        yield world, Jobs(world)
