"""`hack/demo`: both kinds of cluster, used from inside, deleted, and one resumed.

Promises: each command is printed as a user would type it, then run; what it prints is shown; the first one
that fails ends the walkthrough. The clusters live in a namespace of their own, so nothing else
is touched.
"""

from __future__ import annotations

import subprocess
import sys
import time

from localcluster.console import RefusalError
from localcluster.paths import REPOSITORY

from . import options
from .deployment import deploy
from .kubernetes import Kubernetes

DESCRIPTION = """\
Show the operator at work on a real Kubernetes, from an empty machine to a key in etcd and back.

Brings up a local Kubernetes (Linux, as root; the first time that takes some minutes), builds and deploys the
operator, creates the two example clusters, uses them, deletes them, and resumes one with its data. Every
kubectl command is printed before it runs.
"""
NAMESPACE = "etcd-demo"
EPHEMERAL = "manifests/examples/example-etcd-cluster.yaml"
PERSISTENT = "manifests/examples/etcd_v1alpha1_etcdcluster.yaml"
_WAIT = "wait --for=condition=Available --timeout=180s"
_DELETED = "wait --for=delete --timeout=120s pod"


def main() -> int:
    """Run the demo; the exit code."""
    chosen = options.parser("demo", DESCRIPTION).parse_args()
    started = time.monotonic()
    try:
        kubernetes = options.prepared(chosen)
        deploy(kubernetes, chosen.image)
        demo = Demo(kubernetes)
        demo.run()
    except RefusalError as error:
        print(f"hack/demo: {error}", file=sys.stderr)
        return 1
    demo.print_next_steps()
    print(f"\nThe demo took {time.monotonic() - started:.0f} s.")
    return 0


class Demo:
    """The walkthrough on one Kubernetes, in which the operator runs already."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        self._kubernetes = kubernetes

    def run(self) -> None:
        """Show everything; raise RefusalError when a command fails."""
        self._title("A namespace for the demo")
        if not self._kubernetes.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found"):
            self._kubectl(f"create namespace {NAMESPACE}")
        self._show_ephemeral()
        self._show_persistent()
        self._show_deletion()
        self._show_return()

    def print_next_steps(self) -> None:
        """Print how to use the clusters, and how to remove everything."""
        print(
            f"""
The Kubernetes and the operator keep running, and so does my-cluster. To use them from this shell:

    {self._kubernetes.exports}
    kubectl --namespace {NAMESPACE} get etcd,pods

To remove what the demo made, then everything:

    kubectl delete namespace {NAMESPACE}
    {self._kubernetes.removal}""",
            flush=True,
        )

    def _show_ephemeral(self) -> None:
        self._title("A cluster of coreos.com/v1: each member a pod that keeps its data as long as it lives")
        self._in_namespace(f"apply -f {EPHEMERAL}")
        self._in_namespace(f"{_WAIT} etcdclusters.coreos.com/example-etcd-cluster")
        self._in_namespace("get pods,services")
        self._in_namespace("get etcdclusters.coreos.com")
        self._title("Writing and reading through its client Service, from inside a pod")
        client = "exec example-etcd-cluster-0000 -- etcdctl --endpoints=http://example-etcd-cluster:2379"
        self._in_namespace(f"{client} put greeting hello")
        self._in_namespace(f"{client} get greeting")

    def _show_persistent(self) -> None:
        self._title("A cluster of etcd.improbable.io/v1alpha1: each member keeps its data on a volume")
        self._in_namespace(f"apply -f {PERSISTENT}")
        self._in_namespace(f"{_WAIT} etcdclusters.etcd.improbable.io/my-cluster")
        self._in_namespace(
            "get pods,services,persistentvolumeclaims --selector etcd.improbable.io/cluster-name=my-cluster"
        )
        self._in_namespace("get etcd,etcdpeers")
        self._etcdctl_in_my_cluster("put greeting 'hello again'")
        self._etcdctl_in_my_cluster("member list --write-out=table")

    def _show_deletion(self) -> None:
        self._title("Deleting both: of the first nothing remains, of the second its volume claims")
        self._in_namespace(f"delete -f {EPHEMERAL} -f {PERSISTENT}")
        self._in_namespace(f"{_DELETED} --selector etcd_cluster=example-etcd-cluster")
        self._in_namespace(f"{_DELETED} --selector etcd.improbable.io/cluster-name=my-cluster")
        self._in_namespace("get etcdclusters.coreos.com,etcd,pods,services,persistentvolumeclaims")

    def _show_return(self) -> None:
        self._title("Creating the second again: it resumes with its data")
        self._in_namespace(f"apply -f {PERSISTENT}")
        self._in_namespace(f"{_WAIT} etcdclusters.etcd.improbable.io/my-cluster")
        self._etcdctl_in_my_cluster("get greeting")

    def _etcdctl_in_my_cluster(self, arguments: str) -> None:
        # The pod's name ends in random letters, as that of each pod of a ReplicaSet does.
        selector = "etcd.improbable.io/peer-name=my-cluster-0"
        pod = f"$(kubectl --namespace {NAMESPACE} get pod --selector {selector} --output name)"
        self._in_namespace(f"exec {pod} -- etcdctl --endpoints=http://my-cluster:2379 {arguments}")

    def _title(self, title: str) -> None:
        print(f"\n== {title}", flush=True)

    def _in_namespace(self, arguments: str) -> None:
        self._kubectl(f"--namespace {NAMESPACE} {arguments}")

    def _kubectl(self, arguments: str) -> None:
        """Print the command and run exactly what was printed."""
        command = f"kubectl {arguments}"
        print(f"$ {command}", flush=True)
        shell = ["bash", "-c", command]
        done = subprocess.run(shell, cwd=REPOSITORY, env=self._kubernetes.environment, check=False)
        if done.returncode != 0:
            raise RefusalError(f"stopped at: {command}")
