"""Keeps NetworkPolicies at the end of passes, without anything that depends on the result.

What fails is remembered in memory, and reported by the next pass. A webhook for NetworkPolicies that does
not answer must not keep the workers from other clusters: after a request that took long, none is made for a
while.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

import structlog

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.network import NetworkPolicies, OtherPolicy
from etcd_operator.controllers.shared.caches import Cluster
from etcd_operator.controllers.shared.decide.holds import CATCH_UP, RETRY_HELD
from etcd_operator.controllers.shared.failures import LONG, Failures, attempt, reason_of
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.objects import Overridden, RecordEvent
from etcd_operator.errors import Invalid, NamespaceTerminating, NotLeading, OperatorError, Unavailable
from etcd_operator.keys import Key

PAUSE = 30.0
"""Seconds until a request is repeated that the API server could not carry out."""

_PREDECESSOR = 0.5
"""Seconds until the creation is tried again while another object of that name is being deleted."""

_REASONS: dict[type[Exception], str] = {Invalid: "Refused", Overridden: "Overridden"}

Problem = tuple[str, str]
"""Reason and message."""

log = structlog.get_logger()


@dataclass(kw_only=True)
class NetworkKeeper(Generic[Cluster]):
    """The NetworkPolicies of one API group, and what is wrong with them. Safe from any thread, by key."""

    policies: NetworkPolicies[Cluster]
    failures: Failures
    clock: Clock
    jitter: Callable[[], float]
    _problems: dict[Key, Problem] = field(default_factory=dict, init=False)
    # when the next request is made for a cluster (monotonic), unless its generation is another one by then
    _retries: dict[Key, tuple[float, int]] = field(default_factory=dict, init=False)
    _pause_ends: float = field(default=0.0, init=False)  # monotonic, for all clusters

    def problem(self, key: Key) -> Problem | None:
        """Why the NetworkPolicy of a cluster is not as desired, as far as it is to be reported."""
        return self._problems.get(key)

    def forget(self, key: Key) -> None:
        """All is well with that one, or its cluster is deleted."""
        self._problems.pop(key, None)
        self._retries.pop(key, None)
        self.failures.passed(key)

    def keep(self, state: ClusterState, report: RecordEvent) -> float | None:
        """Write or remove it; seconds after which the next pass tries again, or None if it need not."""
        key, began = state.desired.key, self.clock.monotonic()
        retry, generation = self._retries.get(key, (0.0, 0))
        due = max(retry if generation == state.desired.generation else 0.0, self._pause_ends)
        if began < due:
            return self._spread(due - began)
        failure = attempt(lambda: self.policies.keep(state, report))
        now = self.clock.monotonic()
        if isinstance(failure, NotLeading):
            return None
        if isinstance(failure, Unavailable) and now - began > LONG:
            self._pause_ends = now + PAUSE
        wait = self._note(state, failure, now)
        return wait if self.problem(key) == state.network_problem else CATCH_UP

    def _note(self, state: ClusterState, failure: Exception | None, now: float) -> float | None:
        key = state.desired.key
        if failure is None:
            self.forget(key)
            return None
        message = self.failures.failed(key, failure)
        if message and not _is_passing(failure):
            self._problems[key] = (_reason_of(failure), message)
        if isinstance(failure, OtherPolicy):
            return None  # an event ends it, and ours is kept all the same
        if not isinstance(failure, OperatorError):
            log.error("network_policy_failed", key=str(key), error=message)
        wait = _wait_after(failure)
        self._retries[key] = (now + wait, state.desired.generation)
        return self._spread(wait)

    def _spread(self, seconds: float) -> float:
        """These seconds, and a little more at random: so each pause ends for another cluster first."""
        return seconds * (1.0 + 0.2 * self.jitter())


def _is_passing(failure: Exception) -> bool:
    return isinstance(failure, NamespaceTerminating) or (
        isinstance(failure, NameConflict) and failure.is_passing
    )


def _wait_after(failure: Exception) -> float:
    if isinstance(failure, NameConflict) and failure.is_passing:
        return _PREDECESSOR
    return PAUSE if isinstance(failure, Unavailable) else RETRY_HELD


def _reason_of(failure: Exception) -> str:
    known = (reason for kind, reason in _REASONS.items() if isinstance(failure, kind))
    return next(known, None) or reason_of(failure)
