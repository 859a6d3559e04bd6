"""Clusters as the two earlier operators leave them, without those operators: what both have in common."""

from dataclasses import dataclass
from typing import Any

from e2e.support.clusters import Document
from e2e.support.space import Space
from e2e.support.waiting import wait_until

IMAGE = "quay.io/coreos/etcd:v{}"


@dataclass(frozen=True)
class Predecessor:
    """Such a cluster. selector: of its members' pods."""

    space: Space
    name: str
    selector: str

    def pods(self) -> list[Document]:
        """The pods, by name."""
        found = self.space.kubectl.json("get", "pods", "--selector", self.selector)["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def addresses(self) -> list[str]:
        """The addresses of the pods that run."""
        return [
            pod["status"]["podIP"]
            for pod in self.pods()
            if pod["status"].get("podIP") and "deletionTimestamp" not in pod["metadata"]
        ]

    def wait_running(self, size: int) -> None:
        """Wait until all containers run."""
        wait_until(
            lambda: len([pod for pod in self.pods() if pod["status"]["phase"] == "Running"]) == size,
            lambda: f"{self.name} runs: {[pod['status'] for pod in self.pods()]}",
        )


def member_container(name: str, host: str, initial: str, version: str, *flags: str, folder: str) -> Document:
    """The container of an initial member, whose volume `etcd-data` is mounted at `folder`."""
    command = [
        "/usr/local/bin/etcd",
        f"--data-dir={folder}/data",
        f"--name={name}",
        f"--initial-advertise-peer-urls=http://{host}:2380",
        "--listen-peer-urls=http://0.0.0.0:2380",
        "--listen-client-urls=http://0.0.0.0:2379",
        f"--advertise-client-urls=http://{host}:2379",
        f"--initial-cluster={initial}",
        "--initial-cluster-state=new",
        *flags,
    ]
    mounts = [{"name": "etcd-data", "mountPath": folder}]
    return {"name": "etcd", "image": IMAGE.format(version), "command": command, "volumeMounts": mounts}


def owned_by(stored: Document) -> list[Document]:
    """A reference to the controlling owner."""
    metadata = stored["metadata"]
    return [
        {
            "apiVersion": stored["apiVersion"],
            "kind": stored["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def service(name: str, labels: Document, owner: list[Document], **spec: Any) -> Document:
    """A Service that selects by its own labels."""
    metadata = {"name": name, "labels": labels, "ownerReferences": owner}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": labels, **spec}}
