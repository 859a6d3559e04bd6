"""Breaks a running cluster on purpose, for tests and benchmarks.

Promises: processes of pods are found through their own node's containerd and their cgroup only, never by a
search through `/proc` (`/proc/PID/mountinfo` of any process of the machine may name any pod's volume), so
nothing else can be hit. Works while the API server is away.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from . import controlplane, network, tools
from .commands import run
from .console import RefusalError
from .instance import Instance
from .node import daemon_name, socket_of
from .plan import Node

CONTAINER = "etcd"
COMPONENTS = {
    "apiserver": controlplane.API_SERVER,
    "controller-manager": controlplane.CONTROLLER_MANAGER,
    "scheduler": controlplane.SCHEDULER,
}


def stop_component(instance: Instance, component: str) -> None:
    """End a part of the control plane at once, as a crash would."""
    instance.table.stop([COMPONENTS[component]])


def start_component(instance: Instance, component: str) -> None:
    """Start a part of the control plane again; the API server is ready on return."""
    instance.restart(COMPONENTS[component])


def stop_node(instance: Instance, name: str) -> None:
    """End a node's kubelet; its pods go on running, unattended."""
    _node(instance, name)
    instance.table.stop([daemon_name(name, "kubelet")])


def start_node(instance: Instance, name: str) -> None:
    """Start a node's kubelet again."""
    _node(instance, name)
    instance.restart(daemon_name(name, "kubelet"))


def cut_node(instance: Instance, name: str) -> None:
    """Take a node's link down."""
    network.set_node_link(instance.plan, _node(instance, name), is_up=False)


def mend_node(instance: Instance, name: str) -> None:
    """Take a node's link up again."""
    network.set_node_link(instance.plan, _node(instance, name), is_up=True)


def freeze(instance: Instance, pod: str, container: str) -> list[int]:
    """Stop all processes of a container, as a hang would (SIGSTOP)."""
    return _signal(_container_pids(_main_pid(instance, pod, container)), signal.SIGSTOP)


def thaw(instance: Instance, pod: str, container: str) -> list[int]:
    """Let the processes of a frozen container go on (SIGCONT)."""
    return _signal(_container_pids(_main_pid(instance, pod, container)), signal.SIGCONT)


def kill(instance: Instance, pod: str, container: str) -> list[int]:
    """Kill the main process of a container; the others in it go with it."""
    return _signal([_main_pid(instance, pod, container)], signal.SIGKILL)


def split_pod(text: str) -> tuple[str, str]:
    """Return namespace and name from `NAMESPACE/POD`."""
    namespace, _, name = text.partition("/")
    if not (namespace and name):
        raise RefusalError(f"{text} does not name a pod; write NAMESPACE/POD")
    return namespace, name


def running_tasks(table: str) -> dict[str, int]:
    """Return container ID -> pid of the running ones from `ctr tasks list`."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return {row[0]: int(row[1]) for row in rows if len(row) == 3 and row[2] in {"RUNNING", "PAUSED"}}


def _main_pid(instance: Instance, pod: str, container: str) -> int:
    # containerd filters by label: a query per container fails when another pod's container ends meanwhile.
    namespace, name = split_pod(pod)
    labels = {
        "io.kubernetes.pod.namespace": namespace,
        "io.kubernetes.pod.name": name,
        "io.kubernetes.container.name": container,
    }
    wanted = ",".join(f'labels."{key}"=={value}' for key, value in labels.items())
    for node in instance.nodes():
        identifiers = _ctr(instance, node, "containers", "list", "--quiet", wanted).split()
        running = running_tasks(_ctr(instance, node, "tasks", "list"))
        for identifier in identifiers:
            if identifier in running:
                return running[identifier]
    raise RefusalError(f"no running container {container} in pod {pod}")


def _container_pids(main: int) -> list[int]:
    """Return all processes in the cgroup of a container's main process."""
    for line in Path(f"/proc/{main}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "pids" in controllers.split(","):
            return _pids(Path("/sys/fs/cgroup/pids") / path.lstrip("/"))
    return _pids(Path("/sys/fs/cgroup") / path.lstrip("/"))


def _pids(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]


def _signal(pids: Iterable[int], number: signal.Signals) -> list[int]:
    hit = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            hit.append(pid)
    return hit


def _ctr(instance: Instance, node: Node, *arguments: str) -> str:
    socket = socket_of(instance.state, node.name)
    program = instance.cache.tool(tools.CONTAINERD, "ctr")
    return run([program, "--address", socket, "--namespace", "k8s.io", *arguments])


def _node(instance: Instance, name: str) -> Node:
    for node in instance.nodes():
        if node.name == name:
            return node
    known = ", ".join(node.name for node in instance.nodes())
    raise RefusalError(f"there is no node {name}; there are: {known}")
