"""All names and addresses of one instance, computed from its state folder and its slot.

Promises: two instances never share a name (the prefix is a digest of the state folder's path) nor an
address (every range is a function of the slot, and slots are handed out one by one, see `instance`).
Nothing here reads the state of the machine.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

MAX_SLOTS = 16
MAX_NODES = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of the cluster."""

    name: str
    netns: str
    address: str
    pod_range: str
    hub_link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Names and addresses of an instance; `0 <= slot < MAX_SLOTS`."""

    prefix: str
    slot: int

    @classmethod
    def of(cls, state_root: Path, slot: int) -> Plan:
        """Return the plan of the instance that lives in this folder."""
        digest = hashlib.sha256(str(state_root).encode()).hexdigest()
        return cls(prefix=f"eo{digest[:6]}", slot=slot)

    @property
    def hub(self) -> str:
        """Network namespace of the control plane."""
        return f"{self.prefix}-hub"

    @property
    def host_link(self) -> str:
        """The only link that the machine itself gets."""
        return f"{self.prefix}-up"

    @property
    def host_address(self) -> str:
        """Where pods reach servers that tests run on the machine."""
        return f"10.201.{self.slot}.1"

    @property
    def hub_uplink_address(self) -> str:
        """The machine's gateway into the instance."""
        return f"10.201.{self.slot}.2"

    @property
    def uplink_range(self) -> str:
        """Range between the machine and the hub."""
        return f"10.201.{self.slot}.0/30"

    @property
    def node_range(self) -> str:
        """Range of the hub and the nodes."""
        return f"10.200.{self.slot}.0/24"

    @property
    def hub_address(self) -> str:
        """Where the API server listens."""
        return f"10.200.{self.slot}.1"

    @property
    def pod_range(self) -> str:
        """Range of all pods."""
        return f"10.{224 + self.slot}.0.0/16"

    @property
    def service_range(self) -> str:
        """Range of all Services."""
        return f"10.{208 + self.slot}.0.0/16"

    @property
    def api_service_address(self) -> str:
        """ClusterIP of `kubernetes.default`: the first of the range, as the API server takes it."""
        return f"10.{208 + self.slot}.0.1"

    @property
    def dns_address(self) -> str:
        """ClusterIP of the cluster DNS."""
        return f"10.{208 + self.slot}.0.10"

    @property
    def host_routes(self) -> tuple[str, ...]:
        """Ranges that the machine reaches through the hub."""
        return (self.node_range, self.pod_range, self.service_range)

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://{self.hub_address}:6443"

    def node(self, number: int) -> Node:
        """Return node `number`, counted from 1."""
        if not 1 <= number <= MAX_NODES:
            raise ValueError(f"node number {number} is not in 1..{MAX_NODES}")
        return Node(
            name=f"node-{number}",
            netns=f"{self.prefix}-node-{number}",
            address=f"10.200.{self.slot}.{10 + number}",
            pod_range=f"10.{224 + self.slot}.{number}.0/24",
            hub_link=f"node-{number}",
        )

    def nodes(self, count: int) -> tuple[Node, ...]:
        """Return the first `count` nodes."""
        return tuple(self.node(number) for number in range(1, count + 1))
