"""An etcd cluster that the operator did not make, beside the pods of a scenario."""

from dataclasses import dataclass

from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.fakes.etcd.launcher import Bootstrapped
from unit.fakes.etcd.member import FakeMember
from unit.passes.bench import Bench
from unit.passes.network import network

TOKEN = "theirs"


@dataclass(frozen=True)
class Externals:
    """Its processes. endpoints: client URLs, in the order of the members."""

    etcd: FakeEtcdCluster
    endpoints: tuple[str, ...]

    @property
    def left(self) -> list[str]:
        """The names of those that etcd lists."""
        return [member.name for member in self.etcd.members if is_external(member)]


def is_external(member: FakeMember) -> bool:
    """Whether the operator did not make it."""
    return any(url.startswith("http://old-") for url in member.peer_urls)


def externals(made: Bench, size: int = 3, version: str = "3.6.16", *, cluster_id: int = 0xADA) -> Externals:
    """Such a cluster, running, with an acknowledged key in it."""
    etcd = FakeEtcdCluster(cluster_id=cluster_id, clock=made.clock, hangs=False)
    urls = {f"old-{number}": f"http://old-{number}.elsewhere:2380" for number in range(size)}
    etcd.bootstrap(urls)
    members = [
        etcd.start(name, peer_url=url, address=f"{network().new()}:2379", version=version)
        for name, url in urls.items()
    ]
    cluster = Bootstrapped(etcd, tuple(urls))
    cluster.served.update(member.id for member in members)
    made.etcds.by_token[f"{TOKEN}-{cluster_id:x}"] = cluster
    made.clock.advance(10.0)
    cluster.put(b"key", b"value")
    return Externals(etcd, tuple(f"http://{member.endpoint}" for member in members))
