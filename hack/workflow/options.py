"""How a user chooses the Kubernetes of a workflow.

Promises: `prepared` ends with a Kubernetes that answers, or with one line that names what is missing.
"""

from __future__ import annotations

import argparse
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from localcluster.console import RefusalError
from localcluster.external import kubectl_program
from localcluster.paths import Cache

from . import kind, local
from .kubernetes import Kubernetes

PROVIDERS = {"local": local.prepared, "kind": kind.prepared}


def parser(command: str, description: str) -> ArgumentParser:
    """Return a parser with the options that all workflows have."""
    made = ArgumentParser(
        prog=f"hack/{command}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(provider="local")
    made.add_argument("--name", help="name of the local cluster (default: $ETCD_OPERATOR_CLUSTER, else dev)")
    made.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="PATH",
        help="use this existing Kubernetes, on which nothing depends; requires --image",
    )
    made.add_argument(
        "--image",
        help="operator image that the nodes have or can pull, instead of building one (see README.md)",
    )
    return made


def prepared(options: Namespace) -> Kubernetes:
    """Return the Kubernetes that the options select, up and answering."""
    if options.kubeconfig is None:
        name = options.name or os.environ.get("ETCD_OPERATOR_CLUSTER") or "dev"
        return PROVIDERS[options.provider](name)
    if options.provider != "local":
        raise RefusalError(f"either --kubeconfig or --provider {options.provider}")
    if not options.image:
        raise RefusalError(
            "--kubeconfig needs --image, an operator image that the nodes have or can pull; "
            'see "Build the image" in README.md'
        )
    local.hack_cluster("status", "--kubeconfig", str(options.kubeconfig))
    program = kubectl_program(Cache.of_user())
    return Kubernetes(kubeconfig=options.kubeconfig.resolve(), tools=program.parent)
