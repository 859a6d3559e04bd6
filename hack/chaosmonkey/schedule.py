"""What is done when, from a seed: an endless, reproducible sequence.

Members and the operator have generators of their own, so that the same seed picks the same members
whether or not the operator is killed as well. A fault names its target by a number in [0, 1), which picks
from whoever can get a fault then (`targets`): pods have new names in each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

JITTER = 0.25
"""Waits differ from the interval by at most this part of it, so that faults of two kinds drift past each
other and meet each phase of a recovery."""


class FaultKind(StrEnum):
    """What can be done to a target."""

    DELETE = "delete"
    KILL = "kill"
    FREEZE = "freeze"
    NODE_STOP = "node-stop"
    NODE_CUT = "node-cut"

    @property
    def is_local(self) -> bool:
        """Whether it needs a cluster of hack/cluster."""
        return self is not FaultKind.DELETE

    @property
    def is_of_node(self) -> bool:
        """Whether the target is a node."""
        return self in (FaultKind.NODE_STOP, FaultKind.NODE_CUT)

    @property
    def lasts(self) -> bool:
        """Whether it lasts until it is mended."""
        return self is FaultKind.FREEZE or self.is_of_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One act: `wait` seconds after the one before it, against cluster number `cluster` (of 0..)."""

    number: int
    wait: float
    kind: FaultKind
    cluster: int
    draw: float


def against_members(
    seed: int, *, interval: float, clusters: int, kinds: Sequence[FaultKind]
) -> Iterator[Fault]:
    """Faults of members and nodes, without end; a kind that is named twice comes twice as often."""
    return _faults(Random(f"{seed} members"), interval=interval, clusters=clusters, kinds=kinds)  # noqa: S311


def against_operator(seed: int, *, every: float, kinds: Sequence[FaultKind]) -> Iterator[Fault]:
    """Faults of the operator, without end."""
    return _faults(Random(f"{seed} operator"), interval=every, clusters=1, kinds=kinds)  # noqa: S311


def _faults(chance: Random, *, interval: float, clusters: int, kinds: Sequence[FaultKind]) -> Iterator[Fault]:
    number = 0
    while True:
        number += 1
        yield Fault(
            number=number,
            wait=interval * chance.uniform(1 - JITTER, 1 + JITTER),
            kind=chance.choice(kinds),
            cluster=chance.randrange(clusters),
            draw=chance.random(),
        )
