"""Who gets a fault: a choice that never costs a cluster its quorum, unless that is requested.

A cluster must be whole (every member a healthy voter, the operator at rest) before it gets a fault, and at
most as many members go as a quorum can spare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member's pod and the node it runs on."""

    pod: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A cluster as it is now: its members by name, how many are declared, and whether it is whole."""

    name: str
    size: int
    members: tuple[Member, ...]
    is_whole: bool

    def on(self, node: str) -> int:
        """How many of its members run on a node."""
        return sum(member.node == node for member in self.members)


@dataclass(frozen=True, slots=True)
class Wait:
    """No member may get a fault yet; `until` names what must hold first."""

    until: str


@dataclass(frozen=True, slots=True)
class Skip:
    """No node can get a fault as members are placed; waiting would not help."""

    why: str


def spare(size: int) -> int:
    """How many of `size` voters may be missing without losing the quorum."""
    return (size - 1) // 2


def target_members(
    sight: Sight, draw: float, *, at_once: int, beyond_quorum: bool
) -> tuple[Member, ...] | Wait:
    """`at_once` neighbours by name, from the one that `draw` in [0, 1) picks."""
    if not beyond_quorum and not sight.is_whole:
        return Wait(f"{sight.name} is whole")
    if not sight.members:
        return Wait(f"{sight.name} has a member")
    count = min(at_once, len(sight.members) if beyond_quorum else spare(sight.size))
    first = int(draw * len(sight.members))
    return tuple(sight.members[(first + step) % len(sight.members)] for step in range(count))


def target_node(sights: Sequence[Sight], draw: float, *, beyond_quorum: bool) -> str | Wait | Skip:
    """A node with members, which every cluster can do without."""
    nodes = sorted({member.node for sight in sights for member in sight.members})
    if not beyond_quorum:
        for sight in sights:
            if not sight.is_whole:
                return Wait(f"{sight.name} is whole")
        nodes = [node for node in nodes if all(sight.on(node) <= spare(sight.size) for sight in sights)]
    if not nodes:
        return Skip("each node has more members of one cluster than its quorum can spare")
    return nodes[int(draw * len(nodes))]
