"""Pods, kubelets and nodes of the model world.

Nothing happens but in the methods called. Flags of etcd count only on an empty data directory; `existing`
alone refuses one. A second process on a volume waits for the first. Pods on a node that is away neither end
nor start. A kubelet whose pod asks for another image ends the old process first, and then gets the image.

Assumed: a kubelet's report comes first; volumes are wiped in place only under existing-only members.
"""

from dataclasses import dataclass, replace

from etcd_operator.controllers.etcd_cluster.decide.members import FetchedBackup, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.starts import (
    Bootstrapping,
    Joining,
    Resuming,
    Seeding,
    Start,
)
from unit.simulation.model_backups import Backup, Sources
from unit.simulation.model_disks import UNPULLABLE, Disk, Process
from unit.simulation.model_etcd import cluster_id_of

NODES = 3


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim with its annotations. given_up: the recovery that gave its member up; empty for all others."""

    uid: str
    token: str
    initial_members: tuple[str, ...]
    is_started: bool = False
    cluster_uid: str = ""
    cluster_id: str = ""
    member_id: str = ""
    voters: tuple[str, ...] = ()
    voters_revision: int = 0
    missing_in: str = ""
    given_up: str = ""
    version: str = ""
    is_terminating: bool = False
    is_restored: bool = False


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod as its kubelet reports it.

    version: the one of its image; pulled: of the image that it has. is_routed: the Service selects it.
    is_unmounted: its volume is missing in this pod, and its etcd finds an empty directory.
    cannot_restore: a seed whose volume has data of an earlier pod, which no snapshot is restored over.
    cannot_fetch: a seed whose backup is not there as it was chosen. fetched: the backup that it has.
    has_etcd: its image is etcd's, and not that of the operator.
    has_reader: its data is read where it answers nobody. serves: the condition of its readiness gate.
    """

    uid: str
    name: str
    start: Start
    version: str
    node: int
    pulled: str = ""
    is_running: bool = False
    has_run: bool = False
    has_restarted: bool = False
    restarts: int = 0
    has_no_data: bool = False
    can_never_join: bool = False
    never_joined: bool = False
    is_unmounted: bool = False
    has_fetched: bool = False
    fetched: FetchedBackup | None = None
    cannot_fetch: bool = False
    cannot_restore: bool = False
    is_routed: bool = True
    has_etcd: bool = True
    has_reader: bool = False
    serves: bool | None = None
    is_finished: bool = False
    is_on_lost_node: bool = False
    is_terminating: bool = False
    problem: PodProblem | None = None


class Pods(Sources):
    """Everything that runs, and what it runs on.

    going: pods of persistent members that are being deleted, by uid; `pods` are all others, by member.
    unlabelled: pods of ephemeral members that somebody took labels from, by uid.
    away: nodes that are cut off or switched off. unpullable: members whose nodes get no image that is new.
    selected_token: of the etcd cluster whose persistent members the Service selects; empty before it is made.
    """

    def __init__(self, *, is_persistent: bool) -> None:
        super().__init__()
        self.is_persistent = self.gives_up_by_name = is_persistent
        self.selected_token = ""
        self.pods: dict[str, Pod] = {}
        self.going: dict[str, Pod] = {}
        self.claims: dict[str, Claim] = {}
        self.unlabelled: set[str] = set()
        self.away: set[int] = set()
        self.unpullable: set[str] = set()

    def uid(self, kind: str) -> str:
        """A new, unique one."""
        return f"{kind}-{next(self._numbers)}"

    # pods and kubelets

    def create_pod(self, name: str, start: Start, version: str) -> None:
        """A new pod that has not been started, on the node with the fewest."""
        used = [pod.node for pod in self.pods.values()]
        nodes = [node for node in range(NODES) if node not in self.away] or [0]
        node = min(nodes, key=used.count)
        pod = Pod(uid=self.uid("pod"), name=name, start=start, version=version, node=node)
        self.pods[name] = replace(pod, is_routed=isinstance(start, Bootstrapping))

    def remove_pod(self, name: str) -> None:
        """The pod and its process end at once, and with them an ephemeral member's data."""
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
        """Start the pod's etcd if it does not run, or end what is being deleted or of another version."""
        pod = self.pods[name]
        if pod.node in self.away:
            return
        if pod.is_terminating:
            self.remove_pod(name)
        if pod.is_terminating or pod.is_finished:
            return
        process = self.processes.get(pod.uid)
        if process is not None and process.version != pod.version:
            self.kill(name)
        if process is not None or (self.is_persistent and not self._is_usable(name)):
            return
        if not pod.has_etcd:
            problem = PodProblem(reason="CrashLoopBackOff", message="/usr/local/bin/etcd: no such file")
            self.pods[name] = replace(pod, is_running=False, problem=problem)
            return
        if pod.version in UNPULLABLE or (name in self.unpullable and pod.pulled != pod.version):
            problem = PodProblem(reason="ErrImagePull", message="no such image")
            self.pods[name] = replace(pod, problem=problem)
            return
        disk = Disk() if pod.is_unmounted else self._disk(name)
        if pod.cannot_restore:
            return
        if isinstance(pod.start, Seeding) and not pod.has_fetched and not disk.is_removed:
            self.pods[name] = self._fetch(replace(pod, pulled=pod.version), pod.start, disk)
            return
        self._start(pod, disk)

    def _fetch(self, pod: Pod, start: Seeding, disk: Disk) -> Pod:
        """Take a snapshot or a backup, and restore it."""
        found = self.found(start.source)
        if found is None or isinstance(found, PodProblem):
            return replace(pod, problem=found, cannot_fetch=found is not None)
        if not disk.is_empty:
            problem = PodProblem(reason="CrashLoopBackOff", message="data-dir is not empty")
            return replace(pod, has_fetched=True, cannot_restore=True, problem=problem)
        content = found.content if isinstance(found, Backup) else found
        cluster_id = cluster_id_of(start.token, 1)
        disk.restore(content, start.bump)
        self.replaced[cluster_id] = content.cluster_id
        self.restored[cluster_id] = set(content.writes)
        if isinstance(found, Backup):
            self.fetched[cluster_id] = found
            pod = replace(pod, fetched=found.fetched)
        return replace(pod, has_fetched=True, cannot_fetch=False, problem=None)

    def _start(self, pod: Pod, disk: Disk) -> None:
        again = pod.restarts + 1 if pod.has_run else 0
        complaint = "removed" if disk.is_removed else self.releases.complaint(pod.version, disk)
        begins = not complaint and (disk.cluster_id or self._begins(pod, disk))
        if not begins:
            problem = PodProblem(reason="CrashLoopBackOff", message=complaint or "etcd refuses to start")
            self.pods[pod.name] = replace(
                pod,
                is_running=False,
                has_run=True,
                pulled=pod.version,
                has_restarted=True,
                restarts=again + 1,
                has_no_data=isinstance(pod.start, Resuming) and not complaint,
                can_never_join=disk.is_removed
                or (isinstance(pod.start, Joining) and not complaint and self.are_unequal(pod.start.members)),
                never_joined=isinstance(pod.start, Joining) and not complaint and not self.has_responder,
                problem=problem,
            )
            return
        self.pods[pod.name] = replace(
            pod,
            has_run=True,
            pulled=pod.version,
            is_running=True,
            has_no_data=False,
            can_never_join=False,
            never_joined=False,
            problem=None,
            has_restarted=pod.has_run,
            restarts=again,
        )
        self.processes[pod.uid] = Process(name=pod.name, pod=pod.uid, disk=disk, version=pod.version)

    def _begins(self, pod: Pod, disk: Disk) -> bool:
        match pod.start:
            case Bootstrapping():
                return self.bootstrap(pod.name, disk, pod.start.members, pod.start.token)
            case Seeding():
                return self.bootstrap(pod.name, disk, (pod.name,), pod.start.token)
            case Joining():
                return self.join(pod.name, disk, pod.start.members, pod.version)
            case _:
                return False

    def takes_calls(self, process: Process) -> bool:
        """Those that it reaches, unless the pod is being deleted and lacks the labels to be found by."""
        pod = self.pods.get(process.name)
        is_ending = pod is not None and pod.uid == process.pod and pod.is_terminating
        return not process.is_unreachable and not (is_ending and process.pod in self.unlabelled)

    def takes_clients(self, process: Process) -> bool:
        """Everybody but a seed that was not opened: what it starts with may still be thrown away."""
        if self.is_persistent:
            pods = (*self.pods.values(), *self.going.values())
            selected = [pod for pod in pods if pod.uid == process.pod and pod.is_routed]
            return self.selected_token in ("", *(pod.start.token for pod in selected))
        pod = self.pods.get(process.name)
        return pod is None or pod.is_routed

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
            problem = PodProblem(reason="Evicted", message="the node was low on memory")
            self.pods[name] = replace(pod, is_running=False, is_finished=True, problem=problem)

    def wipe(self, name: str) -> None:
        """The volume of a member that starts from its data only is emptied; its pod ends."""
        self.remove_pod(name)
        self.disks[self.claims[name].uid] = Disk()

    def unmount(self, name: str) -> None:
        """The process of a member that starts from its data only ends, and its pod has lost its mount."""
        pod = self.pods[name]
        if isinstance(pod.start, Resuming) and not self.claims[name].missing_in:
            self.kill(name)
            self.pods[name] = replace(self.pods[name], is_unmounted=True)

    def _is_usable(self, name: str) -> bool:
        """Whether a claim is there and no ending pod still holds the lock on its data."""
        is_locked = any(pod.name == name and uid in self.processes for uid, pod in self.going.items())
        return name in self.claims and not is_locked

    def _end_going(self, uid: str) -> None:
        del self.going[uid]
        self.processes.pop(uid, None)

    def _disk(self, name: str) -> Disk:
        storage = self.claims[name].uid if self.is_persistent else self.pods[name].uid
        return self.disks.setdefault(storage, Disk())

    def existing_disks(self) -> list[Disk]:
        """Data directories that are still there."""
        if self.is_persistent:
            uids = [claim.uid for claim in self.claims.values()]
        else:
            uids = [pod.uid for pod in self.pods.values() if not pod.is_finished]
        return [self.disks[uid] for uid in uids if uid in self.disks]
