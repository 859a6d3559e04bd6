"""Random tests give the same answer each time: the same examples on every machine, however slow.

New examples are a command of their own, `hack/test --explore` (see `unit.explore`).
"""

import signal
import zlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

from e2e.support import failures

# A time limit for each example measures how busy the machine is.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


SLOW = ("controllers", "etcd", "storage", "process")
"""Where a test lasts a second or more: passes of an operator, etcd processes, stores that fail."""
PURE = frozenset({"decide", "dialects", "manifests"})
"""Folders of SLOW whose tests last milliseconds."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a slow test with many cases, run the first and the last; where controllers run, one of these two.

    The other one is exhaustive: half of these tests take ephemeral members then, half persistent. The cases
    between are run on request only. Coverage is measured in the first test that is left of each slow file,
    and in no random test: what is traced takes twice the time.
    """
    here = Path(__file__).parent
    slow = [item for item in items if here in item.path.parents and _is_slow(item.path.relative_to(here))]
    for name, cases in groupby(slow, lambda item: item.nodeid.partition("[")[0]):
        first, *others = cases
        for mark in ("exhaustive", "long"):
            _mark(others[:-1], mark)
        if others and name.startswith("unit/controllers/"):
            _mark([first if zlib.crc32(name.encode()) % 2 else others[-1]], "exhaustive")
    for _, tests in groupby(slow, lambda item: item.path):
        left = [test for test in tests if test.get_closest_marker("exhaustive") is None]
        _mark(left[1:], "no_cover")
    impure = (item for item in items if not PURE.intersection(item.path.parts))
    _mark([item for item in impure if is_hypothesis_test(getattr(item, "obj", None))], "no_cover")


def _is_slow(path: Path) -> bool:
    return path.parts[0] in SLOW and not PURE.intersection(path.parts)


def _mark(items: Iterable[pytest.Item], name: str) -> None:
    for item in items:
        item.add_marker(name)


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
