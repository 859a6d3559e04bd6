"""Metrics of objects: series that passes over an object set, and that go with it."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from prometheus_client.registry import Collector

from etcd_operator.keys import Key

Figures = TypeVar("Figures")


class Series(Collector, Generic[Figures]):
    """The figures of all objects. They are shown only while `leads`: another process has newer ones then.

    What is known is kept meanwhile: objects at rest may have no pass when the process leads again.
    """

    def __init__(self, leads: Callable[[], bool]) -> None:
        self._leads = leads
        self._lock = threading.Lock()
        self._figures: dict[tuple[str, Key], Figures] = {}

    def set(self, of: str, key: Key, figures: Figures | None) -> None:
        """What a pass found; None removes the series of the object. of: what distinguishes equal keys."""
        with self._lock:
            if figures is None:
                self._figures.pop((of, key), None)
            else:
                self._figures[of, key] = figures

    def shown(self) -> list[tuple[str, Key, Figures]]:
        """All that a scrape shows now."""
        with self._lock:
            found = list(self._figures.items()) if self._leads() else []
        return [(of, key, figures) for (of, key), figures in found]
