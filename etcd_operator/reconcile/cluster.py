"""One pass over one cluster: observe, plan, act, status.

    stores + etcd's answers -> ClusterState -> plan -> actions in order, the first failure stops
    -> status, written only if it differs, also after a failure

A pass never waits for etcd and holds nothing between passes: an operator that dies after
any write goes on from what it finds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic

import msgspec
import structlog

from etcd_operator.api.meta import RawObject
from etcd_operator.clock import Clock
from etcd_operator.core.actions import Plan, Remember, Stage
from etcd_operator.core.plan import plan
from etcd_operator.core.state import ClusterState
from etcd_operator.core.status import MILESTONES, QUIET_HOLDS, WARNINGS
from etcd_operator.dialects.base import Dialect
from etcd_operator.engine.controller import Result
from etcd_operator.errors import Forbidden, Invalid, NotFound
from etcd_operator.etcd.errors import NotInSync, UnhealthyCluster
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.reconcile.act import Actor
from etcd_operator.reconcile.caches import Caches, Cluster
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.marks import PodMarker
from etcd_operator.reconcile.objects import NameTaken
from etcd_operator.reconcile.observe import Observer
from etcd_operator.reconcile.peer_status import PeerStatusWriter
from etcd_operator.reconcile.prober import Prober
from etcd_operator.reconcile.upgrade import UpgradeWatch, news

Record = Callable[[Any, str, str, bool], None]
"""`(object, reason, sentence, is_warning)`: an Event on the object."""

RETRY_HELD = 10.0
"""Seconds until something that only a person or another controller can change is tried again."""

NAMESPACE_GOING = "because it is being terminated"
"""The API server's words for a create in a namespace that is being deleted."""

ETCD_RETRY = 0.25
"""Seconds until etcd is asked again for a change that it does not allow yet."""

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class ClusterReconciler(Generic[Cluster]):
    """Brings the clusters of one API group to what is asked."""

    client: Client
    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    observer: Observer[Cluster]
    actor: Actor[Cluster]
    marker: PodMarker[Cluster]
    prober: Prober
    expectations: Expectations
    clock: Clock
    record: Record
    jitter: Callable[[], float]
    resync: float
    upgrades: UpgradeWatch
    peer_status: PeerStatusWriter | None = None

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        cluster = self.caches.clusters.store.get(key)
        if cluster is None:
            self.prober.forget(key)
            return Result()
        state = self.observer.observe(key, cluster)
        if state is None:
            return Result()
        self.upgrades.saw(key, state)
        return _Pass(self, key, cluster, state).run()


class _Pass(Generic[Cluster]):
    """The acting half of a pass: what was decided, and what has been written so far."""

    def __init__(
        self, reconciler: ClusterReconciler[Cluster], key: Key, cluster: Cluster, state: ClusterState
    ) -> None:
        self._of = reconciler
        self._key = key
        self._cluster = cluster
        self._state = state
        self._plan = plan(state)

    def run(self) -> Result:
        if not self._state.is_fresh or self._state.desired.is_deleting:
            return Result(requeue_after=self._plan.requeue_after)
        try:
            self._act()
        except (NameTaken, Forbidden, Invalid) as error:
            self._plan = _held_by(error)
        except (UnhealthyCluster, NotInSync) as error:
            # etcd's own rules about time (5 s of connection, 90 % of the log): wait, it is no failure.
            self._plan = Plan.wait(self._plan.reason, str(error), requeue_after=ETCD_RETRY)
        try:
            self._tell()
            self._of.marker.write(self._state)
        except (Forbidden, Invalid) as error:
            # Terminal to the engine, which would forget the key; but rights come back without an event.
            log.warning("status_refused", error=str(error))
            return Result(requeue_after=RETRY_HELD)
        return Result(requeue_after=self._next_look())

    def _tell(self) -> None:
        if self._plan.is_quiet:
            return
        self._write_status()
        if self._of.peer_status is not None:
            self._of.peer_status.write(self._state)

    def _act(self) -> None:
        for action in self._plan.actions:
            if isinstance(action, Remember):
                self._remember(action)
            else:
                self._of.actor.act(self._state, action, self._report)
        if self._plan.actions:
            log.info("acted", reason=self._plan.reason, message=self._plan.message)
        if self._plan.reason in MILESTONES:
            self._report(MILESTONES[self._plan.reason], self._plan.message)

    def _remember(self, action: Remember) -> None:
        before = self._state.record.upgrade
        self._state = replace(self._state, desired=replace(self._state.desired, record=action.record))
        self._write_status()
        for reason, message in news(before, action.record.upgrade, self._state):
            self._report(reason, message)
        if before is not None and action.record.upgrade is None:
            self._of.upgrades.finished(before)

    def _next_look(self) -> float:
        if self._plan.requeue_after is not None:
            return self._plan.requeue_after
        return self._of.resync * (0.9 + 0.2 * self._of.jitter())

    def _report(self, reason: str, message: str) -> None:
        self._of.record(self._cluster, reason, message, reason in WARNINGS)

    def _write_status(self) -> None:
        """Replace the status if it differs from the one last seen; a concurrent edit is a Conflict."""
        now = self._of.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        status = self._of.dialect.status(self._cluster, self._state, self._plan, now=now)
        before: RawObject = msgspec.to_builtins(self._cluster.status)
        if status == before:
            return
        self._warn(before)
        meta = self._cluster.metadata
        patch: list[RawObject] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/status", "value": status},
        ]
        caches = self._of.caches
        try:
            self._cluster = self._of.client.patch(
                caches.resource,
                self._key,
                patch,
                type(self._cluster),
                kind=PatchKind.JSON,
                subresource="status",
            )
        except NotFound:
            return  # deleted meanwhile: the watch will say so
        version = self._cluster.metadata.resource_version
        self._of.expectations.wrote(self._key, caches.clusters, self._key, version)

    def _warn(self, before: RawObject) -> None:
        """An Event when the cluster begins to be held by something, not at every look."""
        if self._plan.stage is not Stage.HELD or self._plan.reason in QUIET_HOLDS:
            return
        known = [c for c in before.get("conditions", ()) if c["type"] == "Degraded" and c["status"] == "True"]
        if not any(c["reason"] == self._plan.reason for c in known):
            self._of.record(self._cluster, self._plan.reason, self._plan.message, True)  # noqa: FBT003


def _held_by(error: NameTaken | Forbidden | Invalid) -> Plan:
    match error:
        case NameTaken() if error.is_passing:
            return Plan.wait("PredecessorTerminating", str(error), requeue_after=0.5)
        case NameTaken():
            return Plan.hold("NameConflict", str(error), requeue_after=RETRY_HELD)
        case Forbidden() if NAMESPACE_GOING in str(error):
            return Plan.hold("Deleting", "the namespace is being deleted", requeue_after=RETRY_HELD)
        case Forbidden():
            return Plan.hold("Forbidden", str(error), requeue_after=RETRY_HELD)
        case Invalid():
            return Plan.hold("Refused", str(error), requeue_after=RETRY_HELD)
