"""Our own writes that the caches have not shown yet.

After a write, a pass over the same key would see the state before it. Each write is recorded
with the resourceVersion it returned; the key is *stale* until the informer has come that
far. A watch normally needs a few milliseconds. A cache that does not follow for half a minute
is reported: its kind may not be watched at all.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from etcd_operator.clock import Clock
from etcd_operator.controllers.shared.objects import Wrote
from etcd_operator.keys import Key
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource

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

    def noting(self, cluster: Key, informers: Iterable[Informer[Any]]) -> Wrote:
        """What records the writes that are made for a cluster (or peer)."""

        def wrote(resource: Resource, written: Key, version: str) -> None:
            informer = next((each for each in informers if each.resource == resource), None)
            self.wrote(cluster, informer, written, version)

        return wrote

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
