"""Kills the deployed operator again and again, in the two ways after which nothing releases its Lease."""

import threading
from collections.abc import Callable
from itertools import cycle
from types import TracebackType

from e2e.support.operators import DeployedOperator
from e2e.support.testbed import TestbedError
from localcluster.commands import CommandError


class RepeatedKills:
    """Until left: SIGKILL and forced deletion in turn, one every `every` seconds.

    So each pod is killed at most once: the kubelet starts a container again at once the first time only.
    """

    def __init__(self, operator: DeployedOperator, *, every: float) -> None:
        self.count = 0
        self._every = every
        self._ways: tuple[Callable[[], None], ...] = (operator.kill_process, operator.delete_by_force)
        self._ended = threading.Event()
        self._failures: list[Exception] = []
        self._thread = threading.Thread(target=self._kill, name="kills")

    def __enter__(self) -> "RepeatedKills":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if error is None and not self.count and self._failures:
            raise self._failures[0]

    def _kill(self) -> None:
        for way in cycle(self._ways):
            if self._ended.wait(self._every):
                return
            try:
                way()
                self.count += 1
            except (TestbedError, CommandError, OSError) as failure:
                self._failures.append(failure)  # a pod that has just ended; the next kill comes soon
