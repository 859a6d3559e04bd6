"""A measured figure against its budget, and how both are printed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One figure; `at_most` is None for what has no budget."""

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None
    note: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether the budget is kept."""
        return self.at_most is None or self.value <= self.at_most

    def line(self) -> str:
        """One line of the table."""
        budget = "" if self.at_most is None else f"<= {self.at_most:g}"
        result = "" if self.at_most is None else "PASS" if self.is_kept else "FAIL"
        return (
            f"{self.name:<68} {self.value:>9.3g} {self.unit:<8} {budget:>8}  {result:<5} {self.note}".rstrip()
        )

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {**asdict(self), "is_kept": self.is_kept}


def median_of(name: str, seconds: Sequence[float], *, at_most: float | None = None) -> Verdict:
    """The median of several runs, with their extremes as a note."""
    return Verdict(
        name=f"{name}, median", value=median(seconds), unit="s", at_most=at_most, note=spread(seconds)
    )


def spread(seconds: Sequence[float]) -> str:
    """The extremes of several runs, for a note."""
    return f"{min(seconds):.2f}..{max(seconds):.2f} s in {len(seconds)} runs"
