"""Clusters to talk to: the scripted one, and real members of every supported version."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.etcd.channel import Channels
from unit.etcd.real import RealEtcdCluster
from unit.fakes.etcd.cluster import FakeEtcdCluster

VERSIONS = ("3.5.34", "3.5.35", "3.6.16", "3.7.3")


@pytest.fixture
def channels() -> Iterator[Channels]:
    channels = Channels()
    yield channels
    channels.close()


@pytest.fixture
def fake() -> Iterator[FakeEtcdCluster]:
    cluster = FakeEtcdCluster()
    yield cluster
    cluster.close()


def programs(version: str) -> Path:
    """The folder with etcd and etcdctl of one version.

    `ETCD_BIN` names a folder with one `etcd-<version>` folder each; the default is the cache
    that `hack/cluster build` fills. Without programs the test is skipped, unless ETCD_BIN is set.
    """
    chosen = os.environ.get("ETCD_BIN")
    cache = os.environ.get("XDG_CACHE_HOME", "")
    default = (Path(cache) if cache.startswith("/") else Path.home() / ".cache") / "etcd-operator-dev/tools"
    folder = (Path(chosen) if chosen else default) / f"etcd-{version}"
    if all(os.access(folder / program, os.X_OK) for program in ("etcd", "etcdctl")):
        return folder
    if chosen:
        pytest.fail(f"ETCD_BIN is set, but {folder} has no etcd and etcdctl")
    pytest.skip(f"no etcd in {folder}: run hack/cluster build, or set ETCD_BIN")


@pytest.fixture(params=[pytest.param(version, marks=pytest.mark.etcd) for version in VERSIONS])
def binaries(request: pytest.FixtureRequest) -> Path:
    """The programs of each version."""
    return programs(request.param)


@pytest.fixture
def real(binaries: Path, tmp_path: Path) -> Iterator[RealEtcdCluster]:
    cluster = RealEtcdCluster(binaries, tmp_path)
    yield cluster
    cluster.close()
