"""What the passes over users report of authentication, for those that alone write the status of clusters.

It is in memory: after a restart, or a lost Lease, what is recorded stays until it is reported again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from etcd_operator.api.meta import Condition, merge_conditions
from etcd_operator.controllers.shared.caches import Cluster
from etcd_operator.controllers.shared.decide.clusters import ClusterResource
from etcd_operator.controllers.shared.waits import Epoch
from etcd_operator.keys import Key
from etcd_operator.kube.resources import Resource

ENABLED = "AuthenticationEnabled"
"""The condition: whether requests need a user. Only where the operator has been told."""


@dataclass(eq=False)
class AuthReports:
    """The last report of each cluster of both API groups. One controller hands over, others take."""

    epoch: Epoch
    # the passes that write the status, by the kind of cluster
    wakes: dict[Resource, Callable[[Key], None]] = field(default_factory=dict)
    _held: dict[Key, tuple[str, int, Condition]] = field(default_factory=dict)

    def hand_over(self, cluster: ClusterResource, kind: Resource, report: Condition) -> None:
        """Replace the last report, which has no time yet; if it is new, wake the pass that writes it."""
        made, key = (cluster.metadata.uid, self.epoch(), report), cluster.metadata.key
        if self._held.get(key) != made:
            self._held[key] = made
            self.wakes[kind](key)

    def merged(self, cluster: Cluster, now: str) -> Cluster:
        """A cluster as read, with the last report about it in its status; `now` is RFC 3339."""
        found = cast("Any", cluster)
        uid, epoch, report = self._held.get(found.metadata.key, ("", 0, None))
        if report is None or (uid, epoch) != (found.metadata.uid, self.epoch()):
            return cluster
        conditions = merge_conditions(found.status.conditions, [report], now, own={ENABLED})
        status = msgspec.structs.replace(found.status, conditions=conditions)
        return cast("Cluster", msgspec.structs.replace(found, status=status))

    def forget(self, key: Key) -> None:
        """The cluster is deleted."""
        self._held.pop(key, None)
