"""Which Kubernetes the workflows run on, and what they call there.

Promises: `prepared` ends with a Kubernetes that answers, or with one line that says what is missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from localcluster.console import RefusalError
from localcluster.external import kubectl_program
from localcluster.kubectl import Kubectl
from localcluster.paths import REPOSITORY, Cache

CLUSTER = REPOSITORY / "hack" / "cluster"

_KUBECTL_SECONDS = 150.0
"""Longer than a roll-out is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubernetes:
    """A usable Kubernetes; `name` is that of a local one, empty for one that was given by its kubeconfig."""

    kubeconfig: Path
    name: str
    tools: Path

    @property
    def is_local(self) -> bool:
        """Whether it is one of hack/cluster."""
        return bool(self.name)

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

    def cluster(self, *words: str) -> str:
        """Run `hack/cluster` on this local cluster and return what it printed; progress is shown."""
        return hack_cluster(*words, "--name", self.name)


def add_options(parser: ArgumentParser) -> None:
    """Let the user choose the Kubernetes."""
    parser.add_argument(
        "--name", help="name of the local cluster (default: $ETCD_OPERATOR_CLUSTER, else dev)"
    )
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="PATH", help="use this existing Kubernetes; needs --image"
    )
    parser.add_argument(
        "--image", help="operator image that the nodes have or can pull; none is built then (see README.md)"
    )


def prepared(options: Namespace) -> Kubernetes:
    """Return the Kubernetes that the options name, up and answering."""
    if options.kubeconfig is not None:
        if not options.image:
            raise RefusalError(
                "--kubeconfig needs --image, an operator image that the nodes have or can pull; "
                'see "Build the image" in README.md'
            )
        hack_cluster("status", "--kubeconfig", str(options.kubeconfig))
        program = kubectl_program(Cache.of_user())
        return Kubernetes(kubeconfig=options.kubeconfig.resolve(), name="", tools=program.parent)
    name = options.name or os.environ.get("ETCD_OPERATOR_CLUSTER") or "dev"
    hack_cluster("setup")
    hack_cluster("up", "--name", name)
    kubeconfig = Path(hack_cluster("kubeconfig", "--name", name).strip())
    return Kubernetes(kubeconfig=kubeconfig, name=name, tools=Cache.of_user().bin)


def hack_cluster(*words: str) -> str:
    """Run `hack/cluster` and return what it printed; progress is shown, a failure has been told."""
    done = subprocess.run([sys.executable, CLUSTER, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RefusalError(f"hack/cluster {words[0]} failed, see above")
    return done.stdout
