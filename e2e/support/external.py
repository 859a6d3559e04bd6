"""An etcd cluster that the operator did not make: plain pods behind a headless Service."""

from dataclasses import dataclass

from e2e.support.clusters import Document
from e2e.support.space import Space
from e2e.support.waiting import LONG, wait_until

NAME = "old"
IMAGE = "quay.io/coreos/etcd:v{}"
_CONTEXT = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER_CONTEXT = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True)
class External:
    """Its pods `old-0`, `old-1`, in the namespace of the test."""

    space: Space
    size: int

    @property
    def names(self) -> list[str]:
        """Of members and pods."""
        return [f"{NAME}-{number}" for number in range(self.size)]

    @property
    def endpoints(self) -> list[str]:
        """The client URL of each member, by its DNS name."""
        return [f"http://{name}.{NAME}.{self.space.namespace}.svc:2379" for name in self.names]

    def addresses(self) -> list[str]:
        """The addresses of the pods."""
        found = (self.space.kubectl.json("get", "pod", name) for name in self.names)
        return [pod["status"]["podIP"] for pod in found if pod["status"].get("podIP")]


def external(space: Space, size: int, version: str = "3.6.16") -> External:
    """Create such a cluster and wait until its containers run."""
    made = External(space, size)
    space.kubectl.create(_service())
    initial = ",".join(f"{name}=http://{name}.{NAME}:2380" for name in made.names)
    for name in made.names:
        space.kubectl.create(_pod(name, initial, version))
    wait_until(lambda: len(made.addresses()) == size, LONG, "the external members have addresses")
    return made


def _service() -> Document:
    ports = [{"name": "client", "port": 2379}, {"name": "peer", "port": 2380}]
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"etcd": NAME}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME}, "spec": spec}


def _pod(name: str, initial: str, version: str) -> Document:
    host = f"{name}.{NAME}"
    command = [
        "/usr/local/bin/etcd",
        f"--name={name}",
        "--data-dir=/data/etcd",
        "--listen-peer-urls=http://0.0.0.0:2380",
        "--listen-client-urls=http://0.0.0.0:2379",
        f"--initial-advertise-peer-urls=http://{host}:2380",
        f"--advertise-client-urls=http://{host}:2379",
        f"--initial-cluster={initial}",
        "--initial-cluster-state=new",
    ]
    container = {
        "name": "etcd",
        "image": IMAGE.format(version),
        "command": command,
        "securityContext": _CONTAINER_CONTEXT,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"etcd": NAME}},
        "spec": {
            "hostname": name,
            "subdomain": NAME,
            "securityContext": _CONTEXT,
            "containers": [container],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    }
