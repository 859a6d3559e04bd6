"""Talks to an API server through kubectl, with one explicit kubeconfig.

Promises: neither `KUBECONFIG` nor `~/.kube` has any influence; every call has a deadline.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .commands import CommandError, clean_environment, run


class Kubectl:
    """kubectl for one cluster."""

    def __init__(self, program: Path, kubeconfig: Path, cache: Path) -> None:
        self._base: list[str | Path] = [
            program,
            "--kubeconfig",
            kubeconfig,
            "--cache-dir",
            cache,
            "--request-timeout=10s",
        ]

    def __call__(self, *words: str, stdin: str | None = None) -> str:
        """Return the output of a kubectl command; raise `CommandError`."""
        return run([*self._base, *words], stdin=stdin, env=clean_environment())

    def is_ready(self) -> bool:
        """Tell whether the API server answers and says that it is ready."""
        try:
            return self("get", "--raw", "/readyz").strip() == "ok"
        except CommandError:
            return False

    def apply(self, objects: Mapping[str, Any]) -> None:
        """Create or change objects."""
        self("apply", "--filename=-", stdin=json.dumps(objects))

    def get(self, *words: str) -> dict[str, Any]:
        """Return what `kubectl get` finds, decoded; empty if there is nothing."""
        text = self("get", *words, "--ignore-not-found", "--output=json")
        return dict(json.loads(text)) if text.strip() else {}

    def ready_nodes(self) -> dict[str, bool]:
        """Return node name -> whether it is Ready."""
        return {each["metadata"]["name"]: is_ready(each) for each in self.get("nodes").get("items", [])}

    def is_node_ready(self, name: str) -> bool:
        """Tell whether a node is there and Ready."""
        return is_ready(self.get("node", name))


def is_ready(node: Mapping[str, Any]) -> bool:
    """Tell whether a Node says that it is Ready."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def is_rolled_out(deployment: Mapping[str, Any]) -> bool:
    """Tell whether a Deployment's newest pods, and only those, serve."""
    if not deployment:
        return False
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    is_seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return is_seen and all(
        status.get(key) == wanted for key in ("replicas", "updatedReplicas", "readyReplicas")
    )
