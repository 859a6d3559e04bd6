"""Metrics of regular backups: one series for each object that has them, as long as it has them.

A time is exported, and no age: an age would stand still if the operator did.
"""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from etcd_operator.object_metrics import BackupMetrics
from etcd_operator.observability.series import Series

PREFIX = "etcd_operator_backup_"
LABELS = ("namespace", "kind", "name", "etcd_cluster")

Value = Callable[[BackupMetrics], float | None]

_GAUGES: tuple[tuple[str, str, Value], ...] = (
    (
        "last_success_timestamp_seconds",
        "When the last backup was completed, or the backup tool found that nothing has changed since.",
        lambda metrics: metrics.last_success,
    ),
    (
        "last_verified_timestamp_seconds",
        "When the newest verified backup was completed; 0 if none has been verified yet.",
        lambda metrics: metrics.last_verified,
    ),
    ("last_duration_seconds", "How long the last backup took.", lambda metrics: metrics.took),
    ("last_size_bytes", "The size of the snapshot of the last backup.", lambda metrics: metrics.size),
    (
        "healthy",
        "0 if the last success is older than two intervals, 1 if not; no series if neither is known yet.",
        lambda metrics: metrics.is_healthy,
    ),
)
_FAILURES = "Backups that have failed, since the operator or the backup tool was started."


class BackupSeries(Series[BackupMetrics]):
    """The metrics of all objects with regular backups, by kind."""

    def collect(self) -> Iterator[Metric]:
        """All families, at each scrape."""
        labelled = [((key.namespace, kind, key.name, each.cluster), each) for kind, key, each in self.shown()]
        for name, description, value in _GAUGES:
            gauge = GaugeMetricFamily(PREFIX + name, description, labels=LABELS)
            for labels, each in labelled:
                if (number := value(each)) is not None:
                    gauge.add_metric(labels, number)
            yield gauge
        counter = CounterMetricFamily(PREFIX + "failures", _FAILURES, labels=LABELS)
        for labels, each in labelled:
            if each.failures is not None:
                counter.add_metric(labels, each.failures)
        yield counter
