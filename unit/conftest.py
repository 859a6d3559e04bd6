"""Random tests give the same answer each time: the same examples on every machine, however slow.

New examples are a command of their own, `hack/test --explore` (see `unit.explore`).
"""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from e2e.support import failures

# A time limit for each example measures how busy the machine is.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    failures.register(config)


@pytest.fixture
def default_signals() -> Iterator[None]:
    """For tests of signals: processes inherit what is ignored, SIGHUP by nohup, SIGINT by `&` in scripts."""
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGHUP, hangup)
    signal.signal(signal.SIGINT, interrupt)
