"""The metric of Events that were not written."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

Dropped = Callable[[], Mapping[str, int]]
"""How many Events were dropped so far, by cause."""

_HELP = "Events that were not written since the operator was started, by cause."


class DroppedEvents(Collector):
    """Reads the numbers from who counts them, at each scrape."""

    def __init__(self, dropped: Dropped) -> None:
        self._dropped = dropped

    def collect(self) -> Iterator[Metric]:
        """The one family."""
        family = CounterMetricFamily("etcd_operator_events_dropped", _HELP, labels=("cause",))
        for cause, count in self._dropped().items():
            family.add_metric((cause,), count)
        yield family
