"""A Kubernetes in Docker, made by the program `kind` (docs/decisions/019).

Promises: an existing cluster of that name is used again; only that cluster and its kubeconfig are touched.
The tests dial pods, so a route leads from this machine to the pods of each node: on Linux, as root.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from localcluster.commands import run, succeeds
from localcluster.console import RefusalError, progress
from localcluster.paths import REPOSITORY, Cache

from .kubernetes import Kubernetes

_SECONDS = 900.0
_PROGRAMS = ("docker", "kind", "kubectl", "etcdctl", "ip")
_SHELL = "localhost/etcd-shell:dev"
_SHELL_DOCKERFILE = """FROM quay.io/coreos/etcd:v3.6.16 AS etcd
FROM docker.io/library/busybox:1.36
COPY --from=etcd /usr/local/bin/etcdctl /usr/local/bin/
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindKubernetes(Kubernetes):
    """The kind cluster of this name."""

    name: str

    def load_operator(self, image: str) -> str:
        """Build the image with docker and load it into the nodes."""
        self.load(image, REPOSITORY)
        return run(["docker", "image", "inspect", "--format={{.Id}}", image]).strip().rpartition(":")[2][:16]

    def load(self, image: str, context: Path | str, stdin: str | None = None) -> None:
        """Build an image and load it into the nodes."""
        run(["docker", "build", f"--tag={image}", context], stdin=stdin, deadline=_SECONDS)
        run(["kind", "load", "docker-image", f"--name={self.name}", image], deadline=_SECONDS)

    def routes(self) -> list[tuple[str, str]]:
        """The range of the pods of each node, and the node's address."""
        nodes = self.kubectl.find("nodes").get("items", [])
        addresses = [{a["type"]: a["address"] for a in node["status"]["addresses"]} for node in nodes]
        return [(n["spec"]["podCIDR"], a["InternalIP"]) for n, a in zip(nodes, addresses, strict=True)]

    def remove(self) -> None:
        """Delete the cluster and the routes to it."""
        for pods, _ in self.routes():
            succeeds(["ip", "route", "del", pods])
        run(["kind", "delete", "cluster", f"--name={self.name}"], deadline=_SECONDS)


def prepared(name: str) -> KindKubernetes:
    """Return the kind cluster, created if need be, with the images and routes that the tests need."""
    if missing := [program for program in _PROGRAMS if not shutil.which(program)]:
        raise RefusalError(f"--provider kind needs {', '.join(missing)} on the PATH")
    kubeconfig = Cache.of_user().root / f"kind-{name}.kubeconfig"
    kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    where = [f"--name={name}", f"--kubeconfig={kubeconfig}"]
    if name in run(["kind", "get", "clusters"]).split():
        run(["kind", "export", "kubeconfig", *where])
    else:
        progress(f"creating the kind cluster {name}")
        run(["kind", "create", "cluster", "--wait=120s", *where], deadline=_SECONDS)
    tools = Path(shutil.which("kubectl") or "").parent
    made = KindKubernetes(kubeconfig=kubeconfig, tools=tools, name=name)
    for pods, node in made.routes():
        run(["ip", "route", "replace", pods, "via", node])
    made.load(_SHELL, "-", stdin=_SHELL_DOCKERFILE)
    return made
