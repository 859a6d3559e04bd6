"""Golden files: `pytest unit/render --update-golden` rewrites them; check the diff before you commit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

GOLDEN = Path(__file__).parent / "golden"

Compare = Callable[[str, Any], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Compare:
    """Compares a manifest with the file of that name."""
    update = bool(request.config.getoption("--update-golden", default=False))

    def compare(name: str, manifest: Any) -> None:
        path = GOLDEN / f"{name}.yaml"
        if update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(yaml.safe_dump(manifest, sort_keys=False, width=110))
        assert manifest == yaml.safe_load(path.read_text()), f"differs from {path}"

    return compare
