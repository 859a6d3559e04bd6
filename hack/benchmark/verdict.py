"""A measured figure against its budget, and how both are printed."""

from dataclasses import asdict, dataclass
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
