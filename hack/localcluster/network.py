"""The links and routes of an instance.

    machine --(uplink)-- hub: control plane, bridge br0 --(one veth each)-- node-1, node-2, ...

Promises: every node reaches the hub, the other nodes and their pods; the machine reaches nodes, pods and
Services through the hub. No namespace has a way out: its default route is `unreachable`, so a packet without
a translated address ends inside, with an error instead of a time-out. Every step is idempotent, so it
may be repeated.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from .commands import run, succeeds
from .mounts import mount_points
from .plan import Node, Plan

NETNS_FOLDER = Path("/run/netns")
BRIDGE = "br0"

# Settings of each namespace's own network stack. The hub must not filter what its bridge passes on.
_SYSCTLS = {
    "net/ipv4/ip_forward": 1,
    "net/ipv6/conf/all/disable_ipv6": 1,
    "net/ipv6/conf/default/disable_ipv6": 1,
}
_NODE_SYSCTLS = _SYSCTLS | {"net/bridge/bridge-nf-call-iptables": 1}
_HUB_SYSCTLS = _SYSCTLS | {"net/bridge/bridge-nf-call-iptables": 0}


def ensure_hub(plan: Plan) -> None:
    """Make the hub and the machine's way to it."""
    _ensure_namespace(plan.hub, _HUB_SYSCTLS)
    hub = ("ip", "-n", plan.hub)
    if not succeeds([*hub, "link", "show", BRIDGE]):
        run([*hub, "link", "add", BRIDGE, "type", "bridge"])
    run([*hub, "address", "replace", f"{plan.hub_address}/24", "dev", BRIDGE])
    run([*hub, "link", "set", BRIDGE, "up"])
    if not succeeds([*hub, "link", "show", "uplink"]):
        _delete_link(plan.host_link)
        run(
            ["ip", "link", "add", plan.host_link, "type", "veth", "peer", "name", "uplink", "netns", plan.hub]
        )
    run([*hub, "address", "replace", f"{plan.hub_uplink_address}/30", "dev", "uplink"])
    run([*hub, "link", "set", "uplink", "up"])
    run(["ip", "address", "replace", f"{plan.host_address}/30", "dev", plan.host_link])
    run(["ip", "link", "set", plan.host_link, "up"])
    for destination in plan.host_routes:
        run(["ip", "route", "replace", destination, "via", plan.hub_uplink_address, "dev", plan.host_link])
    # kube-proxy translates Service addresses before routing; this only lets local programs dial them.
    run([*hub, "route", "replace", plan.service_range, "dev", BRIDGE])


def ensure_node(plan: Plan, node: Node) -> None:
    """Make the namespace of a node and join it to the hub."""
    _ensure_namespace(node.netns, _NODE_SYSCTLS)
    hub, inside = ("ip", "-n", plan.hub), ("ip", "-n", node.netns)
    if not succeeds([*inside, "link", "show", "eth0"]):
        run([*hub, "link", "add", node.hub_link, "type", "veth", "peer", "name", "eth0", "netns", node.netns])
    run([*hub, "link", "set", node.hub_link, "master", BRIDGE, "up"])
    run([*inside, "address", "replace", f"{node.address}/24", "dev", "eth0"])
    run([*inside, "link", "set", "eth0", "up"])
    run([*inside, "route", "replace", plan.uplink_range, "via", plan.hub_address])
    run([*inside, "route", "replace", plan.service_range, "dev", "eth0"])


def ensure_pod_routes(plan: Plan, nodes: tuple[Node, ...]) -> None:
    """Let the hub and every node reach the pods of all (other) nodes."""
    for owner in nodes:
        route = ("route", "replace", owner.pod_range, "via", owner.address)
        run(["ip", "-n", plan.hub, *route])
        for other in nodes:
            if other.name != owner.name:
                run(["ip", "-n", other.netns, *route])


def set_node_link(plan: Plan, node: Node, *, is_up: bool) -> None:
    """Cut a node off the others, or join it again; its pods still reach each other."""
    run(["ip", "-n", plan.hub, "link", "set", node.hub_link, "up" if is_up else "down"])


def is_node_link_up(plan: Plan, node: Node) -> bool:
    """Return whether the node is connected to the others."""
    links = json.loads(run(["ip", "-j", "-n", plan.hub, "link", "show", node.hub_link]))
    return "UP" in links[0]["flags"]


def namespaces(plan: Plan) -> list[str]:
    """Return the names of the instance's namespaces that exist."""
    return sorted(path.name for path in NETNS_FOLDER.glob(f"{plan.prefix}-*"))


def remove_node(plan: Plan, node: Node, others: tuple[Node, ...]) -> None:
    """Remove a node's namespace, links and the ways to it; processes inside must have ended."""
    _delete_namespace(node.netns)
    for netns in (plan.hub, *(other.netns for other in others if other.name != node.name)):
        succeeds(["ip", "-n", netns, "route", "delete", node.pod_range])


def remove_all(plan: Plan) -> None:
    """Remove every namespace, link and route of the instance; processes inside must have ended."""
    _delete_link(plan.host_link)  # its routes go with it
    for name in namespaces(plan):
        _delete_namespace(name)
    _release_folder()


def used_routes() -> set[str]:
    """Return the destinations of the machine's routes."""
    return {str(route["dst"]) for route in json.loads(run(["ip", "-j", "-4", "route", "show"]) or "[]")}


def _ensure_namespace(name: str, sysctls: dict[str, int]) -> None:
    path = NETNS_FOLDER / name
    if path.exists() and str(path) not in mount_points(Path("/proc/self/mountinfo").read_text()):
        path.unlink()  # `ip netns add` was killed between making the file and mounting on it
    if not path.exists():
        run(["ip", "netns", "add", name])
    settings = [
        f"if [ -e /proc/sys/{key} ]; then echo {value} > /proc/sys/{key}; fi"
        for key, value in sysctls.items()
    ]
    run(["nsenter", f"--net={path}", "--", "/bin/sh", "-c", "\n".join(["set -e", *settings])])
    run(["ip", "-n", name, "link", "set", "lo", "up"])
    run(["ip", "-n", name, "route", "replace", "unreachable", "default"])


def _delete_namespace(name: str) -> None:
    path = NETNS_FOLDER / name
    if path.exists() and not succeeds(["ip", "netns", "delete", name]):
        path.unlink(missing_ok=True)


def _delete_link(name: str) -> None:
    if Path("/sys/class/net", name).exists():
        run(["ip", "link", "delete", name])


def _release_folder() -> None:
    """Undo what the first `ip netns add` of the machine did: a mount of the folder over itself."""
    with contextlib.suppress(OSError):
        if any(NETNS_FOLDER.iterdir()):
            return
        while NETNS_FOLDER.is_mount() and succeeds(["umount", str(NETNS_FOLDER)]):
            continue
        NETNS_FOLDER.rmdir()
