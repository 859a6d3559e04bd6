"""Metrics of objects: series that passes over an object set, and that go with it."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from prometheus_client.registry import Collector

from etcd_operator.keys import Key

Metrics = TypeVar("Metrics")


class Series(Collector, Generic[Metrics]):
    """The metrics of all objects. They are shown only while `leads`: another process has newer ones then.

    What is known is kept meanwhile: objects at rest may have no pass when the process leads again.
    """

    def __init__(self, leads: Callable[[], bool]) -> None:
        self._leads = leads
        self._lock = threading.Lock()
        self._metrics: dict[tuple[str, Key], Metrics] = {}

    def set(self, of: str, key: Key, metrics: Metrics | None) -> None:
        """What a pass found; None removes the series of the object. of: what distinguishes equal keys."""
        with self._lock:
            if metrics is None:
                self._metrics.pop((of, key), None)
            else:
                self._metrics[of, key] = metrics

    def shown(self) -> list[tuple[str, Key, Metrics]]:
        """All that a scrape shows now."""
        with self._lock:
            found = list(self._metrics.items()) if self._leads() else []
        return [(of, key, metrics) for (of, key), metrics in found]
