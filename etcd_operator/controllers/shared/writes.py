"""How the passes of one controller write: each write is waited for until the caches show it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from etcd_operator.controllers.shared.decide.holds import CATCH_UP, RETRY_HELD
from etcd_operator.controllers.shared.expectations import Expectations
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.engine.controller import Result
from etcd_operator.errors import NotLeading, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.informer import Informer

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Writes:
    """What writes need."""

    client: Client
    informers: tuple[Informer[Any], ...]  # which have to show them
    expectations: Expectations

    def of(self, key: Key) -> Objects:
        """The objects in the namespace of a key, written by its pass."""
        wrote = self.expectations.noting(key, self.informers)
        return Objects(client=self.client, namespace=key.namespace, wrote=wrote)

    def pass_over(self, key: Key, run: Callable[[Objects], Result]) -> Result:
        """One pass, as soon as the caches show the writes of the last one. Raises what is retryable."""
        if not self.expectations.are_met(key):
            return Result(requeue_after=CATCH_UP, is_done=False)
        try:
            return run(self.of(key))
        except TerminalError as error:
            # No event leads to the next pass: time does.
            log.error("pass_failed", key=str(key), error=str(error))
            return Result(requeue_after=RETRY_HELD)


def require_leadership(may_act: Callable[[], bool]) -> None:
    """Raise NotLeading if this process may not write."""
    if not may_act():
        raise NotLeading("the operator may no longer be the leader: not acting")
