"""One pass over one EtcdPeer: observe, plan, act.

What is decided, and why, stands in `decide.plan`. The cluster's own pass writes the peer's status
(see `etcd_cluster.peer_status`), and reports in the cluster's why the objects of a peer cannot be made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.controllers.etcd_cluster.decide.members import PeerFinding, PodProblem
from etcd_operator.controllers.etcd_peer.act import CleanupFailed, PeerActor, PeerReport
from etcd_operator.controllers.etcd_peer.decide.plan import plan
from etcd_operator.controllers.etcd_peer.memory import PeerMemory
from etcd_operator.controllers.etcd_peer.observe import PeerObserver, cluster_of
from etcd_operator.controllers.shared.caches import cached
from etcd_operator.controllers.shared.decide.holds import CATCH_UP, RETRY_HELD
from etcd_operator.controllers.shared.failures import REQUEST_FAILED, Failures, reason_of
from etcd_operator.controllers.shared.objects import NameConflict
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.engine.controller import Result
from etcd_operator.errors import TerminalError
from etcd_operator.keys import Key

RETRY_PASSING = 0.5
"""Seconds until a name is tried again whose object is being deleted."""


@dataclass(frozen=True, kw_only=True)
class PeerReconciler:
    """Makes what an EtcdPeer stands for."""

    writes: Writes
    observer: PeerObserver
    memory: PeerMemory
    report: PeerReport
    disown: PeerReport
    wake_cluster: Callable[[Key], None]
    failures: Failures

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        peer = cached(self.writes.caches.peers, key)
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

    def _is_held_back(self, peer: EtcdPeer) -> bool:
        """Whether its cluster exists and cannot be read, which the cluster's own pass reports.

        Where both are being deleted, the cluster may wait for the peer: that has to go.
        """
        cluster = self.writes.caches.clusters.store.unreadable_at(cluster_of(peer))
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
            report=self.report,
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
