import pytest

from e2e.support.testbed import ROOT

pytest_plugins = ["pytester"]

FAILING = """
def test_passes():
    pass

def test_fails():
    assert_short(3)

def assert_short(gap):
    assert gap < 1, f"longest gap {gap} s"

def test_errs(missing):
    pass
"""
CONFTEST = """
import pytest
from e2e.support import failures

@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    failures.register(config)
    failures.register(config)
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")], ids=["one process", "a worker"])
def test_failures_are_explained_at_once_and_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # quicker
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_some=FAILING)
    lines = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options).outlines
    assert "test_some.py::test_fails failed (call): AssertionError: longest gap 3 s assert 3 < 1" in lines
    explained = [line for line in lines if "failed (" in line]
    assert len(explained) == 2, explained
    assert any(line.startswith("test_some.py::test_errs failed (setup): ") for line in explained), explained
    assert lines.index(explained[-1]) < next(n for n, line in enumerate(lines) if "= FAILURES =" in line)
