"""`hack/deploy`: the operator's image built and loaded, manifests/deployment.yaml applied.

Promises: what runs afterwards is made from the source as it is now; when nothing has changed, no pod is
replaced. The manifest is applied as it is, except for the image's name, if another one is requested, and
an annotation with the image's digest, because a tag that is built again rolls nothing out.
"""

from __future__ import annotations

import re
import sys

from localcluster.console import RefusalError, progress
from localcluster.paths import REPOSITORY

from . import options
from .kubernetes import NAMESPACE, Kubernetes

DESCRIPTION = (
    "Build the operator's image from this source tree and run it on a local Kubernetes, or on a named one."
)
MANIFEST = REPOSITORY / "manifests" / "deployment.yaml"
ANNOTATION = "etcd-operator/image-id"

_POD_METADATA = "    metadata:\n      labels:\n"


def main() -> int:
    """Deploy; the exit code."""
    chosen = options.parser("deploy", DESCRIPTION).parse_args()
    try:
        kubernetes = options.prepared(chosen)
        deploy(kubernetes, chosen.image)
    except RefusalError as error:
        print(f"hack/deploy: {error}", file=sys.stderr)
        return 1
    print(kubernetes.exports)
    return 0


def deploy(kubernetes: Kubernetes, image: str | None) -> None:
    """Make the operator of this source tree, or `image`, run; return when it is ready."""
    manifest = MANIFEST.read_text()
    own = image_of(manifest)
    digest = "" if image else kubernetes.load_operator(own)
    kubernetes.kubectl("apply", "--filename=-", stdin=rendered(manifest, image or own, digest))
    progress("waiting for the operator to be ready")
    kubernetes.kubectl(
        *("rollout", "status", "deployment/etcd-operator", f"--namespace={NAMESPACE}", "--timeout=120s")
    )
    progress(f"the operator runs: deployment etcd-operator in namespace {NAMESPACE}")


def withdraw(kubernetes: Kubernetes) -> None:
    """End the operator of an earlier run: it writes the status of all objects, also of those of API tests."""
    kubernetes.kubectl(
        *("delete", "deployment", "etcd-operator", f"--namespace={NAMESPACE}"),
        *("--ignore-not-found", "--cascade=foreground", "--timeout=120s"),
    )


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
        raise RefusalError(f"{MANIFEST} has no place for annotations of the pod")
    metadata = f'    metadata:\n      annotations:\n        {ANNOTATION}: "{digest}"\n      labels:\n'
    return text.replace(_POD_METADATA, metadata) if digest else text
