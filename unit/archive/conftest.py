"""Real members, and the commands run in this process."""

from pathlib import Path

import pytest

from unit.commands.conftest import run
from unit.etcd.conftest import channels, programs, real

__all__ = ["channels", "real", "run"]


@pytest.fixture(
    params=[pytest.param(version, marks=pytest.mark.etcd) for version in ("3.5.35", "3.6.16", "3.7.3")]
)
def binaries(request: pytest.FixtureRequest) -> Path:
    """The programs of each minor version, for `real`."""
    return programs(request.param)
