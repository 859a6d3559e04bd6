"""The operator in the model world: its caches and probes, and its passes.

Objects reach it through caches, one for each kind, that may be behind; etcd's replies are those of the
processes that it reaches at that moment. `decide.observation` joins them, as in the real operator. Its own
writes are waited for, as `shared.writes` does, except when the reply was lost or the operator was
restarted. The world may go on between a decision and the acts that follow from it. What the acts do is in
model_acts.py.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, RestoreFrom
from etcd_operator.controllers.etcd_cluster.decide.fact import extended
from etcd_operator.controllers.etcd_cluster.decide.facts.departing import departing
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PodFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.metrics_pages import needed
from etcd_operator.controllers.etcd_cluster.decide.observation import is_own_quorum, observed
from etcd_operator.controllers.etcd_cluster.decide.orphans import Unlabelled
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.readiness import readiness_updates, routes
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import missed
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import (
    NO_BACKUPS,
    BackupFacts,
    ToolBackups,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.proof import situation
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import Left
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply, Silence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from etcd_operator.etcd.values import UNREAD, MetricsPage
from etcd_operator.etcd.values import Refused as Refusal
from unit.simulation.model import Refused, Resource, World
from unit.simulation.model_acts import apply
from unit.simulation.model_disks import Process
from unit.simulation.model_facts import (
    Memory,
    claim_facts,
    list_of,
    name_at,
    peer_facts,
    pod_facts,
)
from unit.simulation.model_judge import judge
from unit.simulation.model_pods import Claim, Pod
from unit.simulation.model_recovery import with_readings

KINDS = ("resource", "pods", "unlabelled", "going", "peers", "claims", "services", "budget")
Decision = tuple[ClusterState, Plan]


def assert_kept(state: ClusterState) -> None:
    """The facts that were found before backups were observed do not depend on backups."""
    anew = replace(state)
    assert missed(state) == missed(anew)
    kept = situation(state)
    assert (replace(kept, state=anew) if isinstance(kept, Left) else kept) == situation(anew)


@dataclass
class Operator:
    """One operator: caches, what it waits to see, and its passes. Between two observations lies a second."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    world: World
    cache: dict[str, Any] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)
    acted: Counter[str] = field(default_factory=Counter)
    unavailable_for: float = 0.0
    silent: dict[str, tuple[str, float]] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Everything is forgotten; new caches begin with a list, which is never stale."""
        self.awaited.clear()
        self.silent.clear()
        self.memory = Memory()
        self.catch_up()

    def catch_up(self) -> None:
        """All watches do."""
        for kind in self.kinds:
            self.deliver(kind)

    def deliver(self, kind: str) -> None:
        """The watch of one kind catches up."""
        found = getattr(self.world, kind)
        self.cache[kind] = dict(found) if isinstance(found, dict) else found
        without = self.world.unlabelled
        if kind == "pods":
            self.cache[kind] = {name: pod for name, pod in found.items() if pod.uid not in without}
        elif kind == "unlabelled":
            self.cache[kind] = tuple(pod for pod in self.world.pods.values() if pod.uid in without)
        self.awaited.discard(kind)

    # observing

    def observe(self) -> ClusterState | None:
        """The state as `observe.observer` has it joined; None while there is no resource."""
        resource = self.cache["resource"]
        if resource is None:
            return None
        desired = self._desired(resource)
        objects = {name: self._member(name) for name in self._object_names()}
        replies = {name: self._reply(process) for name, process in self._answering().items()}
        has_quorum = any(_proves_quorum(self.world, process) for process in self._answering().values())
        replies |= {name: Silence(seconds=seconds) for name, seconds in self._silences(replies).items()}
        pages = {name: self._page(name) for name in needed(desired, objects, replies, has_quorum=has_quorum)}
        found = observed(desired, objects, replies, pages, name_at=name_at)
        state = ClusterState(
            desired=desired,
            members=found.members,
            unknown_members=found.unknown_members,
            unlabelled=tuple(
                Unlabelled(name=pod.name, uid=pod.uid, member=pod.name)
                for pod in self.cache["unlabelled"]
                if not pod.is_terminating
            ),
            kept_claims=tuple(claim_facts(name, c) for name, c in self.cache["claims"].items() if c.given_up),
            has_client_service="db" in self.cache["services"],
            budget=self.cache["budget"],
            is_fresh=not self.awaited,
            age=3600.0,
            has_quorum=has_quorum and is_own_quorum(found),
            unavailable_for=self.unavailable_for,
        )
        state = with_readings(self.world, state)
        state = self.memory.counted(state)
        tool_backups = (
            ToolBackups(has_source_tool=not self.world.tool.is_direct)
            if resource.restores and not state.persisted.is_bootstrapped
            else self.memory.tool_backups(state, resource)
        )
        backups = self.backups_of(state)
        found = extended(state, missed, situation, tool_backups=tool_backups, backups=backups)
        assert_kept(found)
        member = departing(found)  # between two observations all nodes learn what is reached no more
        is_reached = member is not None and member.pod is not None and member.pod.is_routed
        return replace(found, is_departing_reached=is_reached)

    def backups_of(self, state: ClusterState) -> BackupFacts:
        """What it knows of EtcdBackups: see `model_stored_operator`."""
        return NO_BACKUPS

    def hear_of_backups(self) -> None:
        """The answer of the backup tool comes, if it was asked."""
        self.memory.questions.hear(self.world.tool)

    def _desired(self, resource: Resource) -> DesiredCluster:
        return DesiredCluster(
            api_version="example/v1",
            namespace="ns",
            name="db",
            uid=resource.uid,
            generation=resource.writes,
            created="",
            size=resource.size,
            version=resource.version,
            repository="etcd",
            kind=PERSISTENT if self.world.is_persistent else EPHEMERAL,
            persisted=resource.persisted,
            recover=resource.recover,
            recovers_after=resource.recovers_after,
            restore_in_place=resource.restore_in_place,
            restore=RestoreFrom(cluster="db") if resource.restores else None,
        )

    def _claims(self) -> dict[str, Claim]:
        """Those that no recovery has given up."""
        return {name: claim for name, claim in self.cache["claims"].items() if not claim.given_up}

    def _object_names(self) -> set[str]:
        cache = self.cache
        services = set() if self.world.is_persistent else set(cache["services"]) - {"db"}
        going = {pod.name for pod in cache["going"].values()}
        return {*cache["pods"], *going, *cache["peers"], *self._claims(), *services}

    def _pod(self, name: str) -> Pod | None:
        """Of two pods of one member the one that is not being deleted counts."""
        found: Pod | None = self.cache["pods"].get(name)
        return found or next((pod for pod in self.cache["going"].values() if pod.name == name), None)

    def _answering(self) -> dict[str, Process]:
        """The processes that answer where the caches know of a running pod, by member."""
        found = {}
        for name in self._object_names():
            pod = self._pod(name)
            process = self.world.processes.get(pod.uid) if pod is not None and pod.is_running else None
            if process and process.has_led and not process.is_frozen and not process.is_unreachable:
                found[name] = process
        return found

    def _member(self, name: str) -> Member:
        pod, peer, claim = self._pod(name), self.cache["peers"].get(name), self._claims().get(name)
        return Member(
            name=name,
            has_replica_set=peer is not None and peer.template is not None,
            has_lost_claim=pod is None and self.world.is_claim_lost(name),
            has_service=not self.world.is_persistent and name in self.cache["services"],
            peer=peer_facts(name, peer) if peer is not None else None,
            claim=claim_facts(name, claim) if claim is not None else None,
            pod=self.pod_facts(pod) if pod is not None else None,
            problem=pod.problem if pod is not None else self._peer_problem(name),
        )

    def pod_facts(self, pod: Pod) -> PodFacts:
        """Only the pods of ephemeral members state their version themselves."""
        process = self.world.processes.get(pod.uid)
        facts = replace(pod_facts(pod), started_lately=process is not None and not process.is_seasoned)
        return replace(facts, version="") if self.world.is_persistent else facts

    def _peer_problem(self, name: str) -> PodProblem | None:
        return PodProblem(reason="ClaimLost", message="lost") if self.world.is_claim_lost(name) else None

    def _reply(self, process: Process) -> Reply:
        group = self.world.group_of(process)
        if self.world.requires_user:
            return Refusal(is_serving=_proves_quorum(self.world, process))
        return Answer(
            member_id=process.disk.member_id,
            cluster_id=process.disk.cluster_id,
            version=process.version,
            leader=group.leader.disk.member_id if group is not None else "",
            committed=process.disk.committed,
            applied=process.disk.committed,
            revision=process.revision,
            is_learner=is_learner(process),
            corrupt=frozenset(process.disk.corrupt),
            members=() if is_learner(process) else list_of(process.disk),
        )

    def _silences(self, replies: Collection[str]) -> dict[str, float]:
        """As `observe.prober` remembers them, but faster: each probe counts as half a minute."""
        earlier, self.silent = self.silent, {}
        for name in self._object_names():
            pod = self._pod(name)
            if name not in replies and pod is not None and pod.is_running:
                uid, seconds = earlier.get(name, ("", 0.0))
                self.silent[name] = (pod.uid, seconds + 30.0 if uid == pod.uid else 0.0)
        return {name: seconds for name, (_, seconds) in self.silent.items()}

    def _page(self, name: str) -> MetricsPage:
        """A metrics page can be read from the first moment, also before there is a leader."""
        pod = self._pod(name)
        process = self.world.processes.get(pod.uid) if pod is not None else None
        if process is None or process.is_frozen or process.is_unreachable:
            return UNREAD
        return MetricsPage(leaders_seen=int(process.has_led), snapshots_saved=process.snapshots)

    # acting

    def decide(self) -> Decision | None:
        """What it observes, and what it plans to do about it."""
        state = self.observe()
        if state is None:
            return None
        made = plan(state)
        is_available = any(c.type == "Available" and c.status == "True" for c in conditions(state, made))
        self.unavailable_for = 0.0 if is_available else self.unavailable_for + 1.0
        judge(self.world, state, made)
        return state, made

    def act(self, decision: Decision, *, stop_after: int = 99, loses_reply: bool = False) -> None:
        """Do what was planned; it ends after `stop_after` actions, the last of which may lose its reply."""
        state, made = decision
        self._route(state)
        self._set_conditions(state)
        for number, action in enumerate(made.actions[:stop_after], start=1):
            waited = set(self.awaited)
            try:
                self.awaited |= apply(self.world, self.cache, state, action)
            except Refused:
                break
            self.acted[type(action).__name__] += 1
            if isinstance(action, Remember) and self.world.resource is not None:
                written = replace(
                    state.desired, persisted=action.persisted, generation=self.world.resource.writes
                )
                state = replace(state, desired=written)
            if loses_reply and number == min(stop_after, len(made.actions)):
                self.awaited = waited

    def _route(self, state: ClusterState) -> None:
        """As `observe.readiness` lets clients reach pods, or not."""
        for seen, is_open in routes(state):
            pod = self.world.pods.get(seen.name)
            if pod is not None and pod.uid == seen.uid:
                self.world.pods[seen.name] = replace(pod, is_routed=is_open)
                self.awaited.add("pods")

    def _set_conditions(self, state: ClusterState) -> None:
        """As `observe.readiness` reports on pods which members serve."""
        for update in readiness_updates(state):
            pod = self.world.pods.get(update.name)
            if pod is not None and pod.uid == update.pod.uid and pod.serves is not update.serves:
                self.world.pods[update.name] = replace(pod, serves=update.serves)
                self.awaited.add("pods")

    def step(self, *, stop_after: int = 99, loses_reply: bool = False) -> Plan | None:
        """One pass: a decision, and at once the acts that follow from it."""
        decision = self.decide()
        if decision is None:
            return None
        self.act(decision, stop_after=stop_after, loses_reply=loses_reply)
        return decision[1]


def _proves_quorum(world: World, process: Process) -> bool:
    """Whether it answers a linearizable read."""
    return not is_learner(process) and world.group_of(process) is not None


def is_learner(process: Process) -> bool:
    """Whether a process reports itself as a learner."""
    own = process.disk.members.get(process.disk.member_id)
    return own is not None and own.is_learner
