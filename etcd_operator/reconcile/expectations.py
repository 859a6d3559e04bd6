"""Our own writes that the caches have not shown yet.

After a write, a pass over the same key would see the state before it. Each write is recorded
with the resourceVersion it returned; the key is *stale* until the informer has come that
far. A watch normally needs a few milliseconds.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from etcd_operator.keys import Key
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource
from etcd_operator.reconcile.objects import Wrote


class Expectations:
    """Writes not yet seen, by the cluster they were made for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writes: dict[Key, list[Callable[[], bool]]] = {}
        """Whether the cache shows it, for each write."""

    def wrote(self, cluster: Key, informer: Informer[Any] | None, written: Key, version: str) -> None:
        """Record a write of `written` that returned `version`; what no informer watches is not waited for."""
        if informer is None or not version.isdecimal():
            return
        is_shown = partial(informer.caught_up, written, int(version))
        with self._lock:
            self._writes.setdefault(cluster, []).append(is_shown)

    def noting(self, cluster: Key, informer_of: Callable[[Resource], Informer[Any] | None]) -> Wrote:
        """What records the writes that are made for a cluster (or peer)."""

        def wrote(resource: Resource, written: Key, version: str) -> None:
            self.wrote(cluster, informer_of(resource), written, version)

        return wrote

    def are_met(self, cluster: Key) -> bool:
        """Whether the caches show all our writes for this cluster."""
        with self._lock:
            pending = [is_shown for is_shown in self._writes.get(cluster, ()) if not is_shown()]
            if pending:
                self._writes[cluster] = pending
                return False
            self._writes.pop(cluster, None)
            return True
