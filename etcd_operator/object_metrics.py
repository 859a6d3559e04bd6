"""What metrics show of clusters, regular backups and restores: values that passes find and a scrape reads."""

from collections.abc import Callable
from dataclasses import dataclass

from etcd_operator.keys import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupMetrics:
    """Of one object that has regular backups; None for what is not known."""

    cluster: str  # the EtcdCluster that is backed up; empty for another etcd
    last_success: float | None = None  # seconds since the epoch
    last_verified: float | None = (
        None  # seconds since the epoch; 0 if backups are to be verified and none was
    )
    took: float | None = None  # seconds that the last success took
    size: int | None = None  # bytes of the snapshot of the last success
    failures: int | None = None  # since the process that counts them was started
    is_healthy: bool | None = None  # None before the first backup is overdue, and while suspended


HEALTH = {"True": True, "False": False}
"""`is_healthy` by the status of a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateMetrics:
    """Of the certificate of one kind that ends first; seconds since the epoch."""

    kind: str
    renewal: float  # when it is due to be renewed
    expiry: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMetrics:
    """Of one EtcdCluster."""

    # As the condition Available; None until the cluster has served, while it is restored at its creation, and
    # while only external members serve.
    is_available: bool | None
    # Why nothing is done until something outside changes: a reason of the condition Degraded, or `Paused`.
    held: str = ""
    working: str = ""  # what the operator does: a reason of the condition Progressing
    certificates: tuple[CertificateMetrics, ...] = ()  # by kind, with TLS


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreMetrics:
    """Of one EtcdRestore."""

    cluster: str  # the EtcdCluster that it creates
    phase: str
    last_progress: float | None = None  # seconds since the epoch; None after its end


ObjectMetrics = BackupMetrics | ClusterMetrics | RestoreMetrics

OnMetrics = Callable[[str, Key, ObjectMetrics | None], None]
"""`(of, key, metrics)`: what a pass found of an object; None when it has no such metrics any more.

of: the API group for the metrics of an EtcdCluster, otherwise the kind of the object.
"""

OnRestoreEnd = Callable[[str], None]
"""`(phase)`: an EtcdRestore has ended in this phase; once for each."""
