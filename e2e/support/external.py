"""An etcd cluster that the operator did not make: plain pods behind a headless Service."""

from dataclasses import dataclass

from e2e.support.clusters import RESTRICTED_CONTAINER, RESTRICTED_POD, Document
from e2e.support.predecessors import Predecessor, member_container, service
from e2e.support.space import Space

NAME = "old"


@dataclass(frozen=True)
class External(Predecessor):
    """Its pods `old-0`, `old-1`, in the namespace of the test."""

    names: list[str]
    """Of members and pods."""

    @property
    def endpoints(self) -> list[str]:
        """The client URL of each member, by its DNS name."""
        return [f"http://{name}.{NAME}.{self.space.namespace}.svc:2379" for name in self.names]


def external(space: Space, size: int, version: str = "3.6.16") -> External:
    """Create such a cluster and wait until its containers run."""
    made = External(space, NAME, f"etcd={NAME}", [f"{NAME}-{number}" for number in range(size)])
    ports = [{"name": "client", "port": 2379}, {"name": "peer", "port": 2380}]
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True}
    space.kubectl.create(service(NAME, {"etcd": NAME}, [], ports=ports, **headless))
    initial = ",".join(f"{name}=http://{name}.{NAME}:2380" for name in made.names)
    for name in made.names:
        space.kubectl.create(_pod(name, initial, version))
    made.wait_running(size)
    return made


def _pod(name: str, initial: str, version: str) -> Document:
    container = member_container(name, f"{name}.{NAME}", initial, version, folder="/data")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"etcd": NAME}},
        "spec": {
            "hostname": name,
            "subdomain": NAME,
            "securityContext": RESTRICTED_POD,
            "containers": [{**container, "securityContext": RESTRICTED_CONTAINER}],
            "volumes": [{"name": "etcd-data", "emptyDir": {}}],
        },
    }
