"""Says how a cluster is and how to use it.

Promises: reads only; the first line alone answers "is it usable?".
"""

from __future__ import annotations

from . import mounts, network
from .commands import CommandError
from .instance import Instance
from .node import daemon_name


def report(instance: Instance) -> tuple[bool, list[str]]:
    """Return whether the cluster is usable, and lines for the person."""
    if not (instance.state.kubeconfig.exists() and instance.table.find(mounts.HOLDER)):
        return False, [f"cluster {instance.name}: down"]
    dead = [name for name in instance.table.names() if instance.table.find(name) is None]
    ready = _ready_nodes(instance)
    is_usable = not dead and bool(ready) and all(ready.values())
    lines = [f"cluster {instance.name}: {'up' if is_usable else 'not healthy'}"]
    lines += [f"  {node.name}: {_node_state(instance, ready, node.name)}" for node in instance.nodes()]
    lines += [f"  process {name}: ended; see {instance.table.log(name)}" for name in dead]
    plan = instance.plan
    lines += [
        f"  API server        {plan.server}",
        f"  pods, Services    {plan.pod_range}, {plan.service_range} (reachable from this machine)",
        f"  this machine      {plan.host_address} (as pods see it)",
        f"  namespaces        {' '.join(network.namespaces(plan))}",
        f"  logs              {instance.state.logs}",
        f"  audit log         {instance.state.logs / 'audit.log'}",
        f"  volumes           {instance.state.volumes} (class standard)",
        f"  per node          {instance.state.node('NODE')}/local (for PersistentVolumes of kind local)",
        f"export KUBECONFIG={instance.state.kubeconfig} PATH={instance.cache.bin}:$PATH",
    ]
    return is_usable, lines


def _ready_nodes(instance: Instance) -> dict[str, bool]:
    try:
        return instance.kubectl.ready_nodes()
    except CommandError:
        return {}  # the API server does not answer: its own line says so


def _node_state(instance: Instance, ready: dict[str, bool], name: str) -> str:
    node = next(each for each in instance.nodes() if each.name == name)
    words = ["unknown" if name not in ready else "Ready" if ready[name] else "NotReady", node.address]
    if not network.is_node_link_up(instance.plan, node):
        words.append("cut off (fault node-mend)")
    if instance.table.find(daemon_name(name, "kubelet")) is None:
        words.append("kubelet stopped (fault node-start)")
    return ", ".join(words)
