"""Real members, and the commands run in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.commands.conftest import run
from unit.etcd.conftest import channels, programs
from unit.etcd.real import RealEtcdCluster

__all__ = ["channels", "run"]


@pytest.fixture(
    params=[pytest.param(version, marks=pytest.mark.etcd) for version in ("3.5.35", "3.6.16", "3.7.3")]
)
def binaries(request: pytest.FixtureRequest) -> Path:
    """The programs of each minor version."""
    return programs(request.param)


@pytest.fixture
def real(binaries: Path, tmp_path: Path) -> Iterator[RealEtcdCluster]:
    cluster = RealEtcdCluster(binaries, tmp_path)
    yield cluster
    cluster.close()
