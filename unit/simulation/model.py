"""A world small enough to think about: what users and controllers do to Kubernetes objects.

Nothing happens but in the methods called. A ReplicaSet makes the next pod while the last one is still ending,
unless its EtcdPeer is deleted in the foreground: then there is none until the pod is deleted, and the peer is
deleted last. Claims are deleted when no pod uses them. Pods: model_pods.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import RecordedToolBackup
from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping, Start
from unit.simulation.model_disks import Process
from unit.simulation.model_pods import Claim, Pods


class Refused(Exception):
    """The API server or etcd refused, because what the action was based on has changed."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """The stored cluster resource; `writes` counts those to it. recover: the annotation of that name.

    keeps_backups: spec.backup; backup: the newest one that status has. restores: spec.restore.
    recovers_after: spec.recovery, None for Manual. restore_in_place: the annotation of that name.
    """

    uid: str
    size: int
    writes: int
    version: str = "3.6.16"
    persisted: PersistedState = field(default_factory=PersistedState)
    recover: str = ""
    keeps_backups: bool = False
    backup: RecordedToolBackup = field(default_factory=RecordedToolBackup)
    restores: bool = False
    recovers_after: float | None = None
    restore_in_place: str = ""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """An EtcdPeer; `template`: what its ReplicaSet makes pods from, None before there is one."""

    uid: str
    start: Start
    version: str
    template: Start | None = None
    is_for_cleanup: bool = False
    is_terminating: bool = False
    is_in_foreground: bool = False


class World(Pods):
    """One namespace with at most one cluster resource."""

    def __init__(self, *, is_persistent: bool, size: int, **fields: Any) -> None:
        super().__init__(is_persistent=is_persistent)
        self.peers: dict[str, Peer] = {}
        self.services: dict[str, str] = {}
        self.budget: int | None = None
        self.resource: Resource | None = None
        self.create_cluster(size, **fields)

    # what a user does

    def create_cluster(self, size: int, **fields: Any) -> None:
        """Create the resource."""
        self.resource = Resource(uid=self.uid("cluster"), size=size, writes=next(self._numbers), **fields)

    def edit(self, **fields: Any) -> None:
        """Change fields of the resource, if there is one."""
        if self.resource is not None:
            self.resource = replace(self.resource, **fields, writes=next(self._numbers))

    def finish_backup(self) -> None:
        """The backup under way is stored."""
        self.tool.finish(self.resource.persisted.cluster_id if self.resource is not None else "")

    def report_backups(self) -> None:
        """The newest backup appears in the status."""
        if self.resource is None or self.tool.is_silent:
            return
        newest = self.tool.newest_first(self.resource.persisted.cluster_id)
        recorded = newest[0].recorded if newest else RecordedToolBackup()
        if recorded != self.resource.backup:
            self.edit(backup=recorded)

    def delete_cluster(self) -> None:
        """Delete the resource: Kubernetes deletes what it owns, claims are kept."""
        self.resource = None
        for name in list(self.pods):
            self.remove_pod(name)
        for uid in list(self.going):
            self._end_going(uid)
        for name, peer in list(self.peers.items()):
            if peer.is_terminating:
                self._clean_up(name, peer)
        self.peers.clear()
        self.services.clear()
        self.selected_token = ""
        self.budget = None
        if not self.is_persistent:
            self.acknowledged.clear()
            self.listed_names.clear()
            self.replaced.clear()
            self.given_up.clear()

    def delete_claim(self, name: str) -> None:
        """Delete a claim together with the peer and pod that use it."""
        self.delete_peer(name)
        self.lose_claim(name)

    def lose_claim(self, name: str) -> None:
        """A claim is deleted at once, volume and pod with it, although it was in use."""
        self.remove_pod(name)
        for uid, pod in list(self.going.items()):
            if pod.name == name:
                self._end_going(uid)
        self.claims.pop(name, None)
        self._end_promises()

    def make_claim_late(self, name: str) -> None:
        """A claim that was requested for a member that is not known any more."""
        resource = self.resource
        listed = {entry.name for group in self.groups(led=True) for entry in group.entries.values()}
        if resource is None or not resource.persisted.is_bootstrapped or resource.persisted.bootstrap is None:
            return
        if self.groups(led=True) and name not in {*self.claims, *self.peers, *listed}:
            token = resource.persisted.bootstrap.token
            uid = self.uid("claim")
            self.claims[name] = Claim(uid=uid, cluster_uid=resource.uid, token=token, initial_members=())

    def delete_claim_gently(self, name: str) -> None:
        """As `kubectl delete`: it is deleted when no pod uses it."""
        if name in self.claims:
            self.claims[name] = replace(self.claims[name], is_terminating=True)

    def delete_peer(self, name: str) -> None:
        """Delete an EtcdPeer with its ReplicaSet and pod."""
        peer = self.peers.pop(name, None)
        if peer is not None and peer.is_terminating:
            self._clean_up(name, peer)
        self.remove_pod(name)

    # nodes: they fall silent, are given up, come back, or are replaced

    def lose_node(self, node: int) -> None:
        """It falls silent: what runs there is unreachable, and may come back."""
        self.away.add(node)
        for process in self._on(node):
            process.is_frozen = True

    def give_up_node(self, node: int, *, evicts: bool) -> None:
        """Kubernetes notices after a minute; after some more its pods are deleted, and remain Terminating."""
        if node not in self.away:
            return
        for name, pod in list(self.pods.items()):
            if pod.node == node:
                self.pods[name] = replace(pod, is_on_lost_node=pod.is_running)
                if evicts:
                    self.delete_pod(name)

    def return_node(self, node: int) -> None:
        """It is back with all that ran there."""
        self.away.discard(node)
        for process in self._on(node):
            process.is_frozen = False
        for name, pod in list(self.pods.items()):
            if pod.node == node:
                self.pods[name] = replace(pod, is_on_lost_node=False)

    def destroy_node(self, node: int) -> None:
        """It never comes back, a new one takes its name; volumes are elsewhere."""
        for name, pod in list(self.pods.items()):
            if pod.node == node:
                self.remove_pod(name)
        for uid, pod in list(self.going.items()):
            if pod.node == node:
                self._end_going(uid)
        self.away.discard(node)

    def _on(self, node: int) -> list[Process]:
        pods = {pod.uid for pod in (*self.pods.values(), *self.going.values()) if pod.node == node}
        return [process for uid, process in self.processes.items() if uid in pods]

    # what controllers do

    def run_controllers(self) -> None:
        """Claims, then, once all initial members have theirs, ReplicaSets (`etcd_peer`) and pods."""
        for name, peer in list(self.peers.items()):
            if peer.is_terminating:
                self._finish_peer(name, peer)
        self._finish_claims()
        kept = {name: peer for name, peer in self.peers.items() if not peer.is_terminating}
        for name, peer in kept.items():
            if peer.template is None and name not in self.claims and not self.is_claim_lost(name):
                initial_members = peer.start.members if isinstance(peer.start, Bootstrapping) else ()
                self.claims[name] = Claim(
                    uid=self.uid("claim"),
                    cluster_uid=self.resource.uid if self.resource is not None else "",
                    token=peer.start.token,
                    initial_members=initial_members,
                )
        for name, peer in kept.items():
            if peer.template is None and not self._may_start(name, peer):
                continue
            if peer.template is None and isinstance(peer.start, Bootstrapping):
                self.claims[name] = replace(self.claims[name], is_started=True)
            self.peers[name] = replace(peer, template=peer.start)
            if name not in self.pods:
                self.create_pod(name, peer.start, peer.version)

    def _finish_peer(self, name: str, peer: Peer) -> None:
        """It is deleted with its ReplicaSet and pod: before them, or (in the foreground) after them."""
        self.delete_pod(name)
        if peer.is_in_foreground and any(pod.name == name for pod in self.going.values()):
            return
        del self.peers[name]
        self._clean_up(name, peer)

    def is_claim_lost(self, name: str) -> bool:
        """Whether an initial member's claim is missing while another initial member may have served."""
        peer = self.peers.get(name)
        if peer is None or peer.template is not None or not isinstance(peer.start, Bootstrapping):
            return False
        others = [other for other in peer.start.members if other != name]
        peers = (self.peers.get(other) for other in others)
        has_started = any(other is not None and other.template is not None for other in peers)
        return name not in self.claims and (has_started or self._any_started(others))

    def _any_started(self, names: Iterable[str]) -> bool:
        return any(self.claims[name].is_started for name in names if name in self.claims)

    def _may_start(self, name: str, peer: Peer) -> bool:
        claim = self.claims.get(name)
        if claim is None or claim.is_terminating or claim.given_up:
            return False
        if not isinstance(peer.start, Bootstrapping) or set(peer.start.members) <= set(self.claims):
            return True
        return self._any_started(peer.start.members)

    def _clean_up(self, name: str, peer: Peer) -> None:
        claim = self.claims.get(name)
        if peer.is_for_cleanup and claim is not None and not claim.given_up:
            self.delete_claim_gently(name)

    def _finish_claims(self) -> None:
        used = {*self.pods, *(pod.name for pod in self.going.values()), *self.used_by_jobs()}
        for name, claim in list(self.claims.items()):
            if claim.is_terminating and name not in used:
                del self.claims[name]
        self._end_promises()

    def used_by_jobs(self) -> set[str]:
        """Claims that pods of Jobs use."""
        return set()

    def _end_promises(self) -> None:
        """With the last claim that was not given up go all promises."""
        if self.is_persistent and all(claim.given_up for claim in self.claims.values()):
            self.acknowledged.clear()
