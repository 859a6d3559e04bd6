"""`hack/generate-bad-input`: docs/bad-input.md, from the cases that are tested on a real API server."""

from __future__ import annotations

from generators import tree
from unit.api.contract.cases import document

TARGET = "docs/bad-input.md"


def main() -> int:
    """Generate, or check; the exit code."""
    description = f"Write {TARGET} from the cases that are tested on a real API server."
    return tree.run("generate-bad-input", description, lambda: {TARGET: document()})
