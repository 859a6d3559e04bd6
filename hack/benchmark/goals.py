"""What a roll may cost, and whether it kept to it. Arithmetic only.

A machine that is busy with other things makes gaps and elections of its own. They are recognized by the same
writer on the same cluster at rest, right before and right after: a run is quiet if its longest gap at rest is
at most half of the goal. What clients feel is judged by the quiet runs, or by all if none was;
what must never happen, and whether rolls end at all, by every run.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmark.rolling import Roll
from benchmark.verdict import Verdict

SECONDS = 10.0
"""For three members and a patch version."""

GAP_SECONDS = 0.25
LEADERLESS_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Hop:
    """One edit of the version of a cluster of `size`."""

    group: str
    size: int
    before: str
    after: str
    watches: int = 0
    """Streams of watching clients on each member; etcd's stop waits 7 s for them, by hand as well."""

    @property
    def name(self) -> str:
        """`coreos.com, 3: 3.5.34 -> 3.5.35`."""
        watched = f", {self.watches} watches on each member" if self.watches else ""
        return f"{self.group}, {self.size}: {self.before} -> {self.after}{watched}"

    @property
    def is_patch(self) -> bool:
        """Whether only the last number of the version changes."""
        return self.before.rpartition(".")[0] == self.after.rpartition(".")[0]

    @property
    def can_serve(self) -> bool:
        """Whether the others serve while one member is away."""
        return self.size >= 3


def verdicts(
    hop: Hop, ours: Sequence[Roll], by_hand: Sequence[Roll], *, failed: Sequence[str] = ()
) -> Iterator[Verdict]:
    """All figures of a hop, the operator's beside those of the same roll by hand.

    failed: why rolls of the operator did not end; they are in no other figure.
    """
    yield Verdict(name=f"{hop.name}: rolls not ended", value=len(failed), at_most=0, note="; ".join(failed))
    if not ours:
        return
    yield _seconds(hop, ours, by_hand)
    yield from _felt(hop, ours, by_hand)
    yield from _kept(hop, ours)


def row(hop: Hop, rolls: Sequence[Roll]) -> str:
    """One side of a hop as a row: time, failed puts, longest gap, that at rest, leaderless windows."""
    if not rolls:
        return f"| {hop.name} | - | - | - | - | - |"
    cells = [
        hop.name,
        f"{median(roll.seconds for roll in rolls):.1f} s",
        f"{_failed(rolls)} of {_tried(rolls)}",
        _ms(max(roll.longest_gap for roll in rolls)),
        _ms(max(roll.gap_at_rest for roll in rolls)),
        _leaderless(rolls),
    ]
    return f"| {' | '.join(cells)} |"


def judged(rolls: Sequence[Roll]) -> Sequence[Roll]:
    """The quiet ones, or all if none was."""
    return [roll for roll in rolls if _is_quiet(roll)] or rolls


def _is_quiet(roll: Roll) -> bool:
    return roll.gap_at_rest <= GAP_SECONDS / 2


def _seconds(hop: Hop, ours: Sequence[Roll], by_hand: Sequence[Roll]) -> Verdict:
    return Verdict(
        name=f"{hop.name}: time, median",
        value=median(roll.seconds for roll in ours),
        unit="s",
        at_most=SECONDS if hop.size == 3 and hop.is_patch and not hop.watches else None,
        note=_beside(by_hand, lambda rolls: f"{median(roll.seconds for roll in rolls):.1f} s"),
    )


def _felt(hop: Hop, ours: Sequence[Roll], by_hand: Sequence[Roll]) -> Iterator[Verdict]:
    """What clients felt; goals only where the others can serve while one member is away."""
    counted = judged(ours)
    quiet = sum(_is_quiet(roll) for roll in ours)
    runs = f"{quiet} of {len(ours)} runs quiet"
    failures: Counter[str] = sum((roll.failures for roll in counted), Counter())
    yield Verdict(
        name=f"{hop.name}: failed puts",
        value=failures.total(),
        at_most=0 if hop.can_serve else None,
        note=f"of {_tried(counted)}; {runs}; all: {_failed(ours)} of {_tried(ours)}; "
        + _beside(by_hand, lambda rolls: f"{_failed(rolls)} of {_tried(rolls)}")
        + "".join(f"; {count} x {reason}" for reason, count in failures.most_common(3)),
    )
    yield Verdict(
        name=f"{hop.name}: longest write gap",
        value=max(roll.longest_gap for roll in counted),
        unit="s",
        at_most=GAP_SECONDS if hop.can_serve else None,
        note=f"{runs}; each (at rest): "
        + ", ".join(f"{_ms(roll.longest_gap)} ({_ms(roll.gap_at_rest)})" for roll in ours)
        + f"; {_beside(by_hand, lambda rolls: _ms(max(roll.longest_gap for roll in rolls)))}",
    )
    yield Verdict(
        name=f"{hop.name}: longest leaderless window",
        value=max((length for roll in counted for length in roll.leaderless), default=0.0),
        unit="s",
        at_most=LEADERLESS_SECONDS if hop.can_serve else None,
        note=f"{runs}; all: {_leaderless(ours)}; {_beside(by_hand, _leaderless)}; "
        f"watch blind for {_ms(max(roll.blind for roll in ours))} at most",
    )


def _kept(hop: Hop, ours: Sequence[Roll]) -> Iterator[Verdict]:
    """What no roll may touch, of whatever size."""
    lost = [key for roll in ours for key in roll.lost]
    changed = [name for roll in ours for name in roll.changed]
    wrong = [roll.inconsistency for roll in ours if roll.inconsistency]
    yield Verdict(name=f"{hop.name}: acknowledged writes lost", value=len(lost), at_most=0, note=_some(lost))
    yield Verdict(name=f"{hop.name}: identities changed", value=len(changed), at_most=0, note=_some(changed))
    yield Verdict(name=f"{hop.name}: runs left inconsistent", value=len(wrong), at_most=0, note=_some(wrong))


def _beside(by_hand: Sequence[Roll], text: Callable[[Sequence[Roll]], str]) -> str:
    return f"by hand {text(by_hand)}" if by_hand else "by hand not measured"


def _leaderless(rolls: Sequence[Roll]) -> str:
    windows = [length for roll in rolls for length in roll.leaderless]
    return f"{len(windows)}, longest {_ms(max(windows, default=0.0))}"


def _failed(rolls: Sequence[Roll]) -> int:
    return sum(roll.failures.total() for roll in rolls)


def _tried(rolls: Sequence[Roll]) -> int:
    return sum(roll.puts for roll in rolls) + _failed(rolls)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
