"""An existing cluster in place of our own, named by an explicit kubeconfig.

Promises: `KUBECONFIG` is never taken silently; nothing in that cluster is changed.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from .commands import CommandError
from .console import RefusalError
from .kubectl import Kubectl
from .paths import Cache


def verify(kubeconfig: Path, cache: Cache) -> str:
    """Return the server's version; refuse with one line if the cluster cannot be used."""
    if not kubeconfig.is_file():
        raise RefusalError(f"there is no kubeconfig at {kubeconfig}")
    program = kubectl_program(cache)
    with tempfile.TemporaryDirectory() as folder:
        kubectl = Kubectl(program, kubeconfig, Path(folder))
        try:
            if not kubectl.is_ready():
                raise RefusalError(f"the cluster of {kubeconfig} does not answer that it is ready")
            return str(json.loads(kubectl("get", "--raw", "/version"))["gitVersion"])
        except CommandError as error:
            raise RefusalError(f"the cluster of {kubeconfig} cannot be used: {error}") from error


def kubectl_program(cache: Cache) -> Path:
    """Return our kubectl, or else the machine's."""
    ours, theirs = cache.bin / "kubectl", shutil.which("kubectl")
    if ours.exists():
        return ours
    if theirs is None:
        raise RefusalError("no kubectl; install it, or run: hack/cluster build")
    return Path(theirs)
