"""What a series of moments shows: gaps between writes, times without a leader. Arithmetic only.

Times are seconds of one monotonic clock. Samples are points: a window between two of them is known to the
distance of the samples, and no better.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Interval:
    """From `start` to `end`."""

    start: float
    end: float

    @property
    def length(self) -> float:
        """Seconds."""
        return self.end - self.start

    def meets(self, other: "Interval") -> bool:
        """Whether both have more than a point in common."""
        return self.start < other.end and other.start < self.end

    def shared(self, other: "Interval") -> float:
        """Seconds that both have in common."""
        return max(min(self.end, other.end) - max(self.start, other.start), 0.0)


def longest_gap(moments: Iterable[float], within: Interval) -> float:
    """The longest time of `within` without any of `moments`, its start and its end included."""
    return max(each.length for each in outages(moments, within))


def outages(moments: Iterable[float], within: Interval, *, least: float = 0.0) -> list[Interval]:
    """The times of `within` between two of `moments`, its start or its end, of at least `least` seconds."""
    inside = sorted(moment for moment in moments if within.start < moment < within.end)
    gaps = (Interval(*pair) for pair in pairwise([within.start, *inside, within.end]))
    return [gap for gap in gaps if gap.length >= least]


def longest_beyond(outages: Iterable[Interval], control: Sequence[Interval]) -> float:
    """The longest outage, not counting the time in which an untouched cluster had one, too; 0 for none.

    control: the outages of that cluster, none of which overlap: the machine causes them.
    """
    own = (outage.length - sum(outage.shared(other) for other in control) for outage in outages)
    return max(own, default=0.0)


@dataclass(frozen=True)
class Claim:
    """The leader that a member reports (0: none), and its own ID."""

    member: int
    leader: int


@dataclass(frozen=True)
class Answer:
    """What the member at an address answered; `claim` is None if it did not."""

    moment: float
    address: str
    claim: Claim | None


def leaderless(answers: Iterable[Answer], *, voters: int, end: float) -> list[Interval]:
    """The times in which the cluster had no leader that clients could reach, in order.

    There is a leader while a majority of the `voters` names the same one **and** that member itself reports
    to lead: etcd names a leader that died for as long as an election takes to begin. Before the first leader
    nothing is counted, unless there never was one; a window that is open ends at `end`.
    """
    found: list[Interval] = []
    claims: dict[str, Claim] = {}
    lost_at: float | None = None
    first: float | None = None
    had_leader = False
    for answer in sorted(answers, key=lambda each: each.moment):
        first = answer.moment if first is None else first
        if answer.claim is None:
            claims.pop(answer.address, None)
        else:
            claims[answer.address] = answer.claim
        if _has_leader(claims.values(), voters):
            if lost_at is not None:
                found.append(Interval(lost_at, answer.moment))
            had_leader, lost_at = True, None
        elif had_leader and lost_at is None:
            lost_at = answer.moment
    if not had_leader and first is not None:
        lost_at = first
    return found if lost_at is None else [*found, Interval(lost_at, end)]


def _has_leader(claims: Iterable[Claim], voters: int) -> bool:
    known = list(claims)
    return any(
        each.member == each.leader != 0
        and 2 * len({other.member for other in known if other.leader == each.leader}) > voters
        for each in known
    )


def lost_writes(acknowledged: Mapping[str, int], stored: Mapping[str, int]) -> list[str]:
    """The keys, by name, that are not stored at the revision that was acknowledged.

    acknowledged, stored: revision by key; each key is written once only.
    """
    return sorted(key for key, revision in acknowledged.items() if stored.get(key) != revision)
