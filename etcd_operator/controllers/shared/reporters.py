"""How what is done becomes an Event on a cluster."""

from collections.abc import Callable
from typing import Any

from etcd_operator.controllers.shared.caches import Caches, Cluster
from etcd_operator.kube.events import EventType, Recorder, Reference

WARNINGS = frozenset(
    {"ClaimsLost", "CleanupGivenUp", "LabelsRestored", "QuorumLost", "RecoveryStarted", "Recovered"}
)
"""Reasons of Events of type Warning, although they report something done."""

ReportEvent = Callable[[Any, str, str, bool], None]
"""`(cluster, reason, message, is_warning)`: an Event on the cluster."""


def cluster_reporter(recorder: Recorder, caches: Caches[Cluster]) -> ReportEvent:
    """Events on the clusters of one group."""

    def report(cluster: Any, reason: str, message: str, is_warning: bool) -> None:  # noqa: FBT001 -- see `ReportEvent`
        kind: EventType = "Warning" if is_warning else "Normal"
        recorder.record(Reference.to(caches.resource, cluster.metadata), kind, reason, message)

    return report
