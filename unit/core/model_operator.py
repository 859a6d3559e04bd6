"""The operator in the model world: what it sees, and what its actions do there.

It sees through caches, one for each kind, that may be behind. Its own writes are waited for, as
`reconcile.expectations` does, except when the reply was lost or the operator was restarted.
Each action has one handler in `_apply`; an action that meets a changed world raises `Refused`.
"""

from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from etcd_operator.core.actions import (
    Action,
    AddLearner,
    ConfirmLoss,
    CreateClientService,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    Founding,
    KeepBudget,
    MoveLeader,
    OpenSeed,
    PadLog,
    Plan,
    Promote,
    Remember,
    RemoveMember,
    ReplaceMember,
    Resuming,
    RetireMember,
    SealMember,
    SealSeed,
)
from etcd_operator.core.desired import DesiredCluster, Durability
from etcd_operator.core.members import (
    Answer,
    ClaimFacts,
    EtcdMember,
    Member,
    PeerFacts,
    PodFacts,
    Trouble,
    ordinal_of,
)
from etcd_operator.core.plan import RULES
from etcd_operator.core.state import ClusterState
from unit.core.model import Peer, Process, Resource, World

LATER = ("quorum_lost", "recover", "scale", "upgrade")
BIRTH_RULES = tuple(rule for rule in RULES if rule.__module__.rpartition(".")[2] not in LATER)
"""The rules in their order, without those that change membership: the model does not know learners yet."""

KINDS = ("resource", "pods", "peers", "claims", "services")


class Refused(Exception):
    """The API server refused a write, because what it was based on has changed."""


@dataclass
class Operator:
    """One operator: caches, what it waits to see, and its passes."""

    world: World
    cache: dict[str, Any] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Everything is forgotten; new caches begin with a list, which is never stale."""
        self.awaited.clear()
        for kind in KINDS:
            self.deliver(kind)

    def deliver(self, kind: str) -> None:
        """The watch of one kind catches up."""
        found = getattr(self.world, kind)
        self.cache[kind] = dict(found) if isinstance(found, dict) else found
        self.awaited.discard(kind)

    # observing

    def observe(self) -> ClusterState | None:
        """The state as `reconcile.observe` would join it; None while there is no resource."""
        resource = self.cache["resource"]
        if resource is None:
            return None
        members = tuple(self._member(name) for name in sorted(self._names(resource), key=ordinal_of))
        desired = self._desired(resource)
        if not self.world.is_persistent and not desired.record.is_born and _missing(desired, members):
            members = tuple(self._judged(member) for member in members)
        return ClusterState(
            desired=desired,
            members=members,
            has_client_service="db" in self.cache["services"],
            budget=self.world.budget,
            is_fresh=not self.awaited,
            age=3600.0,
            has_quorum=any(m.answer is not None and m.answer.leader for m in members),
        )

    def _desired(self, resource: Resource) -> DesiredCluster:
        kept = Durability.PERSISTENT if self.world.is_persistent else Durability.EPHEMERAL
        return DesiredCluster(
            api_version="example/v1",
            namespace="ns",
            name="db",
            uid=resource.uid,
            generation=1,
            created="",
            size=resource.size,
            version="3.6.16",
            image="etcd",
            durability=kept,
            record=resource.record,
        )

    def _names(self, resource: Resource) -> set[str]:
        listed = {entry.name for process in self._answering() for entry in _list_of(process)}
        return {*self.cache["pods"], *self.cache["peers"], *self.cache["claims"], *listed}

    def _answering(self) -> list[Process]:
        """What answers where the cache knows of a running pod."""
        uids = [pod.uid for pod in self.cache["pods"].values() if pod.is_running]
        found = [self.world.processes[uid] for uid in uids if uid in self.world.processes]
        return [process for process in found if process.has_led and not process.is_frozen]

    def _member(self, name: str) -> Member:
        pod, peer = self.cache["pods"].get(name), self.cache["peers"].get(name)
        claim = self.cache["claims"].get(name)
        process = next((p for p in self._answering() if p.name == name), None)
        best = max(self._answering(), key=lambda p: p.disk.committed, default=None)
        entries = {entry.name: entry for entry in _list_of(best)} if best is not None else {}
        return Member(
            name=name,
            has_replica_set=peer is not None and peer.template is not None,
            has_service=name in self.cache["services"],
            peer=peer and PeerFacts(name=name, uid=peer.uid, is_sealed=isinstance(peer.start, Resuming)),
            claim=claim
            and ClaimFacts(
                name=name,
                uid=claim.uid,
                is_bound=True,
                token=claim.token,
                founders=claim.founders,
                cluster_id=claim.cluster_id,
                member_id=claim.member_id,
                cluster_size=claim.cluster_size,
            ),
            pod=pod
            and PodFacts(
                name=name,
                uid=pod.uid,
                is_running=pod.is_running,
                has_run=pod.has_run,
                has_restarted=pod.has_restarted,
                trouble=pod.trouble,
            ),
            entry=entries.get(name),
            answer=self._answer(process) if process is not None else None,
            trouble=pod.trouble if pod is not None else self._peer_trouble(name),
        )

    def _peer_trouble(self, name: str) -> Trouble | None:
        return Trouble(reason="ClaimLost", message="lost") if self.world.is_claim_lost(name) else None

    def _answer(self, process: Process) -> Answer:
        serving = [up for up in self.world.groups(led=True) if process in up]
        return Answer(
            member_id=f"id-{process.name}",
            cluster_id=process.disk.cluster_id,
            version="3.6.16",
            leader=f"id-{serving[0][0].name}" if serving else "",
            committed=process.disk.committed,
            members=_list_of(process),
        )

    def _judged(self, member: Member) -> Member:
        pod = member.pod
        if pod is None or not pod.is_running or pod.has_restarted or member.answer is not None:
            return member
        process = self.world.processes.get(pod.uid)
        return member.proven(never_led=process is not None and not process.is_frozen and not process.has_led)

    # acting

    def step(self, *, stop_after: int = 99, loses_reply: bool = False) -> Plan | None:
        """One pass; it ends after `stop_after` actions, the last of which may lose its reply."""
        state = self.observe()
        if state is None:
            return None
        made = next((opinion for rule in BIRTH_RULES if (opinion := rule(state))), Plan.settled())
        for number, action in enumerate(made.actions[:stop_after], start=1):
            waited = set(self.awaited)
            try:
                self._apply(state.desired, action)
            except Refused:
                break
            if loses_reply and number == min(stop_after, len(made.actions)):
                self.awaited = waited
        return made

    def _apply(self, desired: DesiredCluster, action: Action) -> None:
        world = self.world
        if world.resource is None or world.resource.uid != desired.uid:
            raise Refused("the resource is gone: what is made for it is removed at once")
        match action:
            case Remember():
                self._remember(world.resource, action)
            case CreateClientService():
                world.services.setdefault("db", desired.uid)
                self.awaited.add("services")
            case CreateMemberService():
                world.services.setdefault(action.name, desired.uid)
                self.awaited.add("services")
            case KeepBudget():
                world.budget = action.min_available
            case CreateMember():
                self._create_member(world.resource, action)
            case SealMember():
                self._seal(action)
            case AddLearner() | Promote() | MoveLeader() | RemoveMember() | DeleteMember():
                raise NotImplementedError(f"{action} is not a part of births")
            case ConfirmLoss() | SealSeed() | RetireMember() | OpenSeed() | ReplaceMember() | PadLog():
                raise NotImplementedError(f"{action} is not a part of births")
            case _:
                assert_never(action)

    def _remember(self, resource: Resource, action: Remember) -> None:
        if resource.version != self.cache["resource"].version:
            raise Refused("the status was written by somebody else")
        written = replace(resource, record=action.record, version=resource.version + 1)
        self.world.resource = written
        self.awaited.add("resource")

    def _create_member(self, resource: Resource, action: CreateMember) -> None:
        world = self.world
        if isinstance(action.start, Founding) and resource.record.is_born:
            world.founded_after_latch = True
        if world.is_persistent:
            world.peers.setdefault(action.name, Peer(uid=world.uid("peer"), start=action.start))
            self.awaited.add("peers")
        else:
            if action.name not in world.pods:
                world.create_pod(action.name, action.start)
            self.awaited.add("pods")

    def _seal(self, action: SealMember) -> None:
        claim, peer = self.world.claims.get(action.name), self.world.peers.get(action.name)
        if claim is None:
            raise Refused("the claim is gone")
        self.world.claims[action.name] = replace(
            claim,
            cluster_id=action.cluster_id,
            member_id=action.member_id,
            cluster_size=action.cluster_size,
        )
        self.awaited.add("claims")
        if peer is None:
            raise Refused("the peer is gone")
        self.world.peers[action.name] = replace(peer, start=Resuming(token=peer.start.token))
        self.awaited.add("peers")


def _list_of(process: Process) -> tuple[EtcdMember, ...]:
    return tuple(
        EtcdMember(id=f"id-{name}", name=name, peer_urls=(f"http://{name}:2380",))
        for name in process.disk.founders
    )


def _missing(desired: DesiredCluster, members: tuple[Member, ...]) -> bool:
    there = {m.name for m in members if m.pod is not None}
    bootstrap = desired.record.bootstrap
    return bootstrap is not None and not there.issuperset(bootstrap.members)
