"""The local Kubernetes of `hack/cluster`."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcluster.console import RefusalError, progress
from localcluster.paths import REPOSITORY, Cache

from .kubernetes import NAMESPACE, Kubernetes

CLUSTER = REPOSITORY / "hack" / "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalKubernetes(Kubernetes):
    """The local cluster of this name."""

    name: str

    @property
    def test_variables(self) -> Mapping[str, str]:
        """By its name, not its kubeconfig: only so do the tests know that they may break it."""
        return {"ETCD_OPERATOR_CLUSTER": self.name}

    @property
    def removal(self) -> str:
        """The command that removes it."""
        return f"hack/cluster down --name {self.name}"

    def load_operator(self, image: str) -> str:
        """Build the image, and load it unless each node has this very one."""
        archive = Path(hack_cluster("build-image", "--tag", image).strip())
        digest = image_id(archive)
        if self._has(image, digest):
            progress(f"image {image} is loaded already")
        else:
            hack_cluster("load-image", str(archive), "--name", self.name)
        return digest

    @property
    def store_loader(self) -> Sequence[str]:
        """It builds them, too, which takes minutes the first time."""
        return (sys.executable, str(CLUSTER), "images", "--with", "stores", "--name", self.name)

    def remove(self) -> None:
        """Remove it and everything that belongs to it."""
        hack_cluster("down", "--name", self.name)

    def _has(self, image: str, digest: str) -> bool:
        listed = hack_cluster("images", "--name", self.name).splitlines()
        nodes = [line.split()[0] for line in listed if line.endswith(f" {image}")]
        wanted = self.kubectl("get", "nodes", "--output=name").split()
        place = ("deployment", "etcd-operator", f"--namespace={NAMESPACE}")
        running = self.kubectl("get", *place, "--ignore-not-found", "--output=json")
        return len(nodes) == len(wanted) and digest in running


def prepared(name: str) -> LocalKubernetes:
    """Return the local cluster, brought up if need be."""
    hack_cluster("setup")
    hack_cluster("up", "--name", name)
    kubeconfig = Path(hack_cluster("kubeconfig", "--name", name).strip())
    return LocalKubernetes(kubeconfig=kubeconfig, name=name, tools=Cache.of_user().bin)


def image_id(archive: Path) -> str:
    """The digest of the configuration of a docker-archive, which names everything in the image."""
    with tarfile.open(archive) as tar:
        file = tar.extractfile("manifest.json")
        if file is None:
            raise RefusalError(f"{archive} is no image archive")
        config = str(json.load(file)[0]["Config"])
    return hashlib.sha256(config.encode()).hexdigest()[:16]


def hack_cluster(*arguments: str) -> str:
    """Run `hack/cluster` and return its output; progress and errors are shown on stderr."""
    command = [sys.executable, str(CLUSTER), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RefusalError(f"hack/cluster {arguments[0]} failed, see above")
    return done.stdout
