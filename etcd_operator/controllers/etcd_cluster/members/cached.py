"""The members of a cluster, joined from the caches of the objects that belong to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic

from etcd_operator.api.meta import HasMetadata, ObjectMeta
from etcd_operator.api.shared_keys import selected_token
from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import (
    ClaimFacts,
    Member,
    PeerFacts,
    PeerFinding,
    PodFacts,
    PodProblem,
)
from etcd_operator.controllers.etcd_cluster.decide.orphans import Orphan
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.members.claim_facts import (
    claim_facts,
    peer_facts,
    replica_set_problem,
    with_claim,
)
from etcd_operator.controllers.etcd_cluster.members.pod_facts import pod_facts
from etcd_operator.controllers.shared.caches import Caches, Cluster, cached
from etcd_operator.controllers.shared.decide.clusters import is_member_name
from etcd_operator.keys import Key
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Service

PeerProblem = Callable[[Key], PodProblem | None]
"""Why a peer's objects cannot be made."""


@dataclass(frozen=True, kw_only=True)
class CachedMembers(Generic[Cluster]):
    """The members of the clusters of one API group."""

    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    clock: Clock
    peer_problem: PeerProblem

    def members(
        self, key: Key, desired: DesiredCluster, claims: Mapping[str, ClaimFacts]
    ) -> dict[str, Member]:
        """By name: whatever has a pod, a claim in use, an EtcdPeer or a Service of its own.

        claims: see `claims`.
        """
        caches = self.caches
        pods = self._pods(key, desired)
        peers = {
            peer.metadata.name: peer_facts(peer, desired.claim_template)
            for peer in caches.of_cluster(caches.peers, key)
            if peer.is_ours
            and (peer.metadata.controller_uid == desired.uid or _is_orphan(desired, peer.metadata))
            and is_member_name(peer.metadata.name, desired.name)
        }
        in_use = {name: claim for name, claim in claims.items() if not claim.given_up_by}
        names: set[str] = {*pods, *peers, *in_use, *self._member_services(key, desired)}
        return {
            name: Member(
                name=name,
                has_service=desired.kind.has_member_services and self.owns_service(desired, name),
                has_replica_set=self._has_replica_set(Key(desired.namespace, name), peers.get(name)),
                has_lost_claim=self._has_lost_claim(Key(desired.namespace, name), pods.get(name)),
                peer=peers.get(name),
                claim=in_use.get(name),
                pod=pods.get(name),
                problem=with_claim(
                    self._problem(Key(desired.namespace, name), pods.get(name)), in_use.get(name)
                ),
            )
            for name in names
        }

    def claims(self, key: Key, desired: DesiredCluster) -> dict[str, ClaimFacts]:
        """By name, those that were given up too."""
        found = self.caches.of_cluster(self.caches.claims, key)
        return {
            c.metadata.name: claim_facts(c) for c in found if is_member_name(c.metadata.name, desired.name)
        }

    def former(self, key: Key, desired: DesiredCluster) -> tuple[str, ...]:
        """Pods and EtcdPeers of another resource of this name that are not being deleted yet."""
        caches = self.caches
        peers, pods = caches.of_cluster(caches.peers, key), caches.of_cluster(caches.pods, key)
        found: tuple[HasMetadata, ...] = (*peers, *pods)
        return tuple(each.metadata.name for each in found if _is_former(desired, each.metadata))

    def orphans(self, key: Key, desired: DesiredCluster) -> tuple[Orphan, ...]:
        """What was made for members of this name, and has no owner; see `rules.take_back`."""
        caches, label = self.caches, self.caches.label
        services = (
            _orphan("Service", each.metadata, selected_token(each.spec.selector) or "")
            for each in caches.of_cluster(caches.services, key)
            if _is_orphan(desired, each.metadata) and each.spec.selector.get(label) == key.name
        )
        budgets = (
            _orphan("PodDisruptionBudget", each.metadata)
            for each in caches.of_cluster(caches.budgets, key)
            if _is_orphan(desired, each.metadata)
        )
        policy = caches.policies.store.get(key)
        policies = (
            _orphan("NetworkPolicy", each.metadata)
            for each in (policy,)
            if each is not None
            and _is_orphan(desired, each.metadata)
            and caches.cluster_of(each.metadata) == key
        )
        peers = (
            _orphan("EtcdPeer", each.metadata)
            for each in caches.of_cluster(caches.peers, key)
            if each.is_ours and _is_orphan(desired, each.metadata)
        )
        pods = (
            _orphan("Pod", each.metadata)
            for each in caches.of_cluster(caches.pods, key)
            if self._is_orphan_pod(desired, each)
        )
        found = (*pods, *peers, *services, *budgets, *policies)
        shared = {body["metadata"]["name"] for body in self.dialect.services(desired)}
        return tuple(each for each in found if each.name in shared or is_member_name(each.name, desired.name))

    def objects_of_others(self, key: Key, desired: DesiredCluster) -> tuple[str, ...]:
        """What another operator has created for members of a cluster of this name."""
        found = self.caches.of_cluster(self.caches.pods, key)
        pods = (
            pod.metadata.name
            for pod in found
            if not pod.metadata.is_deleting
            and self.dialect.is_of_other_operator(pod.metadata)
            and not self._is_orphan_pod(desired, pod)
        )
        peers = (p.metadata.name for p in self.caches.of_cluster(self.caches.peers, key) if not p.is_ours)
        return (
            *(f"EtcdPeer {name}" for name in sorted(peers)),
            *(f"Pod {name}" for name in sorted(pods)),
        )

    def has_services(self, desired: DesiredCluster) -> bool:
        """Whether the cluster has its Services, and peers find each other by them.

        The one for clients may select otherwise, during a recovery (`members.restoring`).
        """
        for_peers = self.dialect.services(desired)[:-1]
        selected = ((body, self._service(desired, body["metadata"]["name"])) for body in for_peers)
        return self.owns_service(desired, desired.name) and all(
            found is not None and found.spec.selector == body["spec"]["selector"] for body, found in selected
        )

    def owns_service(self, desired: DesiredCluster, name: str) -> bool:
        """Whether there is a Service of that name that the cluster controls."""
        return self._service(desired, name) is not None

    def _service(self, desired: DesiredCluster, name: str) -> Service | None:
        found = self.caches.services.store.get(Key(desired.namespace, name))
        return found if found is not None and found.metadata.controller_uid == desired.uid else None

    def _pods(self, key: Key, desired: DesiredCluster) -> dict[str, PodFacts]:
        now = self.clock.now()
        found: dict[str, Pod] = {}
        for pod in self.caches.of_cluster(self.caches.pods, key):
            name = self._member_of(pod, desired)
            is_known = is_member_name(name, desired.name)
            if is_known and (name not in found or _is_newer(pod, found[name])):
                found[name] = pod
        selector = self.dialect.client_selector(desired).items()
        return {
            name: replace(pod_facts(pod, now=now), is_routed=selector <= pod.metadata.labels.items())
            for name, pod in found.items()
        }

    def _member_of(self, pod: Pod, desired: DesiredCluster) -> str:
        """The member that a pod runs; empty for a pod that is not this cluster's."""
        owner = pod.metadata.controller_uid
        if self.caches.replica_sets is None:
            is_ours = owner == desired.uid or self._is_orphan_pod(desired, pod)
            return pod.metadata.name if is_ours else ""
        name = next((o.name for o in pod.metadata.owner_references if o.uid == owner), "")
        replica_set = self.caches.replica_sets.store.get(Key(desired.namespace, name))
        return name if replica_set is not None and replica_set.metadata.uid == owner else ""

    def _is_orphan_pod(self, desired: DesiredCluster, pod: Pod) -> bool:
        """Whether an ephemeral member runs in it: only ours have the readiness gate."""
        gates = {gate.get("conditionType") for gate in pod.spec.readiness_gates}
        is_ours = self.caches.replica_sets is None and self.dialect.pod_keys.serves in gates
        return (
            is_ours and _is_orphan(desired, pod.metadata) and is_member_name(pod.metadata.name, desired.name)
        )

    def _problem(self, peer: Key, pod: PodFacts | None) -> PodProblem | None:
        if pod is not None:
            refused = self.peer_problem(peer)
            is_refused = refused is not None and refused.finding is PeerFinding.REFUSED
            return pod.problem or (refused if is_refused else None)
        return self._replica_set_problem(peer) or self.peer_problem(peer)

    def _has_lost_claim(self, peer: Key, pod: PodFacts | None) -> bool:
        """What the pass over the peer found.

        Not while a pod is there, or a ReplicaSet (of a former peer, perhaps) that still tries to make one.
        """
        if pod is not None or self._replica_set_problem(peer) is not None:
            return False
        found = self.peer_problem(peer)
        return found is not None and found.finding is PeerFinding.CLAIM_LOST

    def _replica_set_problem(self, peer: Key) -> PodProblem | None:
        replica_set = cached(self.caches.replica_sets, peer)
        return replica_set_problem(replica_set) if replica_set is not None else None

    def _has_replica_set(self, key: Key, peer: PeerFacts | None) -> bool:
        found = cached(self.caches.replica_sets, key)
        return found is not None and peer is not None and found.metadata.controller_uid == peer.uid

    def _member_services(self, key: Key, desired: DesiredCluster) -> set[str]:
        """Services of ephemeral members: all that is left of one whose pod is missing."""
        if not desired.kind.has_member_services:
            return set()
        services = self.caches.of_cluster(self.caches.services, key)
        owned = (s.metadata.name for s in services if s.metadata.controller_uid == desired.uid)
        return {name for name in owned if is_member_name(name, desired.name)}


def _is_orphan(desired: DesiredCluster, found: ObjectMeta) -> bool:
    return not desired.persisted.has_begun and not found.owner_references and not found.is_deleting


def _is_former(desired: DesiredCluster, found: ObjectMeta) -> bool:
    owner = next((each for each in found.owner_references if each.controller), None)
    is_of_name = owner is not None and (owner.api_version, owner.kind, owner.name) == (
        desired.api_version,
        "EtcdCluster",
        desired.name,
    )
    return is_of_name and found.controller_uid != desired.uid and not found.is_deleting


def _orphan(kind: str, found: ObjectMeta, token: str = "") -> Orphan:
    return Orphan(kind=kind, name=found.name, uid=found.uid, version=found.resource_version, token=token)


def _is_newer(pod: Pod, other: Pod) -> bool:
    """Of two pods of one member the one that is not being deleted counts, then the younger."""

    def rank(value: Pod) -> tuple[bool, str]:
        return not value.metadata.is_deleting, value.metadata.creation_timestamp

    return rank(pod) > rank(other)
