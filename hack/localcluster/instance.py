"""One cluster: brings it up, takes it down, reports its state.

Promises: `up` makes only the difference to what should be, so it may be repeated, changes the number
of nodes, and repairs what a killed `up` or `down` or a reboot left. `down` finds everything by the instance's
prefix, not by memory, so it works on any remains. One `up` or `down` at a time (a lock file).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import ipaddress
import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from . import addons, controlplane, images, mounts, network, tools
from .certificates import Authority
from .cgroups import Cgroups
from .commands import CommandError, wait_for
from .console import RefusalError, progress
from .controlplane import ControlPlane
from .kubectl import Kubectl, is_ready, is_rolled_out
from .node import NodeAgent, daemon_name, socket_of
from .paths import Cache, State, instances_root
from .plan import MAX_NODES, MAX_SLOTS, Node, Plan
from .processes import Daemon, ProcessTable

_START_DEADLINE = 90.0


class Instance:
    """The cluster called `name`, of this user."""

    def __init__(self, name: str, cache: Cache) -> None:
        self.name = name
        self.cache = cache
        self.state = State.of_instance(name)
        self.cgroups = Cgroups(self.plan.prefix)
        self.table = ProcessTable(records=self.state.records, logs=self.state.logs, cgroups=self.cgroups)

    @property
    def plan(self) -> Plan:
        """Names and addresses; before the first `up` the addresses are of no meaning."""
        return Plan.of(self.state.root, read_slot(self.state) or 0)

    @property
    def kubectl(self) -> Kubectl:
        """kubectl as cluster admin."""
        return Kubectl(
            program=self.cache.bin / "kubectl",
            kubeconfig=self.state.kubeconfig,
            options=(f"--cache-dir={self.state.root / 'kubectl-cache'}", "--request-timeout=10s"),
        )

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes that have been made."""
        made = {path.name for path in self.state.node("any").parent.glob("node-*")}
        return tuple(node for node in self.plan.nodes(MAX_NODES) if node.name in made)

    def store(self, node: Node) -> images.ImageStore:
        """Return the images of a node."""
        return images.ImageStore(self.cache, socket_of(self.state, node.name))

    def require_up(self) -> None:
        """Refuse if there is no cluster."""
        if not (self.state.kubeconfig.exists() and self.table.find(mounts.HOLDER)):
            raise RefusalError(
                f"cluster {self.name} is not up; run: hack/cluster up{_name_option(self.name)}"
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the instance's lock, or refuse at once if it is taken."""
        instances_root().mkdir(parents=True, exist_ok=True)
        with (instances_root() / f"{self.name}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RefusalError(
                    f"another up or down of cluster {self.name} is running; wait for it"
                ) from None
            yield

    def up(self, count: int | None, archives: dict[str, Path]) -> None:
        """Make the cluster run with `count` nodes (None: as many as there are, at least one)."""
        self._clear_remains()
        ensure_slot(self.state)
        count = count or max(1, len(self.nodes()))
        for node in self.nodes()[count:]:
            self._remove_node(node)
        nodes = self.plan.nodes(count)
        plane = self._lay_ground(nodes)
        agents = [self._agent(node, plane) for node in nodes]
        self._start([plane.etcd(), plane.api_server(), plane.volume_opener()])
        for agent in agents:
            agent.write_files()
            self._start([agent.containerd()])
        with ThreadPoolExecutor(max_workers=len(nodes)) as pool:
            loading = [pool.submit(self._load_images, node, archives) for node in nodes]
            self._await_daemon(controlplane.API_SERVER, self.kubectl.is_ready)
            self._start([plane.controller_manager(), plane.scheduler()])
            for done in loading:
                done.result()
        for agent in agents:
            self._start([agent.kubelet(), agent.proxy()])
        self._start([plane.hub_proxy()])
        self._apply_addons()
        self._await_nodes(nodes)
        self._await_addons()

    def restart(self, name: str) -> None:
        """Start a daemon of the running cluster that was stopped; on return an API server is ready."""
        plane = self._plane()
        agents = [self._agent(node, plane) for node in self.nodes()]
        known = [plane.api_server(), plane.controller_manager(), plane.scheduler()]
        known += [agent.kubelet() for agent in agents]
        self._start([daemon for daemon in known if daemon.name == name])
        if name == controlplane.API_SERVER:
            self._await_daemon(name, self.kubectl.is_ready)

    def load_stores(self) -> None:
        """Build the stores for backups, and load their images into all nodes."""
        with self.cache.locked("stores"):  # several tests may need them at once
            archives = build_stores(self.cache)
            for node in self.nodes():
                self._load_images(node, archives)

    def down(self) -> None:
        """Remove everything that belongs to the instance."""
        if self.state.root.exists():
            self._going_down.touch()
        self.cgroups.remove()
        network.remove_all(self.plan)
        mounts.unmount_below(self.state.root)
        mounts.release_places()
        shutil.rmtree(self.state.root, ignore_errors=True)
        if self.state.root.exists():
            shutil.rmtree(self.state.root)

    @property
    def _going_down(self) -> Path:
        return self.state.root / "going-down"

    def _clear_remains(self) -> None:
        """Finish a `down` that was killed; forget what a reboot or a lost mount namespace made useless."""
        if self._going_down.exists():
            progress("finishing a down that did not end")
            self.down()
        if self.table.find(mounts.HOLDER) is None:
            self.cgroups.remove()
            for folder in self.state.root.glob("nodes/*/containerd-run"):
                shutil.rmtree(folder)

    def _lay_ground(self, nodes: tuple[Node, ...]) -> ControlPlane:
        """Make cgroups, network, mount namespace and certificates."""
        for group in ("hub", *(node.name for node in nodes)):
            self.cgroups.create(group)
        network.ensure_hub(self.plan)
        for node in nodes:
            network.ensure_node(self.plan, node)
        network.ensure_pod_routes(self.plan, nodes)
        plane = self._plane()
        plane.write_files()
        return plane

    def _plane(self) -> ControlPlane:
        authority = Authority(self.state.certificates)
        authority.ensure()
        return ControlPlane(
            plan=self.plan,
            cache=self.cache,
            state=self.state,
            authority=authority,
            mounts=mounts.ensure_holder(self.state, self.table),
        )

    def _agent(self, node: Node, plane: ControlPlane) -> NodeAgent:
        return NodeAgent(
            node=node,
            plan=self.plan,
            cache=self.cache,
            state=self.state,
            authority=plane.authority,
            mounts=plane.mounts,
            cgroup_root=self.cgroups.cgroup_root(node.name),
        )

    def _start(self, daemons: list[Daemon]) -> None:
        started = [daemon.name for daemon in daemons if self.table.ensure(daemon)]
        if started:
            progress(f"started {', '.join(started)}")

    def _await_daemon(self, name: str, is_true: Callable[[], bool]) -> None:
        """Wait until something holds that a daemon makes true; refuse early if the daemon ends."""

        def holds() -> bool:
            if self.table.find(name) is None:
                raise RefusalError(f"{name} ended at once; see {self.table.log(name)}")
            return is_true()

        wait_for(f"readiness of {name}", holds, deadline=_START_DEADLINE, hint=f"see {self.table.log(name)}")

    def _load_images(self, node: Node, archives: dict[str, Path]) -> None:
        store = self.store(node)
        self._await_daemon(daemon_name(node.name, "containerd"), store.is_reachable)
        if count := store.ensure(archives.values()):
            progress(f"{node.name}: {count} images loaded")

    def _apply_addons(self) -> None:
        stamp = self.state.config / "addons.applied"
        manifests = addons.manifests(self.plan)
        digest = hashlib.sha256(json.dumps(manifests).encode()).hexdigest()
        if not (stamp.exists() and stamp.read_text() == digest):
            self.kubectl.apply(manifests)
            stamp.write_text(digest)
            progress("cluster DNS and the StorageClass 'standard' applied")

    def _await_nodes(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            self._await_daemon(daemon_name(node.name, "kubelet"), partial(self._is_node_ready, node.name))

    def _is_node_ready(self, name: str) -> bool:
        return is_ready(self.kubectl.find("node", name))

    def _await_addons(self) -> None:
        def is_serving() -> bool:
            dns = self.kubectl.find("deployment", "coredns", "--namespace=kube-system")
            account = self.kubectl.find("serviceaccount", "default", "--namespace=default")
            return bool(account) and is_rolled_out(dns)

        hint = f"see {self.state.logs}"
        wait_for("readiness of the cluster DNS", is_serving, deadline=_START_DEADLINE, hint=hint)

    def _remove_node(self, node: Node) -> None:
        progress(f"removing {node.name}")
        with contextlib.suppress(CommandError):
            self.kubectl("delete", "node", node.name, "--ignore-not-found")
        self.cgroups.remove_group(node.name)
        network.remove_node(self.plan, node, self.nodes())
        for program in ("containerd", "kubelet", "kube-proxy"):
            self.table.forget(daemon_name(node.name, program))
        shutil.rmtree(self.state.node(node.name))


def read_slot(state: State) -> int | None:
    """Return the slot that the instance has, if any."""
    try:
        return int(state.slot.read_text())
    except (OSError, ValueError):
        return None


def ensure_slot(state: State) -> int:
    """Give the instance the lowest slot that no other has and whose ranges the machine does not use."""
    instances_root().mkdir(parents=True, exist_ok=True)
    with (instances_root() / "slots.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        present = read_slot(state)
        if present is not None:
            return present
        others = {read_slot(State(path.parent)) for path in instances_root().glob("*/slot")}
        routes = [ipaddress.ip_network(each) for each in network.used_routes() if each != "default"]
        for slot in range(MAX_SLOTS):
            if slot not in others and not _overlaps(Plan.of(state.root, slot), routes):
                state.root.mkdir(parents=True, exist_ok=True)
                state.slot.write_text(str(slot))
                return slot
    raise RefusalError(f"all {MAX_SLOTS} address ranges are in use; take down another cluster first")


def _overlaps(plan: Plan, routes: list[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    wanted = [ipaddress.ip_network(each) for each in (*plan.host_routes, plan.uplink_range)]
    return any(mine.overlaps(other) for mine in wanted for other in routes)


def _name_option(name: str) -> str:
    return "" if name == "dev" else f" --name {name}"


def build(cache: Cache) -> dict[str, Path]:
    """Build programs and images that are not there yet; return name -> archive of the images."""
    with cache.locked("programs"):
        tools.build_all(cache)
        return images.build(cache, images.wanted(cache))


def build_stores(cache: Cache) -> dict[str, Path]:
    """Build the stores for backups that are not there yet; return name -> archive of the images."""
    with cache.locked("programs"):
        tools.build(cache, tools.STORES)
        return images.build(cache, images.stores(cache))
