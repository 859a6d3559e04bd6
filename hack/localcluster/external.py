"""An existing cluster in place of a local one, named by an explicit kubeconfig.

Promises: `KUBECONFIG` is never used silently; nothing in that cluster is changed.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .commands import CommandError
from .console import RefusalError
from .kubectl import Kubectl, is_ready
from .paths import Cache
from .status import Access, State

_SERVER = "--output=jsonpath={.clusters[0].cluster.server}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """A cluster that reports that it is ready."""

    version: str
    access: Access
    program: Path

    def document(self) -> dict[str, Any]:
        """Return what programs read: the part of a local cluster's document that exists here."""
        with _kubectl(self.program, self.access.kubeconfig) as kubectl:
            return {
                "name": "",
                "state": State.UP,
                **self.access.document(),
                "server": kubectl("config", "view", "--minify", _SERVER),
                "nodes": [_node(each) for each in kubectl.find("nodes").get("items", [])],
            }


def verify(kubeconfig: Path, cache: Cache) -> Existing:
    """Return the cluster; refuse with one line if it cannot be used."""
    if not kubeconfig.is_file():
        raise RefusalError(f"there is no kubeconfig at {kubeconfig}")
    program = kubectl_program(cache)
    with _kubectl(program, kubeconfig) as kubectl:
        if not kubectl.is_ready():
            raise RefusalError(f"the cluster of {kubeconfig} does not report that it is ready")
        version = str(json.loads(kubectl("get", "--raw", "/version"))["gitVersion"])
    access = Access(kubeconfig=kubeconfig.resolve(), tools=program.parent)
    return Existing(version=version, access=access, program=program)


def kubectl_program(cache: Cache) -> Path:
    """Return our kubectl, or else the machine's."""
    ours, theirs = cache.bin / "kubectl", shutil.which("kubectl")
    if ours.exists():
        return ours
    if theirs is None:
        raise RefusalError("no kubectl; install it, or run: hack/cluster build")
    return Path(theirs)


@contextmanager
def _kubectl(program: Path, kubeconfig: Path) -> Iterator[Kubectl]:
    with tempfile.TemporaryDirectory() as folder:
        options = (f"--cache-dir={folder}", "--request-timeout=10s")
        try:
            yield Kubectl(program=program, kubeconfig=kubeconfig, options=options)
        except CommandError as error:
            raise RefusalError(f"the cluster of {kubeconfig} cannot be used: {error}") from error


def _node(found: dict[str, Any]) -> dict[str, Any]:
    addresses = found.get("status", {}).get("addresses", [])
    internal = [each["address"] for each in addresses if each["type"] == "InternalIP"]
    return {
        "name": found["metadata"]["name"],
        "address": next(iter(internal), ""),
        "ready": is_ready(found),
    }
