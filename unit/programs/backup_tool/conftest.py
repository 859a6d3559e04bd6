"""A scripted etcd whose snapshots have its revision."""

from collections.abc import Iterator

import pytest

from unit.archive.samples import snapshot
from unit.fakes.etcd.cluster import FakeEtcdCluster

PEER = "http://127.0.0.1:2380"


@pytest.fixture
def etcd() -> Iterator[FakeEtcdCluster]:
    """One member, at revision 6."""
    cluster = FakeEtcdCluster()
    cluster.bootstrap({"m0": PEER})
    cluster.start("m0", peer_url=PEER)
    cluster.revision = 6
    cluster.damage = lambda _: snapshot(cluster.revision - 1)
    yield cluster
    cluster.close()


@pytest.fixture
def endpoint(etcd: FakeEtcdCluster) -> str:
    return etcd.member("m0").endpoint
