"""How the reconciler of clusters is made: of parts that all groups share, and of some of its group."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Generic

from etcd_operator.controllers.etcd_cluster.act import Actor
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import BackupFacts, ToolBackups
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.manifests.survivor_reader import secret_name
from etcd_operator.controllers.etcd_cluster.members.cached import CachedMembers, PeerProblem
from etcd_operator.controllers.etcd_cluster.members.protocol import NewMembers, OwnsPod
from etcd_operator.controllers.etcd_cluster.network import NetworkPolicies
from etcd_operator.controllers.etcd_cluster.network_keeper import NetworkKeeper
from etcd_operator.controllers.etcd_cluster.observe.consents import Consents
from etcd_operator.controllers.etcd_cluster.observe.departures import Departures
from etcd_operator.controllers.etcd_cluster.observe.nodes import Nodes
from etcd_operator.controllers.etcd_cluster.observe.observer import (
    ConflictingCluster,
    Observer,
    no_backups,
    no_tool_backups,
)
from etcd_operator.controllers.etcd_cluster.observe.prober import Prober
from etcd_operator.controllers.etcd_cluster.observe.quorum_check import QuorumCheck
from etcd_operator.controllers.etcd_cluster.observe.readiness import ReadinessWriter
from etcd_operator.controllers.etcd_cluster.peer_status import PeerStatusWriter
from etcd_operator.controllers.etcd_cluster.reconciler import ClusterReconciler
from etcd_operator.controllers.etcd_cluster.recovery.absences import Absences
from etcd_operator.controllers.etcd_cluster.recovery.readers import Readers, Readings
from etcd_operator.controllers.etcd_cluster.tls.authorities import AuthorityStore
from etcd_operator.controllers.etcd_cluster.tls.certificates import Certificates
from etcd_operator.controllers.etcd_cluster.tls.handshakes import Handshakes
from etcd_operator.controllers.etcd_cluster.tls.holdings import Holdings
from etcd_operator.controllers.etcd_cluster.tls.issuers import Issuers
from etcd_operator.controllers.etcd_cluster.tls.writer import CertificateWriter
from etcd_operator.controllers.etcd_cluster.upgrade_watch import UpgradeWaits, UpgradeWatch
from etcd_operator.controllers.shared.auth_reports import AuthReports
from etcd_operator.controllers.shared.backup_reports import BackupReports
from etcd_operator.controllers.shared.caches import Caches, Cluster
from etcd_operator.controllers.shared.decide.clusters import cluster_of_member
from etcd_operator.controllers.shared.groups import Group, Wiring
from etcd_operator.controllers.shared.passes import cluster_reporter
from etcd_operator.controllers.shared.tokens import Tokens
from etcd_operator.controllers.shared.unreadable import Unreadables
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.keys import Key
from etcd_operator.kube.informer import Informer
from etcd_operator.pods.http_client import Trust


@dataclass(frozen=True, kw_only=True)
class ClusterGroup(Group):
    """One API group with its clusters: it queries their etcd."""

    prober: Prober  # only for tests, which await probes


@dataclass(frozen=True, kw_only=True)
class Parts(Generic[Cluster]):
    """What the groups of clusters do not share."""

    caches: Caches[Cluster]
    dialect: Dialect[Cluster]
    writes: Writes
    answered: Callable[[Key], None]  # called with the key of a cluster once its etcd was queried
    readings: Readings
    members: NewMembers
    backup_reports: BackupReports
    auth_reports: AuthReports
    owns_pod: OwnsPod
    conflicting_cluster: ConflictingCluster
    all_clusters: tuple[Informer[Any], ...]  # of both groups
    authorities: AuthorityStore
    handshakes: Handshakes
    peer_problem: PeerProblem = lambda _: None
    peer_status: PeerStatusWriter | None = None
    tool_backups_of: Callable[[Cluster, ClusterState], ToolBackups] = no_tool_backups
    backups_of: Callable[[Cluster, ClusterState], BackupFacts] = no_backups

    def reconciler(self, wiring: Wiring) -> ClusterReconciler[Cluster]:
        """A reconciler of them, with a prober of its own."""
        holdings = Holdings(dialect=self.dialect, clock=wiring.clock, reads=self.authorities.reads)
        writer = CertificateWriter(
            authorities=self.authorities,
            dialect=self.dialect,
            clock=wiring.clock,
            holdings=holdings,
            issuers=Issuers(
                client=wiring.client,
                clock=wiring.clock,
                dialect=self.dialect,
                reads=self.authorities.reads,
            ),
        )
        certificates = Certificates(
            authorities=self.authorities,
            dialect=self.dialect,
            clock=wiring.clock,
            writes=self.writes,
            holdings=holdings,
            handshakes=self.handshakes,
            writer=writer,
        )
        prober = Prober(
            deadline=wiring.probe_deadline,
            on_done=self.answered,
            on_call=wiring.on_call,
            clock=wiring.clock,
            epoch=wiring.epoch,
        )
        return ClusterReconciler(
            writes=self.writes,
            caches=self.caches,
            dialect=self.dialect,
            observer=self._observer(wiring, prober, certificates),
            actor=self._actor(wiring, prober, writer),
            readiness_writer=ReadinessWriter(writes=self.writes, dialect=self.dialect, clock=wiring.clock),
            prober=prober,
            clock=wiring.clock,
            report=cluster_reporter(wiring.recorder, self.caches),
            jitter=Random().random,  # noqa: S311 -- spreads passes over time, keeps no secret
            resync=wiring.resync,
            upgrades=UpgradeWatch(
                clock=wiring.clock, on_finished=wiring.on_upgrade, on_leaderless=wiring.on_leaderless
            ),
            failures=wiring.failures(),
            network=self._network(wiring),
            unreadables=Unreadables(objects=self.caches.clusters, recorder=wiring.recorder),
            on_metrics=partial(wiring.on_metrics, self.caches.resource.group),
            peer_status=self.peer_status,
            backup_reports=self.backup_reports,
            auth_reports=self.auth_reports,
        )

    def _network(self, wiring: Wiring) -> NetworkKeeper[Cluster]:
        policies = NetworkPolicies(
            caches=self.caches, dialect=self.dialect, writes=self.writes, own_peer=wiring.own_peer
        )
        return NetworkKeeper(
            policies=policies,
            failures=wiring.failures(),
            clock=wiring.clock,
            jitter=Random().random,  # noqa: S311 -- as above
        )

    def _observer(self, wiring: Wiring, prober: Prober, certificates: Certificates) -> Observer[Cluster]:
        return Observer(
            caches=self.caches,
            cached=CachedMembers(
                caches=self.caches,
                dialect=self.dialect,
                clock=wiring.clock,
                peer_problem=self.peer_problem,
            ),
            dialect=self.dialect,
            prober=prober,
            expectations=self.writes.expectations,
            clock=wiring.clock,
            conflicting_cluster=self.conflicting_cluster,
            consents=Consents(client=wiring.client, clusters=self.all_clusters),
            is_node_lost=Nodes(wiring.client, wiring.clock).is_lost,
            owns_pod=self.owns_pod,
            absences=Absences(
                client=wiring.client,
                resource=self.caches.resource,
                clock=wiring.clock,
                epoch=wiring.epoch,
                may_act=wiring.may_act,
            ),
            awaited=UpgradeWaits(clock=wiring.clock),
            departures=Departures(client=wiring.client, clock=wiring.clock),
            tool_backups_of=self.tool_backups_of,
            backups_of=self.backups_of,
            readings=self.readings,
            certificates=certificates,
        )

    def _actor(self, wiring: Wiring, prober: Prober, certificates: CertificateWriter) -> Actor[Cluster]:
        return Actor(
            writes=self.writes,
            caches=self.caches,
            dialect=self.dialect,
            members=self.members,
            prober=prober,
            on_call=wiring.on_call,
            clock=wiring.clock,
            readers=Readers(
                own_image=wiring.own_image,
                ask=wiring.ask_survivor,
                refused=self.readings.refuse,
                note_failure=self.readings.note_failure,
                tokens=self.readings.tokens,
                trust=self.readings.trust,
            ),
            leads_for=wiring.leads_for,
            certificates=certificates,
        )


def readings_of(
    wiring: Wiring,
    writes: Writes,
    wake: Callable[[Key], None],
    dialect: Dialect[Any],
    authorities: AuthorityStore,
) -> Readings:
    """What is read of members that answer nobody; each report wakes their cluster."""

    def trust(desired: DesiredCluster, member: str) -> Trust | None:
        return authorities.trust(desired, dialect.member_host(desired, member))

    return Readings(
        inquiries=wiring.inquiries(
            "survivor-readers",
            on_answer=lambda member: wake(Key(member.namespace, cluster_of_member(member.name))),
            ask=lambda reader: wiring.ask_survivor(reader.server),
        ),
        clock=wiring.clock,
        waits=wiring.waits(),
        tokens=Tokens(clock=wiring.clock, name_of=secret_name),
        trust=trust,
        writes=writes,
    )


def handshakes_of(wiring: Wiring, wake: Callable[[Key], None]) -> Handshakes:
    """Handshakes with members; each result wakes their cluster."""
    return Handshakes(
        lambda ask: wiring.inquiries(
            "handshakes",
            on_answer=lambda member: wake(Key(member.namespace, cluster_of_member(member.name))),
            ask=ask,
        )
    )


def quorum_check(wiring: Wiring, prober: Prober, wake: Callable[[Key], None]) -> QuorumCheck:
    """Where it finds no quorum, the cluster is probed again and woken."""

    def probe_again(key: Key) -> None:
        prober.distrust(key)
        wake(key)

    return QuorumCheck(prober.settled, wake=probe_again, on_call=wiring.on_call)
