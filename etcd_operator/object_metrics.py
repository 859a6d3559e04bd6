"""What metrics show of clusters, regular backups and restores: values that passes find and a scrape reads."""

from collections.abc import Callable
from dataclasses import dataclass

from etcd_operator.keys import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupMetrics:
    """Of one object that has regular backups; None for what is not known.

    cluster: the EtcdCluster that is backed up, empty for another etcd. last_success, last_verified: seconds
    since the epoch; last_verified is 0 if backups are to be verified and none was. took: seconds, and size:
    bytes of the snapshot, both of the last success. failures: since who counts them was started.
    is_healthy: None before the first backup is overdue, and while suspended.
    """

    cluster: str
    last_success: float | None = None
    last_verified: float | None = None
    took: float | None = None
    size: int | None = None
    failures: int | None = None
    is_healthy: bool | None = None


OnBackupMetrics = Callable[[str, Key, BackupMetrics | None], None]
"""`(kind, key, metrics)`: the metrics of an object of that kind; None when it has none any more."""

HEALTH = {"True": True, "False": False}
"""`is_healthy` by the status of a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMetrics:
    """Of one EtcdCluster.

    is_available: as the condition Available; None until it has served, while it is being restored at its
    creation, and while external members alone serve for it. held: why nothing is done until something
    outside changes, a reason of the condition Degraded or `Paused`; empty if that is not so. working: what
    the operator does, a reason of the condition Progressing; empty if that is nothing.
    """

    is_available: bool | None
    held: str = ""
    working: str = ""


OnClusterMetrics = Callable[[str, Key, ClusterMetrics | None], None]
"""`(API group, key, metrics)`: the metrics of an EtcdCluster; None when it is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreMetrics:
    """Of one EtcdRestore.

    cluster: the EtcdCluster that it makes. last_progress: seconds since the epoch; None after its end.
    """

    cluster: str
    phase: str
    last_progress: float | None = None


OnRestoreMetrics = Callable[[Key, RestoreMetrics | None], None]
"""`(key, metrics)`: the metrics of an EtcdRestore; None when it is deleted."""

OnRestoreEnd = Callable[[str], None]
"""`(phase)`: an EtcdRestore has ended in this phase; once for each."""
