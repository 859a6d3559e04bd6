"""Random tests give the same answer each time: the same examples on every machine.

New examples are a command of their own, `hack/test --explore` (see `unit.explore`).
"""

import pytest
from hypothesis import settings

from e2e.support import failures

settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    failures.register(config)
