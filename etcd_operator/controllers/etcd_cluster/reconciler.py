"""One pass over one cluster: observe, plan, act, status.

    stores + etcd's answers -> ClusterState -> plan -> actions in order, the first failure stops
    -> status and readiness gates, written only if they differ, whatever the result of the actions

A pass never waits for etcd and keeps nothing between passes: an operator that dies after
any write continues from what it finds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic

import msgspec
import structlog

from etcd_operator.api.meta import RawObject
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.act import Actor
from etcd_operator.controllers.etcd_cluster.decide.actions import AppendEntry, Plan, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.cluster_metrics import cluster_metrics
from etcd_operator.controllers.etcd_cluster.decide.events import MILESTONES, quorum_event
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import cut_off
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import QUIET_HOLDS, awaits_cluster_version
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.failed_passes import held_by, is_awaited, limited
from etcd_operator.controllers.etcd_cluster.network_keeper import NetworkKeeper
from etcd_operator.controllers.etcd_cluster.observe.observer import Observer
from etcd_operator.controllers.etcd_cluster.observe.prober import Prober
from etcd_operator.controllers.etcd_cluster.observe.readiness import ReadinessWriter
from etcd_operator.controllers.etcd_cluster.peer_status import PeerStatusWriter
from etcd_operator.controllers.etcd_cluster.upgrade_watch import UpgradeWatch, events_of
from etcd_operator.controllers.shared.auth_reports import AuthReports
from etcd_operator.controllers.shared.backup_reports import BackupReports
from etcd_operator.controllers.shared.caches import Caches, Cluster
from etcd_operator.controllers.shared.decide.backup_health import BackupHealth, change
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD
from etcd_operator.controllers.shared.failures import Failures, IndependentWrites, attempt
from etcd_operator.controllers.shared.passes import WARNINGS, ReportEvent, is_going
from etcd_operator.controllers.shared.unreadable import UNREADABLE, Unreadables
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.engine.controller import Result
from etcd_operator.errors import Conflict, NotLeading, TerminalError
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.object_metrics import ClusterMetrics

RETRY_VERSION = 2.5
"""Seconds until etcd's cluster version is read again: its leader compares the members' every 5 s."""


log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class ClusterReconciler(Generic[Cluster]):
    """Brings the clusters of one API group to their desired state."""

    writes: Writes
    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    observer: Observer[Cluster]
    actor: Actor[Cluster]
    readiness_writer: ReadinessWriter[Cluster]
    prober: Prober
    clock: Clock
    report: ReportEvent
    jitter: Callable[[], float]
    resync: float
    upgrades: UpgradeWatch
    failures: Failures
    network: NetworkKeeper[Cluster]
    unreadables: Unreadables
    on_metrics: Callable[[Key, ClusterMetrics | None], None]
    backup_reports: BackupReports
    auth_reports: AuthReports
    peer_status: PeerStatusWriter | None = None

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        is_unreadable, is_fresh = self.unreadables.exists(key), self.observer.is_fresh(key)
        cluster = self.caches.clusters.store.get(key)
        if cluster is None and is_unreadable:
            self.on_metrics(key, ClusterMetrics(is_available=None, held=UNREADABLE))
            return Result()
        if cluster is None:
            is_used = self.observer.forget(key)
            self.failures.passed(key)
            self.network.forget(key)
            self.upgrades.forget(key)
            self.on_metrics(key, None)
            return Result(requeue_after=RETRY_HELD) if is_used else Result()
        report, now = self.backup_reports.of(cluster), timestamp(self.clock.now())
        state = self.observer.observe(key, self.reported(cluster, now), is_fresh=is_fresh)
        if state is None:
            return Result(is_done=False)
        state = replace(state, network_problem=self.network.problem(key))
        self.upgrades.observed(key, state)
        return _Pass(self, key, cluster, state, report).run()

    def reported(self, cluster: Cluster, now: str) -> Cluster:
        """A cluster as read, with what other controllers report of it; `now` is RFC 3339."""
        return self.auth_reports.merged(self.backup_reports.merged(cluster, now), now)


class _Pass(Generic[Cluster]):
    """The acting half of a pass: what was decided, and what has been written so far."""

    def __init__(
        self,
        reconciler: ClusterReconciler[Cluster],
        key: Key,
        cluster: Cluster,
        state: ClusterState,
        report: BackupHealth | None,
    ) -> None:
        self._of = reconciler
        self._key = key
        self._cluster = cluster
        self._state = state
        self._report_of_backups = report
        self._plan = plan(state)

    def run(self) -> Result:
        """Act; then write what was observed, whatever the result. Raises what failed, for another try."""
        if self._state.desired.is_deleting:
            self._of.on_metrics(self._key, None)
        is_behind = not self._state.is_fresh and self._state.unseen is None
        if is_behind or self._state.desired.is_deleting:
            return Result(requeue_after=self._plan.requeue_after, is_done=self._state.is_fresh)
        failure = attempt(self._act)
        if isinstance(failure, NotLeading):
            raise failure
        attempts = IndependentWrites(self._of.clock)
        if self._state.is_fresh:
            attempts.make(partial(self._of.readiness_writer.write, self._state))
        self._plan = self._explained(failure) if failure is not None else self._with_failed_gates(attempts)
        self._of.on_metrics(self._key, cluster_metrics(self._state, self._plan))
        if not self._plan.is_quiet:
            attempts.make(self._write_status)
            if self._of.peer_status is not None and self._state.is_fresh:
                attempts.make(partial(self._of.peer_status.write, self._state))
        # Last, and without an effect on anything above: it is neither needed nor waited for.
        due = self._of.network.keep(self._state, self._report)
        if failure is not None and not is_awaited(failure):
            raise failure
        ended = self._ended(attempts)
        return replace(ended, requeue_after=min(t for t in (due, ended.requeue_after) if t is not None))

    def _explained(self, failure: Exception | None) -> Plan:
        """The plan as status reports it: what failed, if it is to be reported, and when to try again."""
        failures, key = self._of.failures, self._key
        if failure is None:
            failures.passed(key)
            return self._plan
        waiting = limited(self._plan, failure)
        if waiting is not None:  # it is no failure
            return waiting
        message = failures.failed(key, failure)
        return held_by(failure, message + cut_off(self._state)) if message else self._plan

    def _with_failed_gates(self, attempts: IndependentWrites) -> Plan:
        """The plan as status reports it where only writes to pods failed: their readiness would be wrong."""
        failure = next(iter(attempts.failures), None)
        if isinstance(failure, NotLeading):
            raise failure
        explained = self._explained(failure)
        return self._plan if self._plan.stage is Stage.HELD else explained

    def _ended(self, attempts: IndependentWrites) -> Result:
        lasting = [error for error in attempts.failures if isinstance(error, TerminalError)]
        passing = [error for error in attempts.failures if error not in lasting]
        if passing:
            raise passing[0]
        if lasting:
            # Terminal to the engine, which would forget the key; but rights come back without an event.
            log.warning("status_refused", error=str(lasting[0]))
            return Result(requeue_after=RETRY_HELD)
        return Result(requeue_after=self._next_observation())

    def _act(self) -> None:
        for action in self._plan.actions:
            if isinstance(action, Remember):
                self._remember(action)
            else:
                self._of.actor.act(self._state, action, self._report)
        if any(not isinstance(action, AppendEntry) for action in self._plan.actions):
            log.info("acted", reason=self._plan.reason, message=self._plan.message)
            if self._plan.reason in MILESTONES:
                self._report(MILESTONES[self._plan.reason], self._plan.message)

    def _remember(self, action: Remember) -> None:
        """Raises Conflict if a backup was reported since: a recovery may have to restore that."""
        report = self._of.backup_reports.of(self._cluster)
        if report is not None and report != self._report_of_backups:
            raise Conflict(f"EtcdCluster {self._key.name}: its backups were reported anew")
        earlier, before = self._state, self._state.persisted.upgrade
        self._state = replace(self._state, desired=replace(self._state.desired, persisted=action.persisted))
        try:
            self._write_status()
        except Exception:
            self._state = earlier  # what is written after the failure must not remember it in passing
            raise
        for reason, message in events_of(before, action.persisted.upgrade, self._state):
            self._report(reason, message)
        if before is not None and action.persisted.upgrade is None and not before.restart:
            self._of.upgrades.finished(before)

    def _next_observation(self) -> float:
        if self._plan.requeue_after is not None:
            return self._plan.requeue_after
        if awaits_cluster_version(self._state):
            return RETRY_VERSION
        return self._of.resync * (0.9 + 0.2 * self._of.jitter())

    def _report(self, reason: str, message: str) -> None:
        if reason in WARNINGS and self._is_going():
            return
        self._of.report(self._cluster, reason, message, reason in WARNINGS)

    def _write_status(self) -> None:
        """Replace the status if it differs from the one last seen; a concurrent edit is a Conflict.

        No other controller writes it, see `reported`. What cannot be read is not replaced: its last known
        value is outdated, and the field may be in there.
        """
        if self._of.caches.clusters.store.unreadable_at(self._key) is not None:
            return
        now = timestamp(self._of.clock.now())
        reported = self._of.reported(self._cluster, now)
        status = self._of.dialect.status(reported, self._state, self._plan, now=now)
        before: RawObject = msgspec.to_builtins(self._cluster.status)
        if status == before:
            return
        begins_to_hold = self._begins_to_hold(before)
        of_backups = change(self._cluster.status.conditions, reported.status.conditions)
        if (begins_to_hold or of_backups is not None) and self._is_going():
            return
        if begins_to_hold:
            self._of.report(self._cluster, self._plan.reason, self._plan.message, True)  # noqa: FBT003
        self._report_quorum()
        objects, resource = self._of.writes.of(self._key), self._of.caches.resource
        written = objects.write_status(resource, self._cluster.metadata, status, type(self._cluster))
        if of_backups is not None and written is not None:
            self._report(*of_backups)
        self._cluster = written or self._cluster  # deleted meanwhile: the watch will report it

    def _begins_to_hold(self, before: RawObject) -> bool:
        """Whether something begins to hold the cluster, which an Event reports; not at every pass."""
        if self._plan.stage is not Stage.HELD or self._plan.reason in QUIET_HOLDS:
            return False
        known = [c for c in before.get("conditions", ()) if c["type"] == "Degraded" and c["status"] == "True"]
        return not any(c["reason"] == self._plan.reason for c in known)

    def _is_going(self) -> bool:
        objects = self._of.writes.of(self._key)
        return is_going(self._of.caches.resource, self._cluster.metadata, objects)

    def _report_quorum(self) -> None:
        """An Event when a quorum answers that was missing as far as the status says."""
        status = self._cluster.status
        event = quorum_event(status.conditions, self._state, self._plan) if status.cluster_id else None
        if event is not None:
            self._report(*event)
