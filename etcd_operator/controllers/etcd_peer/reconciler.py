"""One pass over one EtcdPeer: observe, plan, act.

What is decided, and why, stands in `decide.plan`. The cluster's own pass writes the peer's status
(see `etcd_cluster.peer_status`), and reports in the cluster's why the objects of a peer cannot be made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from etcd_operator.api.improbable import EtcdCluster, EtcdPeer
from etcd_operator.controllers.etcd_cluster.decide.members import PeerFinding, PodProblem
from etcd_operator.controllers.etcd_peer.act import CleanupFailed, PeerActor, PeerReport
from etcd_operator.controllers.etcd_peer.decide.plan import plan
from etcd_operator.controllers.etcd_peer.memory import PeerMemory
from etcd_operator.controllers.etcd_peer.observe import PeerObserver, cluster_of
from etcd_operator.controllers.shared.caches import Caches, cached
from etcd_operator.controllers.shared.decide.holds import CATCH_UP, RETRY_HELD
from etcd_operator.controllers.shared.failures import REQUEST_FAILED, Failures, reason_of
from etcd_operator.controllers.shared.name_conflicts import NameConflict
from etcd_operator.controllers.shared.passes import WARNINGS, ReportEvent
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.engine.controller import Result
from etcd_operator.errors import TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube.views import Claim

RETRY_PASSING = 0.5
"""Seconds until a name is tried again whose object is being deleted."""


@dataclass(frozen=True, kw_only=True)
class PeerReconciler:
    """Makes what an EtcdPeer stands for."""

    caches: Caches[EtcdCluster]
    writes: Writes
    observer: PeerObserver
    memory: PeerMemory
    report: ReportEvent  # on the peer's cluster
    disown: PeerReport
    wake_cluster: Callable[[Key], None]
    failures: Failures

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        peer = cached(self.caches.peers, key)
        if peer is None or not peer.is_ours:
            self.failures.passed(key)
            self.memory.forget(key)
            return Result()
        if not self.writes.expectations.are_met(key):
            return Result(requeue_after=CATCH_UP, is_done=False)
        if self._is_held_back(peer):
            return Result(requeue_after=RETRY_HELD)
        try:
            return self._carry_out(key, peer)
        except (NameConflict, TerminalError, CleanupFailed) as error:
            return self._held(peer, error)
        except Exception as error:
            self._report(peer, reason_of(error), error)
            raise

    def wake(self, enqueue: Callable[[Key], None]) -> None:
        """A peer and its ReplicaSet have one name; claims and the cluster's status concern all its peers."""

        def wake_all(cluster: Key | None) -> None:
            for peer in self.caches.of_cluster(self.caches.peers, cluster) if cluster is not None else ():
                enqueue(peer.metadata.key)

        def on_change(old: Any, new: Any) -> None:
            enqueue((new or old).metadata.key)

        def on_claim(old: Claim | None, new: Claim | None) -> None:
            value = new or old
            wake_all(self.caches.cluster_of(value.metadata) if value is not None else None)

        def on_cluster(old: EtcdCluster | None, new: EtcdCluster | None) -> None:
            """What its peers are checked against; a deleted one takes them along by itself."""
            if new is not None and (old is None or _identity(old) != _identity(new)):
                wake_all(new.metadata.key)

        self.caches.clusters.add_handler(on_cluster)
        for informer in (self.caches.peers, self.caches.replica_sets):
            if informer is not None:
                informer.add_handler(on_change)
        if self.caches.claims is not None:
            self.caches.claims.add_handler(on_claim)

    def _is_held_back(self, peer: EtcdPeer) -> bool:
        """Whether its cluster exists and cannot be read, which the cluster's own pass reports.

        Where both are being deleted, the cluster may wait for the peer: that has to go.
        """
        cluster = self.caches.clusters.store.unreadable_at(cluster_of(peer))
        return cluster is not None and not (cluster.is_deleting and peer.metadata.is_deleting)

    def _carry_out(self, key: Key, peer: EtcdPeer) -> Result:
        """Observe, plan and act. Where the caches turn out to be behind, the next pass decides anew."""
        state, found = self.observer.observe(key, peer)
        made = plan(state)
        self.memory.waits(key, made.awaits)
        actor = PeerActor(
            peer=peer,
            state=state,
            found=found,
            replica_set=partial(self.observer.replica_set, peer, state),
            objects=self.writes.of(key),
            report=self._event,
            disown=self.disown,
        )
        is_as_observed = all(actor.act(action) for action in made.actions)
        if made.problem is not None and is_as_observed:
            problem = made.problem
            self._report(peer, problem.reason, TerminalError(problem.message), finding=problem.finding)
        if made.is_well:
            self.failures.passed(key)
            self._set_problem(peer, None)
        return Result(requeue_after=made.requeue_after if is_as_observed else CATCH_UP)

    def _event(self, peer: EtcdPeer, reason: str, message: str) -> None:
        cluster = self.caches.clusters.store.get(Key(peer.metadata.namespace, peer.spec.cluster_name))
        if cluster is not None:
            self.report(cluster, reason, message, reason in WARNINGS)

    def _held(self, peer: EtcdPeer, error: Exception) -> Result:
        """A failure that is retried at a pace of its own, not the engine's."""
        match error:
            case CleanupFailed():
                self._report(peer, REQUEST_FAILED, error.cause)
            case NameConflict() if error.is_passing:
                self._report(peer, "PredecessorTerminating", error)
                return Result(requeue_after=RETRY_PASSING)
            case _:
                self._report(peer, reason_of(error), error)
        return Result(requeue_after=RETRY_HELD)

    def _report(
        self, peer: EtcdPeer, reason: str, error: Exception, *, finding: PeerFinding | None = None
    ) -> None:
        """Let the cluster's status have it, as soon as it is worth a message."""
        message = self.failures.failed(peer.metadata.key, error)
        if message:
            self._set_problem(peer, PodProblem(reason=reason, message=message, finding=finding))

    def _set_problem(self, peer: EtcdPeer, problem: PodProblem | None) -> None:
        if self.memory.set_problem(peer.metadata.key, problem):
            self.wake_cluster(cluster_of(peer))


def _identity(cluster: EtcdCluster) -> tuple[object, ...]:
    return cluster.metadata.uid, cluster.status.bootstrap, cluster.status.recovery
