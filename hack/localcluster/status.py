"""How a cluster is and how to use it, for people and for programs.

Promises: reads only; for people the first line alone answers "is it usable?", and the last one can be
evaluated by a shell; for programs the document has the shape that docs/development.md describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from . import addons, mounts, network
from .commands import CommandError
from .instance import Instance
from .kubectl import ready_nodes
from .node import daemon_name
from .plan import Node, Plan


class State(StrEnum):
    """Whether a cluster that runs can be used."""

    UP = "up"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One node; `is_ready` is None while the API server does not answer."""

    name: str
    address: str
    is_ready: bool | None
    is_linked: bool
    has_kubelet: bool

    def line(self) -> str:
        """Return `node-1: Ready, 10.200.0.11`, and what is broken on purpose."""
        parts = ["unknown" if self.is_ready is None else "Ready" if self.is_ready else "NotReady"]
        parts.append(self.address)
        if not self.is_linked:
            parts.append("cut off (fault node-mend)")
        if not self.has_kubelet:
            parts.append("kubelet stopped (fault node-start)")
        return f"  {self.name}: {', '.join(parts)}"

    def document(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            "name": self.name,
            "address": self.address,
            "ready": self.is_ready,
            "linkUp": self.is_linked,
            "kubeletRunning": self.has_kubelet,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to use a cluster: `tools` is the folder with kubectl."""

    kubeconfig: Path
    tools: Path

    def line(self) -> str:
        """Return the line that a shell evaluates."""
        return f"export KUBECONFIG={self.kubeconfig} PATH={self.tools}:$PATH"

    def document(self) -> dict[str, str]:
        """Return the same for programs."""
        return {"kubeconfig": str(self.kubeconfig), "path": str(self.tools)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A cluster that is up, or was; `ended` are the processes that should run: name and log."""

    name: str
    access: Access
    plan: Plan
    nodes: tuple[NodeStatus, ...]
    namespaces: tuple[str, ...]
    ended: tuple[tuple[str, Path], ...]
    logs: Path
    volumes: Path
    local_volumes: Path

    @property
    def state(self) -> State:
        """Whether all processes run and all nodes are ready."""
        ready = [node.is_ready for node in self.nodes if node.is_ready is not None]
        return State.UP if ready and all(ready) and not self.ended else State.UNHEALTHY

    def lines(self) -> list[str]:
        """Return what people read."""
        plan = self.plan
        return [
            f"cluster {self.name}: {self.state}",
            *(node.line() for node in self.nodes),
            *(f"  process {name}: ended; see {log}" for name, log in self.ended),
            f"  API server        {plan.server}",
            f"  pods, Services    {plan.pod_range}, {plan.service_range} (reachable from this machine)",
            f"  this machine      {plan.host_address} (as pods see it)",
            f"  namespaces        {' '.join(self.namespaces)}",
            f"  logs              {self.logs}",
            f"  audit log         {self.logs / 'audit.log'}",
            f"  volumes           {self.volumes} (class {addons.STORAGE_CLASS})",
            f"  per node          {self.local_volumes} (for PersistentVolumes of kind local)",
            self.access.line(),
        ]

    def document(self) -> dict[str, Any]:
        """Return what programs read."""
        plan = self.plan
        return {
            "name": self.name,
            "state": self.state,
            **self.access.document(),
            "server": plan.server,
            "nodes": [node.document() for node in self.nodes],
            "endedProcesses": [{"name": name, "log": str(log)} for name, log in self.ended],
            "podRange": plan.pod_range,
            "serviceRange": plan.service_range,
            "hostAddress": plan.host_address,
            "networkNamespaces": list(self.namespaces),
            "logs": str(self.logs),
            "auditLog": str(self.logs / "audit.log"),
            "volumes": str(self.volumes),
            "storageClass": addons.STORAGE_CLASS,
            "localVolumes": str(self.local_volumes),
        }


DOWN = "down"
"""The state of a cluster that does not run, which has no `Status`."""


def of(instance: Instance) -> Status | None:
    """Return the status of a cluster; None if it is down."""
    if not (instance.state.kubeconfig.exists() and instance.table.find(mounts.HOLDER)):
        return None
    ready = _ready_nodes(instance)
    dead = [name for name in instance.table.names() if instance.table.find(name) is None]
    return Status(
        name=instance.name,
        access=Access(kubeconfig=instance.state.kubeconfig, tools=instance.cache.bin),
        plan=instance.plan,
        nodes=tuple(_node(instance, node, ready) for node in instance.nodes()),
        namespaces=tuple(network.namespaces(instance.plan)),
        ended=tuple((name, instance.table.log(name)) for name in dead),
        logs=instance.state.logs,
        volumes=instance.state.volumes,
        local_volumes=instance.state.node("NODE") / "local",
    )


def _ready_nodes(instance: Instance) -> dict[str, bool]:
    try:
        return ready_nodes(instance.kubectl)
    except CommandError:
        return {}  # the API server does not answer: the nodes are reported as unknown


def _node(instance: Instance, node: Node, ready: dict[str, bool]) -> NodeStatus:
    return NodeStatus(
        name=node.name,
        address=node.address,
        is_ready=ready.get(node.name),
        is_linked=network.is_node_link_up(instance.plan, node),
        has_kubelet=instance.table.find(daemon_name(node.name, "kubelet")) is not None,
    )
