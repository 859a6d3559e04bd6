"""Metrics of EtcdRestores: the phase of each, and when one that has not ended last made progress."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from etcd_operator.object_metrics import RestoreMetrics
from etcd_operator.observability.series import Series

LABELS = ("namespace", "name", "etcd_cluster")

_PHASE = "1 for the phase of each EtcdRestore: Pending, Completed or Failed."
_PROGRESS = "When an EtcdRestore that has not ended last made progress, or began."


class RestoreSeries(Series[RestoreMetrics]):
    """The metrics of all EtcdRestores."""

    def collect(self) -> Iterator[Metric]:
        """All families, at each scrape."""
        phase = GaugeMetricFamily("etcd_operator_restore_phase", _PHASE, labels=(*LABELS, "phase"))
        progress = GaugeMetricFamily(
            "etcd_operator_restore_last_progress_timestamp_seconds", _PROGRESS, labels=LABELS
        )
        for _, key, each in self.shown():
            labels = (key.namespace, key.name, each.cluster)
            phase.add_metric((*labels, each.phase), 1)
            if each.last_progress is not None:
                progress.add_metric(labels, each.last_progress)
        yield phase
        yield progress
