"""How the caches and controllers of each group are wired."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from etcd_operator.api import coreos, improbable
from etcd_operator.api.backups import EtcdBackup
from etcd_operator.api.restores import EtcdRestore
from etcd_operator.clock import Clock
from etcd_operator.controllers.backup_tool.certificates import ToolCertificates
from etcd_operator.controllers.backup_tool.group import tool_group
from etcd_operator.controllers.backup_tool.manifests.backup_tool import tool_name
from etcd_operator.controllers.etcd_auth.access import Access, ClientAuthority, Reach
from etcd_operator.controllers.etcd_auth.caches import auth_caches
from etcd_operator.controllers.etcd_auth.group import auth_group
from etcd_operator.controllers.etcd_backup.group import backup_caches, backup_group
from etcd_operator.controllers.etcd_backup_schedule.groups import schedule_groups
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.controllers.etcd_cluster.manifests.tls import shared_secret
from etcd_operator.controllers.etcd_cluster.members import ephemeral, persistent
from etcd_operator.controllers.etcd_cluster.members.ephemeral import EphemeralMembers
from etcd_operator.controllers.etcd_cluster.members.persistent import PersistentMembers
from etcd_operator.controllers.etcd_cluster.observe.observer import ConflictingCluster
from etcd_operator.controllers.etcd_cluster.parts import (
    ClusterGroup,
    Parts,
    handshakes_of,
    quorum_check,
    readings_of,
)
from etcd_operator.controllers.etcd_cluster.peer_status import PeerStatusWriter
from etcd_operator.controllers.etcd_cluster.recovery.stored_backups import StoredBackups
from etcd_operator.controllers.etcd_cluster.recovery.tool_backups import KnownToolBackups
from etcd_operator.controllers.etcd_cluster.tls.authorities import AuthorityStore
from etcd_operator.controllers.etcd_peer.group import peer_reconciler
from etcd_operator.controllers.etcd_peer.memory import PeerMemory
from etcd_operator.controllers.etcd_restore.group import restore_caches, restore_group
from etcd_operator.controllers.shared.auth_reports import AuthReports
from etcd_operator.controllers.shared.backup_reports import BackupReports
from etcd_operator.controllers.shared.caches import (
    Caches,
    CacheSource,
    coreos_caches,
    improbable_caches,
    policy_cache,
)
from etcd_operator.controllers.shared.groups import Group, Later, Wiring
from etcd_operator.controllers.shared.job_reader import JobReader
from etcd_operator.controllers.shared.jobs import JobCaches
from etcd_operator.controllers.shared.tokens import Tokens
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.engine.backoff import Backoff
from etcd_operator.errors import Unavailable
from etcd_operator.etcd.channel import Channels
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Resource


def build_groups(wiring: Wiring, source: CacheSource) -> tuple[Group, ...]:
    """The groups of clusters and of all other resources, wired but not started."""
    policies = policy_cache(source)
    of_improbable, of_coreos = improbable_caches(source, policies), coreos_caches(source, policies)
    backups, restores = backup_caches(source), restore_caches(source)
    authorities = AuthorityStore(
        client=wiring.client, clock=wiring.clock, namespace=wiring.own_namespace, zone=wiring.zone
    )
    certificates = ToolCertificates(authorities=authorities, clock=wiring.clock)
    of_users = AuthReports(wiring.epoch)
    of_schedules, of_tools = BackupReports(wiring.epoch), BackupReports(wiring.epoch)
    return (
        # Of two that are equally old, the one with persistent members is served.
        _improbable(
            wiring,
            of_improbable,
            of_coreos,
            backups.owners,
            restores,
            of_schedules,
            authorities,
            of_users=of_users,
        ),
        _coreos(wiring, of_coreos, of_improbable, of_tools, certificates, of_users=of_users),
        tool_group(wiring, source, of_coreos, of_tools, certificates),
        backup_group(wiring, backups, (of_improbable.clusters, of_coreos.clusters), authorities.for_job),
        *schedule_groups(wiring, source, backups, of_improbable, of_schedules),
        restore_group(wiring, restores),
        auth_group(
            wiring, auth_caches(source, of_improbable, of_coreos), _reach(wiring, authorities), of_users
        ),
    )


def _reach(wiring: Wiring, authorities: AuthorityStore) -> Reach:
    """How clusters are reached to change their users and roles: as root, where they have client TLS."""
    dialects: dict[Resource, Dialect[Any]] = {
        resources.IMPROBABLE_CLUSTERS: ImprobableDialect(wiring.defaults),
        resources.COREOS_CLUSTERS: CoreosDialect(wiring.defaults, wiring.own_image),
    }

    def reach(cluster: Any, kind: Resource, members: Mapping[str, str]) -> Access:
        desired = dialects[kind].desired(cluster)
        if not desired.secured.is_dialed:
            return Access(channels=Channels())
        made, credentials = authorities.recorded(desired), authorities.credentials(desired)
        if credentials is None:
            raise Unavailable(f"the CAs of cluster {desired.name} are missing")
        channels = Channels(credentials)
        channels.identify({at: dialects[kind].member_host(desired, name) for at, name in members.items()})
        authority = ClientAuthority(
            pair=made.client.issuer,
            bundle=made.client.bundle,
            shared=shared_secret(desired.name),
            refusal=authorities.clock_problem(),
        )
        return Access(channels=channels, authority=authority)

    return reach


def new_backoff(clock: Clock) -> Backoff[Key]:
    """5 ms doubling to 30 s for a key.

    client-go's cap of 1000 s is for cosmetic objects; these are quorums.
    """
    return Backoff(clock, base=0.005, cap=30.0)


def _improbable(  # noqa: PLR0913 -- what the other groups share with it
    wiring: Wiring,
    caches: Caches[improbable.EtcdCluster],
    other: Caches[Any],
    backups: Informer[EtcdBackup],
    restores: JobCaches[EtcdRestore],
    reports: BackupReports,
    authorities: AuthorityStore,
    *,
    of_users: AuthReports,
) -> ClusterGroup:
    writes, memory = wiring.writes(caches.all()), PeerMemory(clock=wiring.clock, epoch=wiring.epoch)
    to_cluster, answered = Later(), Later()
    # Not the writes of the cluster's passes: the passes of peers wait until caches show these.
    of_peers = wiring.writes(caches.all())
    disown = _peer_status_writer(wiring, caches, of_peers).disown
    peers = peer_reconciler(wiring, caches, of_peers, memory, disown, to_cluster)
    dialect = ImprobableDialect(wiring.defaults)
    readings = readings_of(wiring, writes, to_cluster, dialect, authorities)
    parts = Parts(
        caches=caches,
        dialect=dialect,
        writes=writes,
        answered=answered,
        readings=readings,
        members=partial(PersistentMembers, image=wiring.own_image, repository=wiring.defaults.repository),
        backup_reports=reports,
        auth_reports=of_users,
        owns_pod=persistent.owns_pod(caches),
        conflicting_cluster=_conflicting_cluster(other, or_equal=False),
        all_clusters=(caches.clusters, other.clusters),
        authorities=authorities,
        handshakes=handshakes_of(wiring, to_cluster),
        peer_problem=memory.problem,
        peer_status=_peer_status_writer(wiring, caches, writes),
        backups_of=StoredBackups(
            caches=caches,
            backups=backups,
            jobs=JobReader(caches=restores, waits=wiring.waits()),
            writes=writes,
            clock=wiring.clock,
        ),
    )
    group = _cluster_group(wiring, "improbable-cluster", parts, other, to_cluster, answered)
    peer_controller = wiring.new_controller("improbable-peer", peers.reconcile)
    peers.wake(peer_controller.enqueue)
    return replace(group, controllers=(*group.controllers, peer_controller))


def _peer_status_writer(
    wiring: Wiring, caches: Caches[improbable.EtcdCluster], writes: Writes
) -> PeerStatusWriter:
    if caches.peers is None:
        raise TypeError("persistent members need a cache of peers")
    return PeerStatusWriter(writes=writes, peers=caches.peers, clock=wiring.clock)


def _coreos(
    wiring: Wiring,
    caches: Caches[coreos.EtcdCluster],
    other: Caches[Any],
    reports: BackupReports,
    certificates: ToolCertificates,
    *,
    of_users: AuthReports,
) -> ClusterGroup:
    to_cluster, answered = Later(), Later()
    authorities = certificates.authorities
    writes = wiring.writes(caches.all())
    dialect = CoreosDialect(wiring.defaults, wiring.own_image)
    tool_backups = KnownToolBackups(
        caches=caches,
        writes=writes,
        tokens=Tokens(clock=wiring.clock, name_of=tool_name),
        inquiries=wiring.inquiries(
            "restorable-backups",
            on_answer=to_cluster,
            ask=lambda tool: wiring.ask_restorable(tool.server, tool.cluster_id),
        ),
        waits=wiring.waits(),
        desired=dialect.desired,
        trust=certificates.trust,
    )
    readings = readings_of(wiring, writes, to_cluster, dialect, authorities)
    parts = Parts(
        caches=caches,
        dialect=dialect,
        writes=writes,
        answered=answered,
        readings=readings,
        members=partial(EphemeralMembers, image=wiring.own_image),
        backup_reports=reports,
        auth_reports=of_users,
        owns_pod=ephemeral.owns_pod,
        conflicting_cluster=_conflicting_cluster(other, or_equal=True),
        all_clusters=(caches.clusters, other.clusters),
        authorities=authorities,
        handshakes=handshakes_of(wiring, to_cluster),
        tool_backups_of=tool_backups,
    )
    group = _cluster_group(wiring, "coreos-cluster", parts, other, to_cluster, answered)
    return replace(group, closing=(*group.closing, tool_backups.inquiries.stop))


def _cluster_group(
    wiring: Wiring, name: str, parts: Parts[Any], other: Caches[Any], to_cluster: Later, answered: Later
) -> ClusterGroup:
    """The group with a controller of clusters. name: of that controller."""
    reconciler, caches = parts.reconciler(wiring), parts.caches
    quorums = quorum_check(wiring, reconciler.prober, to_cluster)
    clusters = wiring.new_controller(name, reconciler.reconcile)
    to_cluster.target, answered.target = clusters.enqueue, clusters.resume
    parts.backup_reports.wake.target = clusters.enqueue
    parts.auth_reports.wakes[caches.resource] = clusters.enqueue
    caches.wake(clusters.enqueue, clusters.restart)
    return ClusterGroup(
        name=caches.resource.group,
        informers=tuple(caches.all()),
        optional=(caches.policies,),
        others=(other.clusters,),
        controllers=(clusters,),
        checks=(quorums.check,),
        closing=(
            quorums.stop,
            reconciler.prober.stop,
            parts.readings.inquiries.stop,
            parts.handshakes.inquiries.stop,
        ),
        prober=reconciler.prober,
    )


def _conflicting_cluster(other: Caches[Any], *, or_equal: bool) -> ConflictingCluster:
    """Which clusters of the other group take precedence: those that are older, or also equally old."""

    def is_before(key: Key, created: str) -> bool:
        cluster, unreadable = other.clusters.store.get(key), other.clusters.store.unreadable_at(key)
        if cluster is not None:
            made = cluster.metadata.creation_timestamp
        elif unreadable is not None:
            made = unreadable.created
        else:
            return False
        return bool(made < created or (or_equal and made == created))

    return is_before
