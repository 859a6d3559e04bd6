"""Reads caches and the results of probes, and has them joined into one `ClusterState`.

The Kubernetes side comes from the caches, the etcd side from the prober; a pass never
waits for either. How they are joined is in `decide.observation`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.adoption import external_answers
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.fact import extended
from etcd_operator.controllers.etcd_cluster.decide.members import Health, Member
from etcd_operator.controllers.etcd_cluster.decide.metrics_pages import needed
from etcd_operator.controllers.etcd_cluster.decide.observation import conflict, is_own_quorum, observed
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import missed
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import (
    NO_BACKUPS,
    NO_TOOL_BACKUPS,
    BackupFacts,
    ToolBackups,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.proof import situation
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply, Silence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, Unseen
from etcd_operator.controllers.etcd_cluster.decide.status import named
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect, client_endpoints
from etcd_operator.controllers.etcd_cluster.manifests.budget import is_as_desired
from etcd_operator.controllers.etcd_cluster.members.cached import CachedMembers
from etcd_operator.controllers.etcd_cluster.members.protocol import OwnsPod
from etcd_operator.controllers.etcd_cluster.observe.consents import Consents
from etcd_operator.controllers.etcd_cluster.observe.departures import Departures
from etcd_operator.controllers.etcd_cluster.observe.labels import unlabelled
from etcd_operator.controllers.etcd_cluster.observe.prober import Prober
from etcd_operator.controllers.etcd_cluster.observe.slots import PagesNeeded
from etcd_operator.controllers.etcd_cluster.recovery.absences import Absences
from etcd_operator.controllers.etcd_cluster.recovery.readers import Readings
from etcd_operator.controllers.etcd_cluster.tls.certificates import Certificates
from etcd_operator.controllers.etcd_cluster.upgrade_watch import UpgradeWaits
from etcd_operator.controllers.shared.caches import Caches, Cluster
from etcd_operator.controllers.shared.manifests.urls import host_of
from etcd_operator.controllers.shared.unreadable import UNREADABLE
from etcd_operator.controllers.shared.writes import Expectations
from etcd_operator.errors import Forbidden, TerminalError
from etcd_operator.etcd.probe import Probe
from etcd_operator.etcd.values import AlarmKind, Answered, EtcdMember, NoAnswer, Refused, Status
from etcd_operator.formats import instant
from etcd_operator.keys import Key

ConflictingCluster = Callable[[Key, str], bool]
"""Whether the other group has a cluster of that key that takes precedence over one made at that time."""

IsNodeLost = Callable[[str], bool]
"""Whether the node of that name has been silent for too long."""


def no_tool_backups(_cluster: object, _state: ClusterState) -> ToolBackups:
    """Of clusters without backups."""
    return NO_TOOL_BACKUPS


def no_backups(_cluster: object, _state: ClusterState) -> BackupFacts:
    """Of clusters that no EtcdBackup is restored to."""
    return NO_BACKUPS


@dataclass(frozen=True, kw_only=True)
class Observer(Generic[Cluster]):
    """Observes the clusters of one API group."""

    caches: Caches[Cluster]
    cached: CachedMembers[Cluster]
    dialect: Dialect[Cluster]
    prober: Prober
    expectations: Expectations
    clock: Clock
    conflicting_cluster: ConflictingCluster
    consents: Consents
    is_node_lost: IsNodeLost
    owns_pod: OwnsPod
    absences: Absences
    awaited: UpgradeWaits
    departures: Departures
    certificates: Certificates
    readings: Readings  # adds what is read of members that answer nobody
    # what is known of a cluster's backup tool
    tool_backups_of: Callable[[Cluster, ClusterState], ToolBackups] = no_tool_backups
    # what is known of a cluster's EtcdBackups
    backups_of: Callable[[Cluster, ClusterState], BackupFacts] = no_backups

    def is_fresh(self, key: Key) -> bool:
        """Whether what is read of the caches from now on shows all that was written for this cluster."""
        return self.expectations.are_met(key)

    def observe(self, key: Key, cluster: Cluster, *, is_fresh: bool) -> ClusterState | None:
        """The state of `cluster` now; None: members are being probed, and the key is queued after that.

        is_fresh: as it was before `cluster` was read. A cache that catches up later has shown too little.
        """
        desired = self.dialect.desired(cluster)
        claims = self.cached.claims(key, desired)
        objects = self.cached.members(key, desired, claims)
        endpoints = client_endpoints(objects.values())
        running = client_endpoints(m for m in objects.values() if m.pod is not None and m.pod.is_running)
        secured = self.certificates.secured(desired, running, objects.values())
        asked = frozenset([*running.values(), *external_answers.endpoints(desired)])
        probe = self.prober.collect(
            key,
            asked if secured.unseen is None else frozenset(),
            frozenset(at for name, at in running.items() if _is_leaving(objects[name])),
            _pages_needed(desired, objects, endpoints),
            secured.access,
        )
        if probe is None:
            return None
        found = observed(
            desired,
            objects,
            _replies(endpoints, probe),
            {name: probe.pages[at] for name, at in endpoints.items() if at in probe.pages},
            external=_replies({at: at for at in external_answers.endpoints(desired)}, probe),
            name_at=lambda url: self.dialect.member_at(desired, host_of(url)),
        )
        now, since = self.clock.now(), desired.unavailable_since
        state = replace(
            found,
            members=tuple(self._with_node(desired, member) for member in found.members),
            unlabelled=unlabelled(self.caches, self.dialect, self.owns_pod, key, desired),
            objects_of_others=self.cached.objects_of_others(key, desired),
            former=self.cached.former(key, desired),
            orphans=self.cached.orphans(key, desired),
            kept_claims=tuple(claim for claim in claims.values() if claim.given_up_by),
            has_client_service=self.cached.has_services(desired),
            budget=self._budget(desired),
            conflict=conflict(desired) if self.conflicting_cluster(key, desired.created) else "",
            is_fresh=is_fresh,
            unseen=secured.unseen or (self._unreadable(key) if is_fresh else self._behind(key)),
            has_quorum=probe.quorum is True and is_own_quorum(found),
            age=(now - instant(desired.created)).total_seconds(),
            unavailable_for=(now - instant(since)).total_seconds() if since else 0.0,
        )
        state = replace(state, tls=self.certificates.facts(secured.facts, desired, state.members))
        state = self.readings(key, replace(state, unconsented=self.consents.missing(state)))
        state = extended(
            state,
            missed,
            absence=self.absences.missed_for(key, state),
            served_for=self.absences.served_for(key, state),
            attempted_for=self.absences.attempted_for(key, state),
            awaited_for=self.awaited.seconds(key, state),
            is_departing_reached=self.departures.is_reached(key, state),
        )
        return self._with_backups(cluster, state)

    def _with_backups(self, cluster: Cluster, state: ClusterState) -> ClusterState:
        """With what is known of its backups; a right that is missing to read them live is reported."""
        try:
            return extended(
                state,
                missed,
                situation,
                tool_backups=self.tool_backups_of(cluster, state),
                backups=self.backups_of(cluster, state),
            )
        except TerminalError as error:
            if not state.is_fresh or state.unseen is not None:
                return state
            reason = "Forbidden" if isinstance(error, Forbidden) else "Refused"
            return replace(state, unseen=Unseen(reason=reason, message=str(error)))

    def _behind(self, key: Key) -> Unseen | None:
        late = self.expectations.late(key)
        if not late:
            return None
        message = f"the API server does not report changes of {'; '.join(late)}: nothing is changed"
        return Unseen(reason="CacheBehind", message=message)

    def _unreadable(self, key: Key) -> Unseen | None:
        found = sorted(self.caches.unreadable(key))
        if not found:
            return None
        names = named(found, "; ")
        message = f"objects of this cluster exist and cannot be read: {names}: nothing is changed"
        return Unseen(reason=UNREADABLE, message=message)

    def forget(self, key: Key) -> bool:
        """The cluster is deleted; whether that has to be said again."""
        self.prober.forget(key)
        self.absences.forget(key)
        self.awaited.forget(key)
        self.departures.forget(key)
        self.readings.forget(key)
        return self.certificates.forget(key)

    def _with_node(self, desired: DesiredCluster, member: Member) -> Member:
        """The member, lost with its node if only the Node itself shows that (see `observe.nodes`)."""
        node = desired.kind.node_to_check(member)
        if member.pod is None or member.health is not Health.NO_ANSWER or not node:
            return member
        return replace(member, pod=replace(member.pod, is_on_lost_node=self.is_node_lost(node)))

    def _budget(self, desired: DesiredCluster) -> int | None:
        """What our budget asks for; None if it is missing or somebody has made something else of it.

        What others add to it is theirs: only what it counts and asks for is compared.
        """
        budget = self.caches.budgets.store.get(desired.key)
        if budget is None or budget.metadata.controller_uid != desired.uid:
            return None
        least = budget.spec.get("minAvailable")
        if not isinstance(least, int) or not is_as_desired(budget.spec, self.dialect.budget(desired, least)):
            return None
        return least


def _is_leaving(member: Member) -> bool:
    return member.pod is not None and member.pod.is_terminating


def _pages_needed(
    desired: DesiredCluster, objects: Mapping[str, Member], endpoints: Mapping[str, str]
) -> PagesNeeded:
    def pages_needed(probe: Probe) -> frozenset[str]:
        replies = _replies(endpoints, probe)
        names = needed(desired, objects, replies, has_quorum=probe.quorum is True)
        return frozenset(endpoints[name] for name in names)

    return pages_needed


def _replies(endpoints: Mapping[str, str], probe: Probe) -> dict[str, Reply]:
    """By name, of those that were probed."""
    return {
        name: reply_of(probe.replies[at], probe.silent_for.get(at, 0.0))
        for name, at in endpoints.items()
        if at in probe.replies
    }


def reply_of(reply: Answered | Refused | NoAnswer, silent_for: float) -> Reply:
    """What a member replied; silent_for: seconds since it last answered, if it did not."""
    match reply:
        case Answered():
            return _answer(reply.status, reply.members or ())
        case Refused():
            return reply
        case NoAnswer():
            return Silence(seconds=silent_for)


def _answer(status: Status, members: tuple[EtcdMember, ...]) -> Answer:
    return Answer(
        member_id=status.member_id,
        cluster_id=status.cluster_id,
        version=status.version,
        leader=status.leader,
        committed=status.raft_index,
        applied=status.raft_applied_index,
        revision=status.revision,
        is_learner=status.is_learner,
        errors=status.errors,
        is_out_of_space=any(alarm.kind is AlarmKind.NOSPACE for alarm in status.alarms),
        corrupt=status.corrupt,
        has_other_errors=bool(status.other_errors),
        members=members,
        db_size=status.db_size,
    )
