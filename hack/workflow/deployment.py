"""The operator on a Kubernetes: its image built and loaded, manifests/deployment.yaml applied.

Promises: what runs afterwards is made from the source as it is now; when nothing has changed, no pod is
replaced. The manifest is applied as it is, except for the image's name, if another one was asked for, and
an annotation with the image's digest, because a tag that is built again rolls nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from pathlib import Path

from localcluster.console import RefusalError, say
from localcluster.paths import REPOSITORY

from .kubernetes import Kubernetes, hack_cluster

MANIFEST = REPOSITORY / "manifests" / "deployment.yaml"
ANNOTATION = "etcd-operator/image-id"

_POD_METADATA = "    metadata:\n      labels:\n"


def deploy(kubernetes: Kubernetes, image: str | None) -> None:
    """Make the operator of this source tree, or `image`, run; return when it is ready."""
    manifest = MANIFEST.read_text()
    own = image_of(manifest)
    if kubernetes.is_local and not image:
        archive = Path(hack_cluster("build-image", "--tag", own).strip())
        digest = image_id(archive)
        _load(kubernetes, archive, own, digest)
    else:
        digest = ""
    kubernetes.kubectl("apply", "--filename=-", stdin=rendered(manifest, image or own, digest))
    say("waiting for the operator to be ready")
    kubernetes.kubectl(
        *("rollout", "status", "deployment/etcd-operator", "--namespace=default", "--timeout=120s")
    )
    say("the operator runs: deployment etcd-operator in namespace default")


def image_of(manifest: str) -> str:
    """The image that a manifest names."""
    found = re.findall(r"^ *image: (\S+)$", manifest, flags=re.MULTILINE)
    if len(found) != 1:
        raise RefusalError(f"{MANIFEST} must name one image, it names {len(found)}")
    return str(found[0])


def rendered(manifest: str, image: str, digest: str) -> str:
    """The manifest with this image and, in the pod's annotations, this digest (empty: none)."""
    own = image_of(manifest)
    text = manifest.replace(f"image: {own}\n", f"image: {image}\n")
    if text.count(_POD_METADATA) != 1:
        raise RefusalError(f"{MANIFEST} has no place for the pod's annotations any more")
    note = f"    metadata:\n      annotations:\n        {ANNOTATION}: {digest}\n      labels:\n"
    return text.replace(_POD_METADATA, note) if digest else text


def image_id(archive: Path) -> str:
    """The digest of the configuration of a docker-archive, which names everything in the image."""
    with tarfile.open(archive) as tar:
        file = tar.extractfile("manifest.json")
        if file is None:
            raise RefusalError(f"{archive} is no image archive")
        config = str(json.load(file)[0]["Config"])
    return hashlib.sha256(config.encode()).hexdigest()[:16]


def _load(kubernetes: Kubernetes, archive: Path, image: str, digest: str) -> None:
    """Load the archive unless each node has been given this very image before."""
    nodes = [
        line.split()[0] for line in kubernetes.cluster("images").splitlines() if line.endswith(f" {image}")
    ]
    wanted = kubernetes.kubectl("get", "nodes", "--output=name").split()
    running = kubernetes.kubectl(
        *("get", "deployment", "etcd-operator", "--namespace=default", "--ignore-not-found", "--output=json")
    )
    if len(nodes) == len(wanted) and digest in running:
        say(f"image {image} is loaded already")
        return
    hack_cluster("load-image", str(archive), "--name", kubernetes.name)
