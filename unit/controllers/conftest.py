"""Fixtures of several test files."""

from collections.abc import Iterator

import pytest

from unit.etcd.conftest import channels
from unit.passes.bench import bench
from unit.passes.jobs import Jobs, Made

__all__ = ["channels"]


@pytest.fixture
def made() -> Iterator[Made]:
    """An operator at work, and the Jobs it creates. Modules that need another world override it."""
    with bench() as world:
        world.start()
        yield world, Jobs(world)
