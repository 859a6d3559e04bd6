"""What other controllers report of the backups of clusters, for the one that alone writes their status.

It is in memory: after a restart, or a lost Lease, what is recorded stays until it is reported again.
"""

from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from etcd_operator.controllers.shared.caches import Cluster
from etcd_operator.controllers.shared.decide.backup_health import BackupHealth, merged
from etcd_operator.controllers.shared.decide.clusters import ClusterResource
from etcd_operator.controllers.shared.groups import Later
from etcd_operator.controllers.shared.waits import Epoch
from etcd_operator.keys import Key


@dataclass(eq=False)
class BackupReports:
    """The last report of each cluster of one API group. One controller hands over, one takes."""

    epoch: Epoch
    wake: Later = field(default_factory=Later)  # the pass that writes the status
    _held: dict[Key, tuple[str, int, BackupHealth]] = field(default_factory=dict)

    def hand_over(self, cluster: ClusterResource, report: BackupHealth, now: str) -> None:
        """Replace the last report; wake the pass of the cluster if its status, as read, is to change.

        If that was read before the last write, the event of this write wakes the pass.
        """
        self._held[cluster.metadata.key] = cluster.metadata.uid, self.epoch(), report
        if self.merged(cluster, now).status != cluster.status:
            self.wake(cluster.metadata.key)

    def of(self, cluster: ClusterResource) -> BackupHealth | None:
        """The last report about a cluster."""
        uid, epoch, report = self._held.get(cluster.metadata.key, ("", 0, None))
        return report if (uid, epoch) == (cluster.metadata.uid, self.epoch()) else None

    def merged(self, cluster: Cluster, now: str) -> Cluster:
        """A cluster as read, with the last report about it in its status; `now` is RFC 3339."""
        report, found = self.of(cluster), cast("Any", cluster)
        if report is None:
            return cluster
        conditions = merged(found.status.conditions, report.condition, now)
        status = msgspec.structs.replace(found.status, conditions=conditions, **report.fields)
        return cast("Cluster", msgspec.structs.replace(found, status=status))

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self._held.pop(key, None)
