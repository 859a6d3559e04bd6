"""How the passes of one controller write: the next pass waits until the caches show it.

After a write, a pass over the same key would see the state before it. Each write is recorded
with the resourceVersion it returned; the key is *stale* until the informer has come that
far. A watch normally needs a few milliseconds. A cache that does not follow for half a minute
is reported: its kind may not be watched at all.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from etcd_operator.clock import Clock
from etcd_operator.controllers.shared.decide.holds import CATCH_UP, RETRY_HELD
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.engine.controller import Result
from etcd_operator.errors import NotLeading, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource

log = structlog.get_logger()

LATE = 30.0
"""Seconds until the status reports that a cache does not show a write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    informer: Informer[Any]
    written: Key
    version: int
    at: float  # monotonic
    lists: int  # begun until then

    @property
    def is_shown(self) -> bool:
        """Also by a later list whose version is lower: the API server's etcd was restored from a backup."""
        informer = self.informer
        return informer.caught_up(self.written, self.version) or informer.has_listed_since(self.lists)


class Expectations:
    """Writes not yet seen, by the cluster they were made for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._writes: dict[Key, list[_Write]] = {}

    def wrote(self, cluster: Key, informer: Informer[Any] | None, written: Key, version: str) -> None:
        """Record a write of `written` that returned `version`; what no informer watches is not waited for."""
        if informer is None or not version.isdecimal():
            return
        made = _Write(
            informer=informer,
            written=written,
            version=int(version),
            at=self._clock.monotonic(),
            lists=informer.reflector.lists_begun,
        )
        with self._lock:
            self._writes.setdefault(cluster, []).append(made)

    def are_met(self, cluster: Key) -> bool:
        """Whether the caches show all our writes for this cluster."""
        with self._lock:
            pending = [write for write in self._writes.get(cluster, ()) if not write.is_shown]
            if pending:
                self._writes[cluster] = pending
                return False
            self._writes.pop(cluster, None)
            return True

    def late(self, cluster: Key) -> tuple[str, ...]:
        """What has not shown our writes for this cluster for long, and why: each cache as a phrase."""
        latest = self._clock.monotonic() - LATE
        with self._lock:
            late = {write.informer for write in self._writes.get(cluster, ()) if write.at < latest}
        return tuple(sorted(f"{i.resource} ({i.reflector.last_error or 'no events arrive'})" for i in late))


@dataclass(frozen=True, kw_only=True)
class Writes:
    """What writes need."""

    client: Client
    informers: tuple[Informer[Any], ...]  # which have to show them
    expectations: Expectations
    may_act: Callable[[], bool]  # whether this process leads right now

    def of(self, key: Key) -> Objects:
        """The objects in the namespace of a key, written by its pass."""

        def wrote(resource: Resource, written: Key, version: str) -> None:
            informer = next((each for each in self.informers if each.resource == resource), None)
            self.expectations.wrote(key, informer, written, version)

        return Objects(
            client=self.client,
            namespace=key.namespace,
            wrote=wrote,
            require_leadership=self._require_leadership,
        )

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

    def _require_leadership(self) -> None:
        if not self.may_act():
            raise NotLeading("the operator may no longer be the leader: not acting")
