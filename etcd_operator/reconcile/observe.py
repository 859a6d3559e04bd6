"""Joins caches and etcd's answers into one `ClusterState`.

The Kubernetes side comes from the caches, the etcd side from the prober; a pass never
waits for either. Members are the union of object names and etcd's list: an etcd member
that has not started has no name yet and is matched by its peer URL.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic

from etcd_operator.clock import Clock
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.lists import listed
from etcd_operator.core.members import (
    ClaimFacts,
    Member,
    PeerFacts,
    PodFacts,
    PodProblem,
    is_member_name,
    ordinal_of,
)
from etcd_operator.core.replies import Answer, EtcdMember
from etcd_operator.core.state import ClusterState
from etcd_operator.core.status import PEER_REFUSED
from etcd_operator.dialects.base import Dialect
from etcd_operator.etcd.probe import Probe
from etcd_operator.keys import Key
from etcd_operator.kube.views import Pod
from etcd_operator.reconcile.caches import Caches, Cluster
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.facts import (
    answer_of,
    claim_facts,
    instant,
    peer_facts,
    pod_facts,
    refusal_of,
    replica_set_problem,
)
from etcd_operator.reconcile.labels import unlabelled
from etcd_operator.reconcile.members.protocol import OwnsPod
from etcd_operator.reconcile.prober import Prober
from etcd_operator.reconcile.readings import cluster_version, is_version_hidden, judged, wanted
from etcd_operator.reconcile.recovery import authoritative, of_one_history
from etcd_operator.render.budget import is_as_asked
from etcd_operator.render.urls import CLIENT_PORT, PEER_PORT, endpoint, host_of, url

ConflictingCluster = Callable[[Key, str], bool]
"""Whether the other group has a cluster of that key that takes precedence over one made at that time."""

IsNodeLost = Callable[[str], bool]
"""Whether the node of that name has been silent for too long."""

PeerProblem = Callable[[Key], PodProblem | None]
"""Why a peer's objects cannot be made."""


@dataclass(frozen=True, kw_only=True)
class Observer(Generic[Cluster]):
    """Observes the clusters of one API group."""

    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    prober: Prober
    expectations: Expectations
    clock: Clock
    conflicting_cluster: ConflictingCluster
    peer_problem: PeerProblem
    is_node_lost: IsNodeLost
    owns_pod: OwnsPod

    def observe(self, key: Key, cluster: Cluster) -> ClusterState | None:
        """The state of `cluster` now; None: members are being asked and the key will come back."""
        desired = self.dialect.desired(cluster)
        objects = self._objects(key, desired)
        leaving = (m for m in objects.values() if m.pod is not None and m.pod.is_terminating)
        look = self.prober.take(
            key, _endpoints(objects.values()), _endpoints(leaving), wanted(desired, objects.values())
        )
        if look is None:
            return None
        members, unknown_members = self._joined(desired, objects, look)
        now = self.clock.now()
        age = (now - instant(desired.created)).total_seconds()
        since = desired.unavailable_since
        return ClusterState(
            desired=desired,
            members=judged(desired, tuple(self._placed(desired, member) for member in members), look),
            unknown_members=unknown_members,
            unlabelled=unlabelled(self.caches, self.dialect, self.owns_pod, key, desired),
            kept=tuple(claim for claim in self._claims(key, desired).values() if claim.given_up),
            has_client_service=self._owns_service(desired, desired.name),
            budget=self._budget(desired),
            conflict=self._conflict(key, desired),
            is_fresh=self.expectations.are_met(key),
            has_quorum=look.quorum is True,
            age=age,
            unavailable_for=(now - instant(since)).total_seconds() if since else 0.0,
            cluster_version=cluster_version(desired, look),
            is_version_hidden=is_version_hidden(look),
        )

    def _objects(self, key: Key, desired: DesiredCluster) -> dict[str, Member]:
        """Members as Kubernetes knows them, by name."""
        caches = self.caches
        pods = self._pods(key, desired)
        peers = {
            peer.metadata.name: peer_facts(peer)
            for peer in caches.of_cluster(caches.peers, key)
            if peer.metadata.controller_uid == desired.uid
            and is_member_name(peer.metadata.name, desired.name)
        }
        claims = {name: c for name, c in self._claims(key, desired).items() if not c.given_up}
        names: set[str] = {*pods, *peers, *claims, *self._member_services(key, desired)}
        return {
            name: Member(
                name=name,
                has_service=desired.kind.has_member_services and self._owns_service(desired, name),
                has_replica_set=self._has_replica_set(Key(desired.namespace, name), peers.get(name)),
                peer=peers.get(name),
                claim=claims.get(name),
                pod=pods.get(name),
                problem=self._problem(Key(desired.namespace, name), pods.get(name)),
            )
            for name in names
        }

    def _claims(self, key: Key, desired: DesiredCluster) -> dict[str, ClaimFacts]:
        found = self.caches.of_cluster(self.caches.claims, key)
        return {
            c.metadata.name: claim_facts(c) for c in found if is_member_name(c.metadata.name, desired.name)
        }

    def _pods(self, key: Key, desired: DesiredCluster) -> dict[str, PodFacts]:
        now = self.clock.now()
        found: dict[str, Pod] = {}
        for pod in self.caches.of_cluster(self.caches.pods, key):
            name = self._member_of(pod, desired)
            if (
                name
                and is_member_name(name, desired.name)
                and (name not in found or _is_newer(pod, found[name]))
            ):
                found[name] = pod
        selector = self.dialect.client_service(desired)["spec"]["selector"].items()
        return {
            name: replace(pod_facts(pod, now=now), is_routed=selector <= pod.metadata.labels.items())
            for name, pod in found.items()
        }

    def _member_of(self, pod: Pod, desired: DesiredCluster) -> str:
        """The member that a pod runs; empty for a pod that is not this cluster's."""
        owner = pod.metadata.controller_uid
        if self.caches.replica_sets is None:
            return pod.metadata.name if owner == desired.uid else ""
        name = next((o.name for o in pod.metadata.owner_references if o.uid == owner), "")
        replica_set = self.caches.replica_sets.store.get(Key(desired.namespace, name))
        return name if replica_set is not None and replica_set.metadata.uid == owner else ""

    def _problem(self, peer: Key, pod: PodFacts | None) -> PodProblem | None:
        if pod is not None:
            refused = self.peer_problem(peer)
            is_refused = refused is not None and refused.reason == PEER_REFUSED
            return pod.problem or (refused if is_refused else None)
        if self.caches.replica_sets is None:
            return None
        replica_set = self.caches.replica_sets.store.get(peer)
        made = replica_set_problem(replica_set) if replica_set is not None else None
        return made or self.peer_problem(peer)

    def _has_replica_set(self, key: Key, peer: PeerFacts | None) -> bool:
        replica_sets = self.caches.replica_sets
        found = replica_sets.store.get(key) if replica_sets is not None else None
        return found is not None and peer is not None and found.metadata.controller_uid == peer.uid

    def _member_services(self, key: Key, desired: DesiredCluster) -> set[str]:
        """Services of ephemeral members: the last trace of one whose pod went by itself."""
        if not desired.kind.has_member_services:
            return set()
        services = self.caches.of_cluster(self.caches.services, key)
        owned = (s.metadata.name for s in services if s.metadata.controller_uid == desired.uid)
        return {name for name in owned if is_member_name(name, desired.name)}

    def _placed(self, desired: DesiredCluster, member: Member) -> Member:
        """The member, lost with its node if that is known of the node alone (see `reconcile.nodes`)."""
        node = desired.kind.node_to_check(member)
        is_silent = member.answer is None and member.refusal is None
        if member.pod is None or not is_silent or not node:
            return member
        return replace(member, pod=replace(member.pod, is_on_lost_node=self.is_node_lost(node)))

    def _owns_service(self, desired: DesiredCluster, name: str) -> bool:
        service = self.caches.services.store.get(Key(desired.namespace, name))
        return service is not None and service.metadata.controller_uid == desired.uid

    def _budget(self, desired: DesiredCluster) -> int | None:
        """What our budget asks for; None if it is missing or somebody has made something else of it.

        What others add to it is theirs: only what it counts and asks for is compared.
        """
        budget = self.caches.budgets.store.get(Key(desired.namespace, desired.name))
        if budget is None or budget.metadata.controller_uid != desired.uid:
            return None
        least = budget.spec.get("minAvailable")
        if not isinstance(least, int) or not is_as_asked(budget.spec, self.dialect.budget(desired, least)):
            return None
        return least

    def _joined(
        self, desired: DesiredCluster, objects: dict[str, Member], look: Probe
    ) -> tuple[tuple[Member, ...], tuple[EtcdMember, ...]]:
        """Our members with what etcd says of them, and what it lists beside them."""
        replies = {
            name: look.answers.get(endpoint(member.pod.ip, CLIENT_PORT))
            for name, member in objects.items()
            if member.pod is not None
        }
        answers = {name: answer_of(reply) for name, reply in replies.items()}
        own = {
            name: answer
            for name, answer in answers.items()
            if answer is not None and self._is_itself(desired, name, answer)
        }
        own = of_one_history(desired.persisted, own)
        # A learner gives no list, so however far it has come its answer cannot be the one.
        found = listed(
            authoritative(desired.persisted, [answer for answer in own.values() if answer.members])
        )
        named = {entry.id: self._name_of(desired, entry) for entry in found}
        entries = {named[entry.id]: entry for entry in found if is_member_name(named[entry.id], desired.name)}
        unknown_members = tuple(entry for entry in found if entry not in entries.values())
        names = sorted({*objects, *entries}, key=ordinal_of)
        members = tuple(
            (objects.get(name) or Member(name=name)).joined(
                entry=entries.get(name),
                answer=own.get(name),
                refusal=refusal_of(replies.get(name)),
                silent_for=_silence(objects.get(name), look),
            )
            for name in names
        )
        return members, unknown_members

    def _is_itself(self, desired: DesiredCluster, name: str, answer: Answer) -> bool:
        """Whether it is this member that answered, and not another one that was given its old address."""
        if answer.is_learner:
            return True
        entry = next((entry for entry in answer.members if entry.id == answer.member_id), None)
        return entry is not None and self._peer_url(desired, name) in entry.peer_urls

    def _peer_url(self, desired: DesiredCluster, name: str) -> str:
        return url(self.dialect.member_host(desired, name), PEER_PORT)

    def _name_of(self, desired: DesiredCluster, entry: EtcdMember) -> str:
        """The member's name; from its address while it has not started and told its own."""
        by_url = (self.dialect.member_at(desired, host_of(peer_url)) for peer_url in entry.peer_urls)
        return entry.name or next(by_url, "")

    def _conflict(self, key: Key, desired: DesiredCluster) -> str:
        """Why this resource may not use its names: the other group had them first."""
        if not self.conflicting_cluster(key, desired.created):
            return ""
        return (
            f"an EtcdCluster {desired.name} of the other API group was here first: "
            "delete one of the two, or give this one another name"
        )


def _endpoints(members: Iterable[Member]) -> frozenset[str]:
    return frozenset(
        endpoint(m.pod.ip, CLIENT_PORT)
        for m in members
        if m.pod is not None and m.pod.ip and m.pod.is_running
    )


def _silence(member: Member | None, look: Probe) -> float:
    pod = member.pod if member is not None else None
    return look.silent_for.get(endpoint(pod.ip, CLIENT_PORT), 0.0) if pod is not None else 0.0


def _is_newer(pod: Pod, other: Pod) -> bool:
    """Of two pods of one member the one that is not going away counts, then the younger."""

    def rank(value: Pod) -> tuple[bool, str]:
        return value.metadata.deletion_timestamp is None, value.metadata.creation_timestamp

    return rank(pod) > rank(other)
