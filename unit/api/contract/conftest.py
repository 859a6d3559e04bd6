"""A real API server, reached by kubectl as users do.

ETCD_OPERATOR_KUBECONFIG names its kubeconfig, ETCD_OPERATOR_KUBECTL the kubectl (default:
the one on the PATH). The CRDs and policies of this tree are applied to it and stay there.
"""

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from etcd_operator.api.definitions.crd import crds
from etcd_operator.api.definitions.policies import policies
from localcluster.kubectl import Kubectl
from unit.api.contract.case import EPHEMERAL, PEER, Manifest, changed
from unit.waiting import eventually


@dataclass(frozen=True, slots=True)
class Result:
    """Exit code and output of kubectl."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one user by kubectl; a refusal is a result, too."""

    kubectl: Kubectl

    @property
    def namespace(self) -> str:
        """The namespace of all of them."""
        return self.kubectl.namespace

    def by(self, user: str) -> "Requests":
        """The same as another user; an empty name is the administrator."""
        return Requests(replace(self.kubectl, options=(f"--as={user}",) if user else ()))

    def within(self, namespace: str) -> "Requests":
        """The same in another namespace."""
        return Requests(self.kubectl.within(namespace))

    def __call__(self, *arguments: str, given: Any = None) -> Result:
        done = self.kubectl.completed(*arguments, stdin=None if given is None else json.dumps(given))
        return Result(done.returncode, done.stdout, done.stderr)

    def create(self, manifest: Manifest, *options: str) -> Result:
        return self("create", *options, "-f", "-", given=manifest)

    def try_out(self, manifest: Manifest) -> Result:
        """Create as a dry run, with the same admission and validation."""
        return self.create(manifest, "--dry-run=server", "-o", "json")

    def replace(self, manifest: Manifest) -> Result:
        """Replace; retry while another writer (a running operator) causes conflicts."""
        answers: list[Result] = []

        def no_conflict() -> bool:
            answers.append(self("replace", "-f", "-", given=manifest))
            return "(Conflict)" not in answers[-1].err

        eventually(no_conflict, "a replace without a conflict")
        return answers[-1]

    def store(self, manifest: Manifest) -> Manifest:
        """Create under a unique name, with status; returns the manifest."""
        name = f"c{uuid.uuid4().hex[:10]}"
        wanted = named(manifest, name)
        answer = self.create(wanted, "-o", "json")
        assert answer.code == 0, answer.err
        if "status" in wanted:
            kind = f"{manifest['kind']}s.{manifest['apiVersion'].partition('/')[0]}".lower()
            patch = json.dumps({"status": wanted["status"]})
            answer = self("patch", kind, name, "--subresource=status", "--type=merge", "-p", patch)
            assert answer.code == 0, answer.err
        return wanted


def named(manifest: Manifest, name: str) -> Manifest:
    """The same under another name; an EtcdPeer moves to another cluster, from whose name its own follows."""
    if manifest["kind"] != "EtcdPeer":
        return changed(manifest, {"metadata/name": name})
    member = {"name": f"{name}-0", "host": f"{name}-0.{name}.default.svc"}
    return changed(
        manifest,
        {
            "metadata/name": member["name"],
            "spec/clusterName": name,
            "spec/bootstrap/static/initialCluster": [member],
        },
    )


@pytest.fixture(scope="session")
def kubectl() -> Iterator[Requests]:
    config = os.environ.get("ETCD_OPERATOR_KUBECONFIG", "")
    path = os.environ.get("ETCD_OPERATOR_KUBECTL") or shutil.which("kubectl")
    if not config:
        pytest.skip("ETCD_OPERATOR_KUBECONFIG is not set: needs a real API server (hack/cluster up)")
    if not path:
        pytest.skip("no kubectl on the PATH and ETCD_OPERATOR_KUBECTL is not set")
    namespace = f"crd-{uuid.uuid4().hex[:8]}"
    kubectl = Requests(Kubectl(program=path, kubeconfig=Path(config), namespace=namespace))
    install(kubectl)
    assert kubectl("create", "namespace", kubectl.namespace).code == 0
    rights = ["--verb=*", "--resource=etcdpeers.etcd.improbable.io"]
    assert kubectl("create", "role", "peers", *rights).code == 0
    assert kubectl("create", "rolebinding", "peers", "--role=peers", "--user=somebody").code == 0
    eventually(lambda: "denied request" in kubectl.by("somebody").try_out(PEER).err, "peers are denied")
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def install(kubectl: Requests) -> None:
    """Apply the generated definitions and policies and wait until they are active."""
    everything = {"apiVersion": "v1", "kind": "List", "items": [*crds(), *policies()]}
    applied = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=everything)
    assert applied.code == 0, applied.err
    names = [f"crd/{crd['metadata']['name']}" for crd in crds()]
    waited = kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    assert waited.code == 0, waited.err
    # kubectl caches names for hours; this refreshes the cache.
    assert kubectl("api-resources").code == 0
    elsewhere = kubectl.within("default")
    even = changed(EPHEMERAL, {"spec/size": 2})
    eventually(lambda: "writes are slower" in elsewhere.try_out(even).err, "policies are active")
