"""Metrics of EtcdClusters, regular backups and EtcdRestores: each object has series as long as it exists.

Times are exported, and no ages: an age would stand still if the operator did.
"""

import threading
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from etcd_operator.keys import Key
from etcd_operator.object_metrics import BackupMetrics, ClusterMetrics, ObjectMetrics

_CLUSTER = ("namespace", "group", "name")
_BACKUP = ("namespace", "kind", "name", "etcd_cluster")
_RESTORE = ("namespace", "name", "etcd_cluster")

_FAMILIES: dict[str, tuple[tuple[str, ...], str]] = {
    "cluster_available": (
        _CLUSTER,
        "1 while a quorum answers, 0 while none does; no series until the cluster has served.",
    ),
    "cluster_held": (
        (*_CLUSTER, "reason"),
        "1 while the operator changes nothing until something outside changes, by reason.",
    ),
    "cluster_working": (
        (*_CLUSTER, "reason"),
        "1 while the operator changes the cluster, or waits for a change to take effect, by reason.",
    ),
    "certificate_expiry_timestamp_seconds": (
        (*_CLUSTER, "kind"),
        "When the certificate of this kind that ends first expires, with TLS.",
    ),
    "certificate_renewal_timestamp_seconds": (
        (*_CLUSTER, "kind"),
        "When that certificate is due to be renewed.",
    ),
    "backup_last_success_timestamp_seconds": (
        _BACKUP,
        "When the last backup was completed, or the backup tool found that nothing has changed since.",
    ),
    "backup_last_verified_timestamp_seconds": (
        _BACKUP,
        "When the newest verified backup was completed; 0 if none has been verified yet.",
    ),
    "backup_last_duration_seconds": (_BACKUP, "How long the last backup took."),
    "backup_last_size_bytes": (_BACKUP, "The size of the snapshot of the last backup."),
    "backup_healthy": (
        _BACKUP,
        "0 if the last success is older than two intervals, 1 if not; no series if neither is known yet.",
    ),
    "backup_failures": (
        _BACKUP,
        "Backups that have failed, since the operator or the backup tool was started.",
    ),
    "restore_phase": (
        (*_RESTORE, "phase"),
        "1 for the phase of each EtcdRestore: Pending, Completed or Failed.",
    ),
    "restore_last_progress_timestamp_seconds": (
        _RESTORE,
        "When an EtcdRestore that has not ended last made progress, or began.",
    ),
}
"""Labels and description by name; all names begin with `etcd_operator_`."""

_COUNTER = "backup_failures"

Sample = tuple[str, tuple[str, ...], float | None]
"""Family, values of the labels, and value; None for no sample."""


class ObjectSeries(Collector):
    """The metrics of all objects. They are shown only while `leads`: another process has newer ones then.

    What is known is kept meanwhile: objects at rest may have no pass when the process leads again.
    """

    def __init__(self, leads: Callable[[], bool]) -> None:
        self._leads = leads
        self._lock = threading.Lock()
        self._metrics: dict[tuple[str, Key], ObjectMetrics] = {}

    def set(self, of: str, key: Key, metrics: ObjectMetrics | None) -> None:
        """See `OnMetrics`."""
        with self._lock:
            if metrics is None:
                self._metrics.pop((of, key), None)
            else:
                self._metrics[of, key] = metrics

    def collect(self) -> Iterator[Metric]:
        """All families, at each scrape."""
        with self._lock:
            shown = list(self._metrics.items()) if self._leads() else []
        families = {
            name: (CounterMetricFamily if name == _COUNTER else GaugeMetricFamily)(
                f"etcd_operator_{name}", text, labels=labels
            )
            for name, (labels, text) in _FAMILIES.items()
        }
        for (of, key), metrics in shown:
            for name, labels, value in _samples(of, key, metrics):
                if value is not None:
                    families[name].add_metric(labels, value)
        yield from families.values()


def _samples(of: str, key: Key, metrics: ObjectMetrics) -> Iterator[Sample]:
    if isinstance(metrics, ClusterMetrics):
        labels: tuple[str, ...] = (key.namespace, of, key.name)
        yield "cluster_available", labels, metrics.is_available
        yield "cluster_held", (*labels, metrics.held), 1 if metrics.held else None
        yield "cluster_working", (*labels, metrics.working), 1 if metrics.working else None
        for each in metrics.certificates:
            yield "certificate_expiry_timestamp_seconds", (*labels, each.kind), each.expiry
            yield "certificate_renewal_timestamp_seconds", (*labels, each.kind), each.renewal
    elif isinstance(metrics, BackupMetrics):
        labels = (key.namespace, of, key.name, metrics.cluster)
        yield "backup_last_success_timestamp_seconds", labels, metrics.last_success
        yield "backup_last_verified_timestamp_seconds", labels, metrics.last_verified
        yield "backup_last_duration_seconds", labels, metrics.took
        yield "backup_last_size_bytes", labels, metrics.size
        yield "backup_healthy", labels, metrics.is_healthy
        yield "backup_failures", labels, metrics.failures
    else:
        labels = (key.namespace, key.name, metrics.cluster)
        yield "restore_phase", (*labels, metrics.phase), 1
        yield "restore_last_progress_timestamp_seconds", labels, metrics.last_progress
