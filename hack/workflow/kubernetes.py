"""A Kubernetes that the workflows run on, and what they need of it.

Promises: it is used through its kubeconfig only; what cannot be done there is refused with one line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcluster.console import RefusalError
from localcluster.kubectl import Kubectl

NAMESPACE = "etcd-operator"
"""Of the operator, as manifests/deployment.yaml makes it."""

_KUBECTL_SECONDS = 150.0
"""Longer than the time for which a roll-out is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubernetes:
    """A Kubernetes that is managed elsewhere; `tools` is the folder with kubectl."""

    kubeconfig: Path
    tools: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """An environment in which `kubectl` is the right program and talks to this Kubernetes."""
        path = f"{self.tools}{os.pathsep}{os.environ.get('PATH', '')}"
        return dict(os.environ) | {"KUBECONFIG": str(self.kubeconfig), "PATH": path}

    @property
    def exports(self) -> str:
        """The line that a user types to get the same environment."""
        return f"export KUBECONFIG={self.kubeconfig} PATH={self.tools}:$PATH"

    @property
    def kubectl(self) -> Kubectl:
        """kubectl as administrator."""
        return Kubectl(
            program="kubectl",
            kubeconfig=self.kubeconfig,
            environment=lambda: self.environment,
            deadline=_KUBECTL_SECONDS,
        )

    @property
    def test_variables(self) -> Mapping[str, str]:
        """The environment variables by which the system tests find it."""
        return {"ETCD_OPERATOR_KUBECONFIG": str(self.kubeconfig)}

    @property
    def removal(self) -> str:
        """The command that removes the operator again."""
        return "kubectl delete -f manifests/deployment.yaml"

    def load_operator(self, image: str) -> str:
        """Build the operator's image and give it to all nodes; a digest that changes with its content."""
        raise RefusalError(f"{image} cannot be loaded into this Kubernetes; use --image")

    @property
    def store_loader(self) -> Sequence[str]:
        """The command that loads the stores for tests of backups; empty if they cannot be loaded."""
        return ()

    def remove(self) -> None:
        """Remove the Kubernetes, if the workflows made it."""
