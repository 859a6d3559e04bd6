"""What came of it: the results of each cluster and of the operator, and the checks that passed or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check at the end; `found` is what is wrong, empty if nothing is."""

    name: str
    found: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.found

    def line(self) -> str:
        """One line of the verdict."""
        return f"  ok      {self.name}" if self.passed else f"  FAILED  {self.name}: {self.found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterResults:
    """One cluster's hour. Times in seconds."""

    name: str
    group: str
    faults: int
    acknowledged: int
    longest_write_gap: str
    quorum_losses: Sequence[float] = ()
    recoveries: Sequence[float] = ()

    def line(self) -> str:
        """One row of the table."""
        lost = f"{len(self.quorum_losses)} (max {max(self.quorum_losses, default=0.0):.1f} s)"
        return (
            f"  {self.name:<10} {self.group:<20} {self.faults:>5} {self.acknowledged:>9} "
            f"{self.longest_write_gap:<18} {lost:<15} {spread(self.recoveries)}"
        )


HEADER = (
    "  cluster    group                 hits    writes longest gap        without quorum  recovered after"
)


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts by name, in the order in which the names came up first."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """One more."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in self.counts.items()) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Everything that is printed at the end; `passed` is the exit code."""

    seed: int
    seconds: float
    faults: str
    operator_faults: str
    changes: int
    takeovers: Sequence[float]
    clusters: Sequence[ClusterResults]
    checks: Sequence[Check]
    load: float
    cores: int
    notable: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        """Whether every check passed, and there was at least one."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    def lines(self) -> Iterable[str]:
        """The report."""
        yield f"== verdict after {duration(self.seconds)}, seed {self.seed}"
        yield f"  faults: {self.faults}"
        yield f"  operator: {self.operator_faults}; {self.changes} takeovers, after {spread(self.takeovers)}"
        yield f"  load of this machine: {self.load:.1f} on {self.cores} cores, in the mean"
        if self.clusters:
            yield HEADER
        yield from (cluster.line() for cluster in self.clusters)
        if self.notable:
            yield "  the operator's log, by event:"
        yield from (f"    {line}" for line in self.notable)
        yield from (check.line() for check in self.checks)
        failed = sum(not check.passed for check in self.checks)
        yield "PASSED" if self.passed else f"FAILED: {failed} of {len(self.checks)} checks"


def spread(seconds: Sequence[float]) -> str:
    """`0.5..3.1 s, median 1.0 (of 12)`."""
    if not seconds:
        return "-"
    least, most = min(seconds), max(seconds)
    return f"{least:.1f}..{most:.1f} s, median {median(seconds):.1f} (of {len(seconds)})"


def duration(seconds: float) -> str:
    """`01:02:03`."""
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
