"""One API group at work: its caches, its controllers, and how they are wired.

A group starts working when its own caches are complete. Groups do not wait for each
other's resources to be installed: a missing CRD stops only its own group.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from etcd_operator.api import coreos, improbable
from etcd_operator.clock import Clock
from etcd_operator.dialects.base import Defaults, Dialect
from etcd_operator.dialects.coreos import CoreosDialect
from etcd_operator.dialects.improbable import ImprobableDialect
from etcd_operator.engine.backoff import Backoff
from etcd_operator.engine.controller import Controller, Reconcile
from etcd_operator.etcd.client import OnCall
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.events import Recorder
from etcd_operator.kube.informer import Informer
from etcd_operator.reconcile.act import Actor
from etcd_operator.reconcile.backups.caches import BackupCaches, backup_caches
from etcd_operator.reconcile.backups.observe import BackupObserver
from etcd_operator.reconcile.backups.reconciler import BackupReconciler
from etcd_operator.reconcile.backups.source import Sources
from etcd_operator.reconcile.backups.waits import Waits
from etcd_operator.reconcile.caches import Caches, Cluster, Source, coreos_caches, improbable_caches
from etcd_operator.reconcile.cluster import ClusterReconciler
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.failures import Failures
from etcd_operator.reconcile.members import ephemeral, persistent
from etcd_operator.reconcile.members.ephemeral import EphemeralMembers
from etcd_operator.reconcile.members.persistent import PersistentMembers
from etcd_operator.reconcile.members.protocol import NewMembers, OwnsPod
from etcd_operator.reconcile.nodes import Nodes
from etcd_operator.reconcile.observe import ConflictingCluster, Observer, PeerProblem
from etcd_operator.reconcile.peer import PeerReconciler
from etcd_operator.reconcile.peer_memory import PeerMemory
from etcd_operator.reconcile.peer_observe import PeerObserver
from etcd_operator.reconcile.peer_status import PeerStatusWriter
from etcd_operator.reconcile.peer_wakes import wake_peers
from etcd_operator.reconcile.prober import Prober
from etcd_operator.reconcile.quorum_check import QuorumCheck
from etcd_operator.reconcile.readiness import ReadinessWriter
from etcd_operator.reconcile.reporters import cluster_reporter, peer_reporter
from etcd_operator.reconcile.upgrade import Seconds, UpgradeWatch
from etcd_operator.reconcile.writes import Writes

NewController = Callable[[str, Reconcile], Controller]


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """What all groups share.

    probe_deadline, resync: in seconds. may_act: whether this process leads right now; leads_for: whether it
    leads and no other process can within so many seconds (a process without leader election always does).
    on_upgrade, on_leaderless: see `UpgradeWatch`. backup_image: of the pods of backups, see `OwnImage`.
    """

    client: Client
    clock: Clock
    recorder: Recorder
    defaults: Defaults
    new_controller: NewController
    on_call: OnCall
    probe_deadline: float
    resync: float
    on_upgrade: Seconds
    on_leaderless: Seconds
    backup_image: Callable[[], str]
    may_act: Callable[[], bool] = lambda: True
    leads_for: Callable[[float], bool] = lambda _seconds: True


@dataclass(frozen=True, kw_only=True)
class Group:
    """Running parts that start together, once their caches are complete.

    others: informers of other groups that have to be complete, or of kinds that are not defined, before its
    controllers start.
    """

    name: str
    informers: tuple[Informer[Any], ...]
    controllers: tuple[Controller, ...]
    others: tuple[Informer[Any], ...]

    @property
    def has_synced(self) -> bool:
        """Whether every cache holds a complete list."""
        return all(informer.has_synced for informer in self.informers)


@dataclass(frozen=True, kw_only=True)
class ClusterGroup(Group):
    """One API group with its clusters: it queries their etcd."""

    prober: Prober
    quorum_check: QuorumCheck


def build_groups(wiring: Wiring, source: Source) -> tuple[Group, ...]:
    """Both groups and the backups, wired but not started."""
    of_improbable, of_coreos = improbable_caches(source), coreos_caches(source)
    return (
        # Of two that are equally old, the one with persistent members is served.
        _improbable(wiring, of_improbable, of_coreos),
        _coreos(wiring, of_coreos, of_improbable),
        _backups(wiring, backup_caches(source), (of_improbable.clusters, of_coreos.clusters)),
    )


def new_backoff(clock: Clock) -> Backoff[Key]:
    """5 ms doubling to 30 s for a key.

    client-go's cap of 1000 s is for cosmetic objects; these are quorums.
    """
    return Backoff(clock, base=0.005, cap=30.0)


def _improbable(wiring: Wiring, caches: Caches[improbable.EtcdCluster], other: Caches[Any]) -> ClusterGroup:
    peers = caches.peers
    if peers is None:
        raise TypeError("persistent members need a cache of peers")
    of_clusters, of_peers = _writes(wiring, caches), _writes(wiring, caches)
    to_cluster, answered = _Later(), _Later()
    writer, for_peers = (
        PeerStatusWriter(writes=writes, peers=peers, clock=wiring.clock) for writes in (of_clusters, of_peers)
    )
    memory = PeerMemory(clock=wiring.clock)
    peer_reconciler = PeerReconciler(
        writes=of_peers,
        observer=PeerObserver(
            caches=caches, repository=wiring.defaults.repository, clock=wiring.clock, memory=memory
        ),
        memory=memory,
        report=peer_reporter(wiring.recorder, caches),
        disown=for_peers.disown,
        wake_cluster=to_cluster,
        failures=Failures(wiring.clock),
    )
    dialect = ImprobableDialect(wiring.defaults)
    reconciler = _reconciler(
        wiring,
        caches,
        dialect,
        of_clusters,
        answered,
        members=PersistentMembers,
        owns_pod=persistent.owns_pod(caches),
        conflicting_cluster=_conflicting_cluster(other, or_equal=False),
        peer_problem=memory.problem,
        peer_status=writer,
    )
    clusters = wiring.new_controller("improbable-cluster", reconciler.reconcile)
    peer_controller = wiring.new_controller("improbable-peer", peer_reconciler.reconcile)
    to_cluster.target, answered.target = clusters.enqueue, clusters.resume
    caches.wake(clusters.enqueue, clusters.restart)
    wake_peers(caches, peer_controller.enqueue)
    return ClusterGroup(
        name=improbable.GROUP,
        informers=tuple(caches.all()),
        others=(other.clusters,),
        controllers=(clusters, peer_controller),
        prober=reconciler.prober,
        quorum_check=_quorum_check(wiring, reconciler.prober, to_cluster),
    )


def _coreos(wiring: Wiring, caches: Caches[coreos.EtcdCluster], other: Caches[Any]) -> ClusterGroup:
    to_cluster, answered = _Later(), _Later()
    reconciler = _reconciler(
        wiring,
        caches,
        CoreosDialect(wiring.defaults),
        _writes(wiring, caches),
        answered,
        members=EphemeralMembers,
        owns_pod=ephemeral.owns_pod,
        conflicting_cluster=_conflicting_cluster(other, or_equal=True),
    )
    clusters = wiring.new_controller("coreos-cluster", reconciler.reconcile)
    to_cluster.target, answered.target = clusters.enqueue, clusters.resume
    caches.wake(clusters.enqueue, clusters.restart)
    return ClusterGroup(
        name=coreos.GROUP,
        informers=tuple(caches.all()),
        others=(other.clusters,),
        controllers=(clusters,),
        prober=reconciler.prober,
        quorum_check=_quorum_check(wiring, reconciler.prober, to_cluster),
    )


def _backups(wiring: Wiring, caches: BackupCaches, clusters: tuple[Informer[Any], ...]) -> Group:
    """A group of its own: without its definition or its rights, clusters are served as before."""
    reconciler = BackupReconciler(
        client=wiring.client,
        caches=caches,
        observer=BackupObserver(
            caches=caches, sources=Sources(clusters=clusters), waits=Waits(clock=wiring.clock)
        ),
        expectations=Expectations(),
        recorder=wiring.recorder,
        clock=wiring.clock,
        image=wiring.backup_image,
        failures=Failures(wiring.clock),
    )
    controller = wiring.new_controller("improbable-backup", reconciler.reconcile)
    caches.wake(controller.enqueue, controller.restart)
    return Group(name="backups", informers=caches.all(), controllers=(controller,), others=clusters)


def _writes(wiring: Wiring, caches: Caches[Any]) -> Writes:
    return Writes(client=wiring.client, caches=caches, expectations=Expectations())


def _quorum_check(wiring: Wiring, prober: Prober, wake: Callable[[Key], None]) -> QuorumCheck:
    def probe_again(key: Key) -> None:
        prober.doubt(key)
        wake(key)

    return QuorumCheck(prober.settled, wake=probe_again, on_call=wiring.on_call)


def _reconciler(  # noqa: PLR0913 -- wiring: each part can be exchanged
    wiring: Wiring,
    caches: Caches[Cluster],
    dialect: Dialect[Cluster],
    writes: Writes,
    answered: Callable[[Key], None],
    *,
    members: NewMembers,
    owns_pod: OwnsPod,
    conflicting_cluster: ConflictingCluster,
    peer_problem: PeerProblem = lambda _: None,
    peer_status: PeerStatusWriter | None = None,
) -> ClusterReconciler[Cluster]:
    prober = Prober(
        deadline=wiring.probe_deadline, on_done=answered, on_call=wiring.on_call, clock=wiring.clock
    )
    observer = Observer(
        caches=caches,
        dialect=dialect,
        prober=prober,
        expectations=writes.expectations,
        clock=wiring.clock,
        conflicting_cluster=conflicting_cluster,
        peer_problem=peer_problem,
        is_node_lost=Nodes(wiring.client, wiring.clock).is_lost,
        owns_pod=owns_pod,
    )
    return ClusterReconciler(
        writes=writes,
        caches=caches,
        dialect=dialect,
        observer=observer,
        actor=Actor(
            writes=writes,
            caches=caches,
            dialect=dialect,
            members=members,
            prober=prober,
            on_call=wiring.on_call,
            clock=wiring.clock,
            may_act=wiring.may_act,
            leads_for=wiring.leads_for,
        ),
        readiness_writer=ReadinessWriter(
            writes=writes,
            dialect=dialect,
            clock=wiring.clock,
            may_act=wiring.may_act,
        ),
        prober=prober,
        clock=wiring.clock,
        report=cluster_reporter(wiring.recorder, caches),
        jitter=Random().random,  # noqa: S311 -- spreads passes over time, keeps no secret
        resync=wiring.resync,
        upgrades=UpgradeWatch(
            clock=wiring.clock, on_finished=wiring.on_upgrade, on_leaderless=wiring.on_leaderless
        ),
        failures=Failures(wiring.clock),
        peer_status=peer_status,
    )


class _Later:
    """A callable whose target is known only once everything is built."""

    def __init__(self) -> None:
        self.target: Callable[[Key], None] | None = None

    def __call__(self, key: Key) -> None:
        if self.target is not None:
            self.target(key)


def _conflicting_cluster(other: Caches[Any], *, or_equal: bool) -> ConflictingCluster:
    """Which clusters of the other group take precedence: those that are older, or also equally old."""

    def is_before(key: Key, created: str) -> bool:
        cluster = other.clusters.store.get(key)
        if cluster is None:
            return False
        made = cluster.metadata.creation_timestamp
        return bool(made < created or (or_equal and made == created))

    return is_before
