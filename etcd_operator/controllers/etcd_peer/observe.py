"""Joins the caches into one `PeerState`, and renders the ReplicaSet that a peer stands for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts
from etcd_operator.controllers.etcd_cluster.manifests import persistent_pod
from etcd_operator.controllers.etcd_cluster.members.claim_facts import claim_facts
from etcd_operator.controllers.etcd_peer.decide.ownership import content_problem, ownership_problem
from etcd_operator.controllers.etcd_peer.decide.state import InitialPeer, PeerState
from etcd_operator.controllers.etcd_peer.memory import PeerMemory
from etcd_operator.controllers.shared.caches import Caches, cached
from etcd_operator.controllers.shared.manifests.digest import digest
from etcd_operator.formats import instant
from etcd_operator.keys import Key
from etcd_operator.versions import image_of, parse_version

TEMPLATE_ANNOTATION = f"{improbable.GROUP}/template"
"""On the ReplicaSet: digest of the pod template as rendered, because the stored one has defaults."""


@dataclass(frozen=True, kw_only=True)
class PeerObserver:
    """Observes EtcdPeers. Nothing is read from the API server."""

    caches: Caches[improbable.EtcdCluster]
    repository: str  # of etcd's images
    own_image: Callable[[], str]  # only seeds that fetch from a reader need it
    clock: Clock
    memory: PeerMemory

    def observe(self, key: Key, peer: EtcdPeer) -> tuple[PeerState, ObjectMeta | None]:
        """A peer, and the ReplicaSet of its name, as the caches show them."""
        found = self._found(key)
        state = self._state(key, peer, found)
        return replace(state, is_template_current=self._is_current(peer, state, found)), found

    def _state(self, key: Key, peer: EtcdPeer, found: ObjectMeta | None) -> PeerState:
        cluster = self.caches.clusters.store.get(cluster_of(peer))
        awaited, waited = self.memory.waited(key)
        return PeerState(
            name=key.name,
            token=peer.spec.bootstrap.initial_cluster_token,
            deleting_for=self._deleting_for(peer),
            is_for_cleanup=improbable.CLEANUP_FINALIZER in peer.metadata.finalizers,
            ownership_problem=ownership_problem(peer, cluster),
            content_problem=content_problem(peer, cluster) if cluster is not None else "",
            is_initial=_is_initial(peer),
            is_seed=bool(peer.spec.bootstrap.survivor),
            others=tuple(self._others(key, peer)),
            claim=self._claim(key),
            cluster_claims=tuple(
                claim_facts(claim) for claim in self.caches.of_cluster(self.caches.claims, cluster_of(peer))
            ),
            has_replica_set=found is not None and found.controller_uid == peer.metadata.uid,
            awaited=awaited,
            waited=waited,
        )

    def replica_set(self, peer: EtcdPeer, state: PeerState) -> RawObject:
        """The ReplicaSet that a peer stands for, annotated with a digest of its template.

        Raises what `own_image` raises.
        """
        bootstrap, version = peer.spec.bootstrap, str(parse_version(peer.spec.version))
        body = persistent_pod.replica_set(
            peer,
            image_of(self.repository, version),
            is_restored=state.is_restored,
            is_root_owned=state.is_root_owned,
            own_image=self.own_image() if bootstrap.sha256 else "",
        )
        annotations = {TEMPLATE_ANNOTATION: digest(body["spec"]["template"])}
        return {**body, "metadata": {**body["metadata"], "annotations": annotations}}

    def _found(self, key: Key) -> ObjectMeta | None:
        found = cached(self.caches.replica_sets, key)
        return found.metadata if found is not None else None

    def _deleting_for(self, peer: EtcdPeer) -> float | None:
        since = peer.metadata.deletion_timestamp
        return (self.clock.now() - instant(since)).total_seconds() if since is not None else None

    def _claim(self, key: Key) -> ClaimFacts | None:
        found = cached(self.caches.claims, key)
        return claim_facts(found) if found is not None else None

    def _others(self, key: Key, peer: EtcdPeer) -> Iterator[InitialPeer]:
        """The other initial members of its bootstrap; none for a peer that joins or resumes."""
        for member in peer.spec.bootstrap.static.initial_cluster if _is_initial(peer) else ():
            other = Key(key.namespace, member.name)
            if other != key:
                has_replica_set = self._found(other) is not None
                yield InitialPeer(claim=self._claim(other), has_replica_set=has_replica_set)

    def _is_current(self, peer: EtcdPeer, state: PeerState, found: ObjectMeta | None) -> bool:
        if found is None or not state.is_acted_on:
            return True
        wanted: dict[str, str] = self.replica_set(peer, state)["metadata"]["annotations"]
        return found.annotations.get(TEMPLATE_ANNOTATION) == wanted[TEMPLATE_ANNOTATION]


def _is_initial(peer: EtcdPeer) -> bool:
    return peer.spec.bootstrap.initial_cluster_state == "New"


def cluster_of(peer: EtcdPeer) -> Key:
    """The cluster that its label names."""
    return Key(peer.metadata.namespace, peer.metadata.labels.get(improbable.CLUSTER_LABEL, ""))
