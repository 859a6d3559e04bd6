"""A world small enough to think about: Kubernetes objects, etcd processes, clients.

Nothing happens but in the methods called. etcd follows verified-facts.md A: flags count only
on an empty data directory; founding flags start an empty member, unless a running member
remembers that it was there before; `existing` alone refuses an empty directory; a quorum of
processes of one cluster ID serves with the union of what they hold, and a process answers
calls from the first leader it has seen. Clients write as soon as a quorum serves.

Assumed: a kubelet's report comes before anything else happens; volumes are wiped in place only
under sealed members (before that no operator could know); objects go at once when deleted.

`losses` says in sentences what must never happen; `lose` tells what the user destroyed himself.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from etcd_operator.core.actions import Founding, Start
from etcd_operator.core.desired import Record
from etcd_operator.core.members import Trouble, quorum


@dataclass(frozen=True, kw_only=True)
class Resource:
    """The stored cluster resource; `version` counts its writes."""

    uid: str
    size: int
    version: int
    record: Record = field(default_factory=Record)


@dataclass(frozen=True, kw_only=True)
class Peer:
    """An EtcdPeer; `template`: what its ReplicaSet makes pods from, None before there is one."""

    uid: str
    start: Start
    template: Start | None = None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim with its annotations."""

    uid: str
    token: str
    founders: tuple[str, ...]
    cluster_id: str = ""
    member_id: str = ""
    cluster_size: int = 0


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod as its kubelet reports it."""

    uid: str
    start: Start
    is_running: bool = False
    has_run: bool = False
    has_restarted: bool = False
    trouble: Trouble | None = None


@dataclass(kw_only=True)
class Disk:
    """A data directory; empty while `cluster_id` is. published: members known to have been there."""

    cluster_id: str = ""
    founders: tuple[str, ...] = ()
    committed: int = 0
    writes: set[int] = field(default_factory=set)
    published: set[str] = field(default_factory=set)


@dataclass(kw_only=True)
class Process:
    """A running etcd. has_led: it has seen a leader since it started."""

    name: str
    disk: Disk
    has_led: bool = False
    is_frozen: bool = False


class World:
    """One namespace with at most one cluster resource."""

    def __init__(self, *, is_persistent: bool, size: int) -> None:
        self.is_persistent = is_persistent
        self.pods: dict[str, Pod] = {}
        self.peers: dict[str, Peer] = {}
        self.claims: dict[str, Claim] = {}
        self.services: dict[str, str] = {}
        self.budget: int | None = None
        self.disks: dict[str, Disk] = {}
        self.processes: dict[str, Process] = {}
        self.unpullable: set[str] = set()
        self.acknowledged: dict[str, set[int]] = {}
        self.losses: list[str] = []
        self.founded_after_latch = False
        self._numbers = count(1)
        self.resource: Resource | None = None
        self.create_cluster(size)

    def uid(self, kind: str) -> str:
        """A new, unique one."""
        return f"{kind}-{next(self._numbers)}"

    # what a user does

    def create_cluster(self, size: int) -> None:
        """Create the resource."""
        self.resource = Resource(uid=self.uid("cluster"), size=size, version=next(self._numbers))

    def delete_cluster(self) -> None:
        """Delete the resource: Kubernetes removes what it owns, claims stay."""
        self.resource = None
        for name in list(self.pods):
            self.remove_pod(name)
        self.peers.clear()
        self.services.clear()
        self.budget = None
        if not self.is_persistent:
            self.acknowledged.clear()

    def delete_claim(self, name: str) -> None:
        """Delete a claim together with the peer and pod that use it; with the last one go all promises."""
        self.delete_peer(name)
        self.claims.pop(name, None)
        if not self.claims:
            self.acknowledged.clear()

    def delete_peer(self, name: str) -> None:
        """Delete an EtcdPeer: its ReplicaSet and pod go with it."""
        self.peers.pop(name, None)
        self.remove_pod(name)

    # what controllers and kubelets do

    def run_controllers(self) -> None:
        """Claims, then, once all founders have theirs, ReplicaSets (see `reconcile.peer`) and pods."""
        for name, peer in list(self.peers.items()):
            if peer.template is None and name not in self.claims and not self.is_claim_lost(name):
                founders = peer.start.founders if isinstance(peer.start, Founding) else ()
                self.claims[name] = Claim(uid=self.uid("claim"), token=peer.start.token, founders=founders)
        for name, peer in list(self.peers.items()):
            if peer.template is None and not self._may_start(peer):
                continue
            self.peers[name] = replace(peer, template=peer.start)
            if name not in self.pods:
                self.create_pod(name, peer.start)

    def is_claim_lost(self, name: str) -> bool:
        """Whether a founder's claim is missing while another founder may have served."""
        peer = self.peers.get(name)
        if peer is None or peer.template is not None or not isinstance(peer.start, Founding):
            return False
        others = (self.peers.get(other) for other in peer.start.founders if other != name)
        has_started = any(other is not None and other.template is not None for other in others)
        return name not in self.claims and has_started

    def _may_start(self, peer: Peer) -> bool:
        return not isinstance(peer.start, Founding) or set(peer.start.founders) <= set(self.claims)

    def create_pod(self, name: str, start: Start) -> None:
        """A new pod that has not been started."""
        self.pods[name] = Pod(uid=self.uid("pod"), start=start)

    def remove_pod(self, name: str) -> None:
        """The pod and its process go; an ephemeral member's data goes with them."""
        pod = self.pods.pop(name, None)
        if pod is not None:
            self.processes.pop(pod.uid, None)

    def run_kubelet(self, name: str) -> None:
        """Start the pod's etcd if it does not run."""
        pod = self.pods[name]
        if pod.uid in self.processes or (self.is_persistent and name not in self.claims):
            return
        if name in self.unpullable and not pod.has_run:
            trouble = Trouble(reason="ErrImagePull", message="no such image")
            self.pods[name] = replace(pod, trouble=trouble)
            return
        disk = self._disk(name)
        self.pods[name] = replace(pod, has_run=True, is_running=True, trouble=None, has_restarted=pod.has_run)
        if not disk.cluster_id and not self._founds(name, pod.start, disk):
            trouble = Trouble(reason="CrashLoopBackOff", message="etcd refuses to start")
            self.pods[name] = replace(pod, has_run=True, has_restarted=True, trouble=trouble)
            return
        self.processes[pod.uid] = Process(name=name, disk=disk)

    def kill(self, name: str) -> None:
        """The process ends; the kubelet will start it again in the same pod."""
        pod = self.pods[name]
        if self.processes.pop(pod.uid, None) is not None:
            self.pods[name] = replace(pod, is_running=False, has_restarted=True)

    def wipe(self, name: str) -> None:
        """The volume of a sealed member loses its data, and its pod with it."""
        self.remove_pod(name)
        self.disks[self.claims[name].uid] = Disk()

    def _disk(self, name: str) -> Disk:
        holder = self.claims[name].uid if self.is_persistent else self.pods[name].uid
        return self.disks.setdefault(holder, Disk())

    def _founds(self, name: str, start: Start, disk: Disk) -> bool:
        if not isinstance(start, Founding):
            return False
        cluster_id = f"id({start.token},{len(start.founders)})"
        for process in self.alive():
            if process.disk.cluster_id == cluster_id and name in process.disk.published:
                return False
        disk.cluster_id, disk.founders, disk.committed = cluster_id, start.founders, len(start.founders)
        return True

    # what etcd and its clients do

    def alive(self) -> list[Process]:
        """Processes that run and are not frozen."""
        return [process for process in self.processes.values() if not process.is_frozen]

    def groups(self, *, led: bool) -> list[list[Process]]:
        """Quorums of one cluster ID, of those alive; led: that have already found each other."""
        found = []
        for cluster_id in sorted({process.disk.cluster_id for process in self.alive()}):
            up = [p for p in self.alive() if p.disk.cluster_id == cluster_id and (p.has_led or not led)]
            if up and len(up) >= quorum(len(up[0].disk.founders)):
                found.append(up)
        return found

    def elect(self) -> None:
        """Where a quorum is up, it elects a leader and serves what its members hold together."""
        for up in self.groups(led=False):
            cluster_id = up[0].disk.cluster_id
            held = set().union(*(process.disk.writes for process in up))
            self._judge(cluster_id, held)
            committed = max(process.disk.committed for process in up) + 1
            published = set().union(*(p.disk.published for p in up), (p.name for p in up))
            for process in up:
                process.has_led = True
                process.disk.committed = committed
                process.disk.writes, process.disk.published = set(held), set(published)

    def write(self, preferred: Iterable[int] = ()) -> None:
        """A client writes to each serving quorum: no more members than needed have it when it is told so."""
        for up in self.groups(led=True):
            first = [up[index % len(up)] for index in preferred]
            order = list({id(process): process for process in [*first, *up]}.values())
            number = next(self._numbers)
            for process in order[: quorum(len(up[0].disk.founders))]:
                process.disk.writes.add(number)
                process.disk.committed += 1
            self.acknowledged.setdefault(up[0].disk.cluster_id, set()).add(number)
            if len(self.acknowledged) > 1:
                self.losses.append(f"born twice: {sorted(self.acknowledged)} all took writes")

    def existing_disks(self) -> list[Disk]:
        """Data directories that are still there."""
        holders = self.claims if self.is_persistent else self.pods
        return [self.disks[holder.uid] for holder in holders.values() if holder.uid in self.disks]

    def _judge(self, cluster_id: str, held: set[int]) -> None:
        """What was acknowledged and still lies on some disk must be served by every quorum."""
        for known, writes in self.acknowledged.items():
            missing = writes - held
            hidden = [d for d in self.existing_disks() if d.cluster_id == known and d.writes & missing]
            if hidden and (known == cluster_id or not held):
                self.losses.append(f"a quorum of {cluster_id} serves without {sorted(missing)} of {known}")
