"""Prints why a test failed when it fails: who runs the tests may keep only the beginning of the reports."""

import pytest

NAME = "failures at once"

LONGEST = 1000
"""Characters of one failure."""


def register(config: pytest.Config) -> None:
    """Print failures at once; for a `pytest_configure` that is `trylast`: the terminal comes first."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not config.pluginmanager.has_plugin(NAME):
        config.pluginmanager.register(Failures(terminal), NAME)


class Failures:
    """A pytest plugin that prints one line for each failure."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called for each phase of a test, in the main process for all workers."""
        if report.failed:
            self._terminal.write_line(f"\n{report.nodeid} failed ({report.when}): {reason(report)}", red=True)


def reason(report: pytest.TestReport) -> str:
    """The message of the error, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    return " ".join(text.split())[:LONGEST]
