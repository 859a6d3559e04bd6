"""`hack/test`: the checks, with everything that they need."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from contextlib import ExitStack

from localcluster.console import RefusalError

from . import options, suite
from .deployment import deploy, withdraw
from .kubernetes import Kubernetes

DESCRIPTION = """\
Run the checks: style, types, imports, unit tests, package, and system tests on a real Kubernetes: the
walkthroughs and one test for each capability. With --all, as in CI: all system tests, and the unit tests that
are exhaustive.

Sets up what they need: a virtual environment, a local Kubernetes (Linux, as root; the first time that takes
some minutes) and the operator on it. The Kubernetes is kept, so that the next run is quick.
"""


def main() -> int:
    """Run the suite; the exit code."""
    parser = _parser()
    chosen = parser.parse_args()
    if chosen.all and chosen.environments:
        parser.error("either --all or the names of checks")
    # What runs beside a check has a session of its own, so nobody else ends it.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    return explore(chosen.explore) if chosen.explore else Run(chosen).run()


def explore(time: str) -> int:
    """Run the random models with new seeds for `time`; the exit code."""
    if not suite.install_tox():
        return 1
    return 0 if suite.tox("explore", suite.variables("explore", None), "--", "--for", time) else 1


class Run:
    """One run of the suite."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._options = chosen
        self._wanted = chosen.environments or (suite.ALL if chosen.all else suite.QUICK)
        self._times = suite.Timetable()
        self._kubernetes: Kubernetes | None = None
        self._stores: suite.Beside | None = None
        self._beside: dict[str, suite.Beside] = {}
        self._ending = ExitStack()

    def run(self) -> int:
        """All steps, the quick ones first; the exit code."""
        if not self._times.run("tools", suite.install_tox):
            return self._times.report()
        with self._ending:
            for environment in self._wanted:
                if not self._hosts(environment):
                    self._check_with_others(environment)
        if self._options.down and self._options.kubeconfig is None:
            self._times.run("down", self._take_down)
        return self._times.report()

    def _hosts(self, environment: str) -> list[str]:
        """Those checks beside which this one runs, in their order."""
        return [each for each in self._wanted if each in suite.BESIDE.get(environment, ())]

    def _check_with_others(self, environment: str) -> None:
        for other in self._wanted:
            if self._hosts(other)[:1] == [environment]:
                print(f"\n== {other}, during {' and '.join(self._hosts(other))}", flush=True)
                beside = suite.tox_beside(other, self._variables(other))
                self._beside[other] = self._ending.enter_context(beside)
        self._check(environment)
        for other in self._wanted:
            if self._hosts(other)[-1:] == [environment]:
                print(f"\n== {other}", flush=True)
                seconds, passed = self._beside[other].finish()
                self._times.note(other, seconds, passed=passed)

    def _check(self, environment: str) -> None:
        if environment in suite.ON_KUBERNETES and not self._has_kubernetes():
            self._times.skip(environment)
            return
        if environment in suite.ON_OPERATOR and not self._has_operator():
            self._times.skip(environment)
            return
        self._times.run(environment, lambda: suite.tox(environment, self._variables(environment)))

    def _variables(self, environment: str) -> dict[str, str]:
        return suite.variables(environment, self._kubernetes)

    def _has_kubernetes(self) -> bool:
        if self._kubernetes is None and not any(name == "kubernetes" for name, *_ in self._times.rows):
            self._times.run("kubernetes", self._prepare)
        return self._kubernetes is not None

    def _has_operator(self) -> bool:
        done = [passed for name, _, passed in self._times.rows if name == "deploy"]
        if done:
            return done[0]
        self._await_stores()
        return self._times.run("deploy", self._deploy)

    def _prepare(self) -> bool:
        self._kubernetes = options.prepared(self._options)
        withdraw(self._kubernetes)
        loader = self._kubernetes.store_loader
        if loader and suite.ON_OPERATOR.intersection(self._wanted):
            self._stores = self._ending.enter_context(suite.Beside(loader, os.environ))
        return True

    def _await_stores(self) -> None:
        """The stores for tests of backups: built since there is a Kubernetes, beside the unit tests."""
        if self._stores is not None:
            print("\n== stores", flush=True)
            seconds, passed = self._stores.finish()
            self._times.note("stores", seconds, passed=passed)

    def _deploy(self) -> bool:
        if self._kubernetes is None:
            raise RefusalError("there is no Kubernetes to deploy to")
        deploy(self._kubernetes, self._options.image)
        return True

    def _take_down(self) -> bool:
        if self._kubernetes is not None:
            self._kubernetes.remove()
        return True


def _parser() -> argparse.ArgumentParser:
    parser = options.parser("test", DESCRIPTION)
    parser.add_argument(
        "--provider",
        choices=options.PROVIDERS,
        default="local",
        help="what provides the Kubernetes: hack/cluster (local, the default), or kind, which needs Docker",
    )
    parser.add_argument("--all", action="store_true", help=f"run these: {', '.join(suite.ALL)}")
    parser.add_argument(
        "--explore",
        metavar="TIME",
        help="instead of the checks: run the random simulations with new seeds for this time, such as 30m",
    )
    parser.add_argument("--down", action="store_true", help="remove the local Kubernetes at the end")
    parser.add_argument(
        "environments",
        nargs="*",
        choices=[*suite.ENVIRONMENTS, []],
        metavar="CHECK",
        help=f"run these, each in full (default: {', '.join(suite.QUICK)}); also: "
        f"{', '.join(name for name in suite.ALL if name not in suite.QUICK)}",
    )
    return parser
