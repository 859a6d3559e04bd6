"""A world small enough to think about: Kubernetes objects, and the etcd processes (model_etcd.py) in pods.

Nothing happens but in the methods called. Flags of etcd count only on an empty data directory; `existing`
alone refuses one. A ReplicaSet makes the next pod while the last one is still ending; the second process
waits for the first. Pods on a node that is away neither end nor start; claims go when no pod uses them.

Assumed: a kubelet's report comes before anything else happens; volumes are wiped in place only under
sealed members (before that no operator could know).
"""

from dataclasses import dataclass, field, replace

from etcd_operator.core.actions import Founding, Joining, Resuming, Start
from etcd_operator.core.desired import Record
from etcd_operator.core.members import Trouble
from unit.core.model_etcd import Disk, Etcd, Process

NODES = 3


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
    is_for_cleanup: bool = False
    is_terminating: bool = False


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim with its annotations."""

    uid: str
    token: str
    founders: tuple[str, ...]
    cluster_id: str = ""
    member_id: str = ""
    cluster_size: int = 0
    is_terminating: bool = False


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod as its kubelet reports it."""

    uid: str
    name: str
    start: Start
    node: int
    is_running: bool = False
    has_run: bool = False
    has_restarted: bool = False
    restarts: int = 0
    has_no_data: bool = False
    can_never_join: bool = False
    is_finished: bool = False
    is_on_lost_node: bool = False
    is_terminating: bool = False
    trouble: Trouble | None = None


class World(Etcd):
    """One namespace with at most one cluster resource.

    going: pods of persistent members that are being deleted, by uid; `pods` are all others, by member.
    away: nodes that are cut off or switched off.
    """

    def __init__(self, *, is_persistent: bool, size: int) -> None:
        super().__init__()
        self.is_persistent = is_persistent
        self.pods: dict[str, Pod] = {}
        self.going: dict[str, Pod] = {}
        self.peers: dict[str, Peer] = {}
        self.claims: dict[str, Claim] = {}
        self.services: dict[str, str] = {}
        self.budget: int | None = None
        self.away: set[int] = set()
        self.unpullable: set[str] = set()
        self.founded_after_latch = False
        self.resource: Resource | None = None
        self.create_cluster(size)

    def uid(self, kind: str) -> str:
        """A new, unique one."""
        return f"{kind}-{next(self._numbers)}"

    # what a user does

    def create_cluster(self, size: int) -> None:
        """Create the resource."""
        self.resource = Resource(uid=self.uid("cluster"), size=size, version=next(self._numbers))

    def resize(self, size: int) -> None:
        """Edit the size."""
        if self.resource is not None:
            self.resource = replace(self.resource, size=size, version=next(self._numbers))

    def delete_cluster(self) -> None:
        """Delete the resource: Kubernetes removes what it owns, claims stay."""
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
        self.budget = None
        if not self.is_persistent:
            self.acknowledged.clear()
            self.listed_names.clear()

    def delete_claim(self, name: str) -> None:
        """Delete a claim together with the peer and pod that use it; with the last one go all promises."""
        self.delete_peer(name)
        self.lose_claim(name)

    def lose_claim(self, name: str) -> None:
        """A claim goes at once, volume and pod with it, although it was in use."""
        self.remove_pod(name)
        for uid, pod in list(self.going.items()):
            if pod.name == name:
                self._end_going(uid)
        self.claims.pop(name, None)
        if not self.claims:
            self.acknowledged.clear()

    def delete_claim_gently(self, name: str) -> None:
        """As `kubectl delete`: it goes when no pod uses it."""
        if name in self.claims:
            self.claims[name] = replace(self.claims[name], is_terminating=True)

    def delete_peer(self, name: str) -> None:
        """Delete an EtcdPeer: its ReplicaSet and pod go with it."""
        peer = self.peers.pop(name, None)
        if peer is not None and peer.is_terminating:
            self._clean_up(name, peer)
        self.remove_pod(name)

    # what controllers do

    def run_controllers(self) -> None:
        """Claims, then, once all founders have theirs, ReplicaSets (see `reconcile.peer`) and pods."""
        for name, peer in list(self.peers.items()):
            if peer.is_terminating:
                del self.peers[name]
                self._clean_up(name, peer)
                self.delete_pod(name)
        self._finish_claims()
        for name, peer in list(self.peers.items()):
            if peer.template is None and name not in self.claims and not self.is_claim_lost(name):
                founders = peer.start.founders if isinstance(peer.start, Founding) else ()
                self.claims[name] = Claim(uid=self.uid("claim"), token=peer.start.token, founders=founders)
        for name, peer in list(self.peers.items()):
            if peer.template is None and not self._may_start(name, peer):
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

    def _may_start(self, name: str, peer: Peer) -> bool:
        claim = self.claims.get(name)
        if claim is None or claim.is_terminating:
            return False
        return not isinstance(peer.start, Founding) or set(peer.start.founders) <= set(self.claims)

    def _clean_up(self, name: str, peer: Peer) -> None:
        if peer.is_for_cleanup:
            self.delete_claim_gently(name)

    def _finish_claims(self) -> None:
        used = {*self.pods, *(pod.name for pod in self.going.values())}
        for name, claim in list(self.claims.items()):
            if claim.is_terminating and name not in used:
                del self.claims[name]
        if self.is_persistent and not self.claims:
            self.acknowledged.clear()

    # pods and kubelets

    def create_pod(self, name: str, start: Start) -> None:
        """A new pod that has not been started, on the node with the fewest."""
        used = [pod.node for pod in self.pods.values()]
        nodes = [node for node in range(NODES) if node not in self.away] or [0]
        node = min(nodes, key=used.count)
        self.pods[name] = Pod(uid=self.uid("pod"), name=name, start=start, node=node)

    def remove_pod(self, name: str) -> None:
        """The pod and its process go at once; an ephemeral member's data goes with them."""
        pod = self.pods.pop(name, None)
        if pod is not None:
            self.processes.pop(pod.uid, None)

    def delete_pod(self, name: str) -> None:
        """As `kubectl delete`: the kubelet ends it, if its node is there."""
        pod = self.pods.get(name)
        if pod is None:
            return
        ending = replace(pod, is_terminating=True)
        if self.is_persistent:
            del self.pods[name]
            self.going[pod.uid] = ending
        else:
            self.pods[name] = ending

    def run_kubelets(self) -> None:
        """All of them, once; pods that are going end first."""
        for uid, pod in list(self.going.items()):
            if pod.node not in self.away:
                self._end_going(uid)
        for name in list(self.pods):
            self.run_kubelet(name)

    def run_kubelet(self, name: str) -> None:
        """Start the pod's etcd if it does not run, or end what is being deleted."""
        pod = self.pods[name]
        if pod.node in self.away:
            return
        if pod.is_terminating:
            self.remove_pod(name)
        if pod.is_terminating or pod.is_finished:
            return
        if pod.uid in self.processes or (self.is_persistent and not self._is_usable(name)):
            return
        if name in self.unpullable and not pod.has_run:
            trouble = Trouble(reason="ErrImagePull", message="no such image")
            self.pods[name] = replace(pod, trouble=trouble)
            return
        self._start(pod, self._disk(name))

    def _start(self, pod: Pod, disk: Disk) -> None:
        again = pod.restarts + 1 if pod.has_run else 0
        if disk.is_removed or not (disk.cluster_id or self._begins(pod.name, pod.start, disk)):
            trouble = Trouble(reason="CrashLoopBackOff", message="etcd refuses to start")
            self.pods[pod.name] = replace(
                pod,
                is_running=False,
                has_run=True,
                has_restarted=True,
                restarts=again + 1,
                has_no_data=isinstance(pod.start, Resuming) and not disk.is_removed,
                can_never_join=disk.is_removed
                or (isinstance(pod.start, Joining) and self.are_unequal(pod.start.members)),
                trouble=trouble,
            )
            return
        self.pods[pod.name] = replace(
            pod,
            has_run=True,
            is_running=True,
            has_no_data=False,
            can_never_join=False,
            trouble=None,
            has_restarted=pod.has_run,
            restarts=again,
        )
        self.processes[pod.uid] = Process(name=pod.name, pod=pod.uid, disk=disk)

    def _begins(self, name: str, start: Start, disk: Disk) -> bool:
        match start:
            case Founding():
                return self.found(name, disk, start.founders, start.token)
            case Joining():
                return self.join(name, disk, start.members)
            case _:
                return False

    def kill(self, name: str) -> None:
        """The process ends; the kubelet will start it again in the same pod."""
        pod = self.pods[name]
        process = self.processes.pop(pod.uid, None)
        if process is not None:
            self.process_ended(process)

    def process_ended(self, process: Process) -> None:
        pod = self.pods.get(process.name)
        if pod is not None and pod.uid == process.pod:
            self.pods[process.name] = replace(pod, is_running=False, has_restarted=True)

    def fail(self, name: str) -> None:
        """The pod ends for good, as after an eviction by its kubelet; a ReplicaSet makes another."""
        pod = self.pods[name]
        self.processes.pop(pod.uid, None)
        if self.is_persistent:
            del self.pods[name]
        else:
            self.pods[name] = replace(pod, is_running=False, is_finished=True)

    def wipe(self, name: str) -> None:
        """The volume of a sealed member loses its data, and its pod with it."""
        self.remove_pod(name)
        self.disks[self.claims[name].uid] = Disk()

    def _is_usable(self, name: str) -> bool:
        """Whether a claim is there and no ending pod still holds the lock on its data."""
        is_locked = any(pod.name == name and uid in self.processes for uid, pod in self.going.items())
        return name in self.claims and not is_locked

    def _end_going(self, uid: str) -> None:
        del self.going[uid]
        self.processes.pop(uid, None)

    def _disk(self, name: str) -> Disk:
        holder = self.claims[name].uid if self.is_persistent else self.pods[name].uid
        return self.disks.setdefault(holder, Disk())

    def existing_disks(self) -> list[Disk]:
        """Data directories that are still there."""
        if self.is_persistent:
            uids = [claim.uid for claim in self.claims.values()]
        else:
            uids = [pod.uid for pod in self.pods.values() if not pod.is_finished]
        return [self.disks[uid] for uid in uids if uid in self.disks]

    # nodes

    def lose_node(self, node: int) -> None:
        """It falls silent: what runs there is heard no more, and may come back."""
        self.away.add(node)
        for process in self._on(node):
            process.is_frozen = True

    def give_up_node(self, node: int, *, evicts: bool) -> None:
        """Kubernetes notices after a minute; after some more its pods are deleted, and stay Terminating."""
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
