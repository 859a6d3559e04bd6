"""Metrics of EtcdClusters: whether each serves, what holds it, and what the operator does with it."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from etcd_operator.object_metrics import ClusterMetrics
from etcd_operator.observability.series import Series

LABELS = ("namespace", "group", "name")

_AVAILABLE = "1 while a quorum answers, 0 while none does; no series until the cluster has served."
_HELD = "1 while the operator changes nothing until something outside changes, by reason."
_WORKING = "1 while the operator changes the cluster, or waits for a change to take effect, by reason."


class ClusterSeries(Series[ClusterMetrics]):
    """The metrics of all clusters, by API group."""

    def collect(self) -> Iterator[Metric]:
        """All families, at each scrape."""
        available = GaugeMetricFamily("etcd_operator_cluster_available", _AVAILABLE, labels=LABELS)
        held = GaugeMetricFamily("etcd_operator_cluster_held", _HELD, labels=(*LABELS, "reason"))
        working = GaugeMetricFamily("etcd_operator_cluster_working", _WORKING, labels=(*LABELS, "reason"))
        for group, key, each in self.shown():
            labels = (key.namespace, group, key.name)
            if each.is_available is not None:
                available.add_metric(labels, each.is_available)
            if each.held:
                held.add_metric((*labels, each.held), 1)
            if each.working:
                working.add_metric((*labels, each.working), 1)
        yield available
        yield held
        yield working
