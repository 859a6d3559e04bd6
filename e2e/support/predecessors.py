"""Clusters as the two earlier operators leave them, without those operators: what both have in common."""

from dataclasses import dataclass
from typing import Any

from e2e.support.clusters import Document
from e2e.support.space import Space
from e2e.support.waiting import LONG, wait_until

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
            LONG,
            lambda: f"{self.name} runs: {[pod['status'] for pod in self.pods()]}",
        )


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
