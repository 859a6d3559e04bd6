"""What is done when, from a seed: an endless, reproducible sequence.

Members and the operator have generators of their own, so that the same seed strikes the same members
whether or not the operator is killed as well. A strike names its victim by a number in [0, 1), which picks
from whoever can be struck then (`victims`): pods have new names in each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

JITTER = 0.25
"""Waits differ from the interval by at most this part of it, so that strikes of two kinds drift past each
other and meet each phase of a recovery."""


class Deed(StrEnum):
    """What can be done to a victim."""

    DELETE = "delete"
    KILL = "kill"
    FREEZE = "freeze"
    NODE_STOP = "node-stop"
    NODE_CUT = "node-cut"

    @property
    def is_local(self) -> bool:
        """Whether it needs a cluster of hack/cluster."""
        return self is not Deed.DELETE

    @property
    def is_of_node(self) -> bool:
        """Whether the victim is a node."""
        return self in (Deed.NODE_STOP, Deed.NODE_CUT)

    @property
    def lasts(self) -> bool:
        """Whether it lasts until it is mended."""
        return self is Deed.FREEZE or self.is_of_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One act: `wait` seconds after the one before it, against cluster number `cluster` (of 0..)."""

    number: int
    wait: float
    deed: Deed
    cluster: int
    draw: float


def against_members(seed: int, *, interval: float, clusters: int, deeds: Sequence[Deed]) -> Iterator[Strike]:
    """Strikes at members and nodes, without end; a deed that is named twice comes twice as often."""
    return _strikes(Random(f"{seed} members"), interval=interval, clusters=clusters, deeds=deeds)  # noqa: S311


def against_operator(seed: int, *, every: float, deeds: Sequence[Deed]) -> Iterator[Strike]:
    """Strikes at the operator, without end."""
    return _strikes(Random(f"{seed} operator"), interval=every, clusters=1, deeds=deeds)  # noqa: S311


def _strikes(chance: Random, *, interval: float, clusters: int, deeds: Sequence[Deed]) -> Iterator[Strike]:
    number = 0
    while True:
        number += 1
        yield Strike(
            number=number,
            wait=interval * chance.uniform(1 - JITTER, 1 + JITTER),
            deed=chance.choice(deeds),
            cluster=chance.randrange(clusters),
            draw=chance.random(),
        )
