"""Writes the status of EtcdPeers from what a pass over their cluster observed.

The cluster's pass queries etcd, so it knows version and ID of each member; a peer's own pass only makes
objects.
"""

from dataclasses import dataclass
from functools import partial

import msgspec

from etcd_operator.api.improbable import EtcdPeer, PeerStatus
from etcd_operator.api.meta import condition, merge_conditions
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.readiness import is_asked
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.failures import IndependentWrites
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.views import Written


@dataclass(frozen=True, kw_only=True)
class PeerStatusWriter:
    """Keeps the status of peers up to date, with a write only where it differs."""

    writes: Writes
    peers: Informer[EtcdPeer]
    clock: Clock

    def write(self, state: ClusterState) -> None:
        """Write what is new about each member that has a peer and is past its first start.

        A failure does not keep the others from being written; the first is raised at the end. The change to
        an existing-only start changes the peer's generation, so the first status waits for it: one write,
        not two. While the status of the cluster records nothing, no peer is the cluster's: `disown` writes
        the status of the peer.
        """
        if not state.persisted.has_begun or not is_asked(state):
            return
        attempts = IndependentWrites(self.clock)
        for member in state.members:
            peer = self.peers.store.get(Key(state.desired.namespace, member.name))
            if peer is None or member.peer is None or peer.metadata.uid != member.peer.uid:
                continue
            is_new = peer.status == PeerStatus()
            if not is_new or member.peer.is_existing_only or member.problem is not None:
                status = _status(peer, member, self._now())
                attempts.make(partial(self._replace, state.desired.key, peer, status))
        attempts.end()

    def disown(self, peer: EtcdPeer, reason: str, message: str) -> None:
        """Write why nothing is done for a peer that belongs to no cluster: no cluster's pass sees it."""
        status = _available(peer, self._now(), serves=False, reason=reason, message=message)
        self._replace(peer.metadata.key, peer, status)

    def _now(self) -> str:
        return timestamp(self.clock.now())

    def _replace(self, noted_for: Key, peer: EtcdPeer, status: PeerStatus) -> None:
        if status == peer.status:
            return
        self.writes.of(noted_for).write_status(resources.PEERS, peer.metadata, status, Written)


def _status(peer: EtcdPeer, member: Member, now: str) -> PeerStatus:
    """What cannot be observed now keeps its last value; the condition reports that the member is silent."""
    problem, serves, answer = member.problem, member.is_serving, member.answer
    unhealthy = problem.reason if problem is not None else member.health.name.title().replace("_", "")
    status = _available(
        peer,
        now,
        serves=serves,
        reason="Healthy" if serves else unhealthy,
        message=problem.message if problem is not None else "",
    )
    if answer is None:
        return status
    return msgspec.structs.replace(status, server_version=answer.version, member_id=answer.member_id)


def _available(peer: EtcdPeer, now: str, *, serves: bool, reason: str, message: str) -> PeerStatus:
    generation = peer.metadata.generation
    wanted = condition("Available", holds=serves, reason=reason, message=message, generation=generation)
    conditions = merge_conditions(peer.status.conditions, [wanted], now, own={wanted.type})
    return msgspec.structs.replace(peer.status, observed_generation=generation, conditions=conditions)
