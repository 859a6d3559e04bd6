"""Kills the deployed operator again and again, in the two ways after which nothing releases its Lease."""

from itertools import cycle

from e2e.support.operators import DeployedOperator
from e2e.support.pace import Paced
from e2e.support.testbed import TestbedError
from localcluster.commands import CommandError


class RepeatedKills:
    """Until left: SIGKILL and forced deletion in turn, one every `every` seconds, the first one at once.

    So each pod is killed at most once: the kubelet starts a container again at once the first time only.
    """

    def __init__(self, operator: DeployedOperator, *, every: float) -> None:
        self.count = 0
        self._ways = cycle((operator.kill_process, operator.delete_by_force))
        self._failures: list[Exception] = []
        self._pace = Paced(self._kill, interval=every, name="kills")

    def __enter__(self) -> "RepeatedKills":
        self._pace.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pace.stop()
        assert self.count, f"nothing was killed: {self._failures}"

    def _kill(self) -> None:
        try:
            next(self._ways)()
            self.count += 1
        except (TestbedError, CommandError, OSError) as failure:
            self._failures.append(failure)  # a pod that has just ended; the next kill comes soon
