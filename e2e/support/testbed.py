"""Which Kubernetes the tests run on, and what can be broken there.

`$ETCD_OPERATOR_KUBECONFIG` names any cluster whose pods can be dialled from here; without it
the local one is used (`hack/cluster`; `$ETCD_OPERATOR_CLUSTER` selects one of several). Faults and
the audit log exist on the local one only: what needs them checks `is_local` first.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localcluster.kubectl import Kubectl

ROOT = Path(__file__).resolve().parent.parent.parent
CLUSTER = ROOT / "hack" / "cluster"

KUBECTL_SECONDS = 240.0
_BUILD_SECONDS = 1800.0


class TestbedError(Exception):
    """There is no usable Kubernetes."""

    __test__ = False


@dataclass(frozen=True)
class Testbed:
    """A running Kubernetes; `status` is that of `hack/cluster status --json`, empty for a foreign one."""

    __test__ = False  # not a test, whatever pytest thinks of the name

    kubeconfig: Path
    status: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_local(self) -> bool:
        """Whether this is a cluster of hack/cluster, which can be broken on purpose."""
        return bool(self.status)

    @property
    def path(self) -> str:
        """A PATH that has kubectl and etcdctl."""
        tools = [str(self.status["path"])] if self.is_local else []
        return os.pathsep.join([*tools, os.environ["PATH"]])

    @property
    def audit_log(self) -> Path:
        """Where the API server writes who requested what."""
        return Path(self._local("auditLog"))

    @property
    def volumes(self) -> Path:
        """Where the volumes of class `standard` are."""
        return Path(self._local("volumes"))

    @property
    def logs(self) -> str:
        """The folder of the control plane's own logs."""
        return self._local("logs")

    def environment(self) -> dict[str, str]:
        """The environment of this process, in which kubectl and etcdctl are found."""
        return {**os.environ, "PATH": self.path}

    def kubectl(self, namespace: str = "", *, is_echoed: bool = True) -> Kubectl:
        """kubectl as users type it: each command is printed."""
        return Kubectl(
            program="kubectl",
            kubeconfig=self.kubeconfig,
            namespace=namespace,
            environment=self.environment,
            deadline=KUBECTL_SECONDS,
            is_echoed=is_echoed,
        )

    def fault(self, *arguments: str) -> str:
        """Break something, or mend it: the arguments of `hack/cluster fault`."""
        print("$ hack/cluster fault", *arguments, flush=True)
        done = _hack_cluster("fault", *arguments)
        if done.returncode != 0:
            raise TestbedError(f"hack/cluster fault {' '.join(arguments)}: {_output(done)}")
        return done.stdout

    def load_stores(self) -> None:
        """Let all nodes have the images of the stores for backups; the first time builds them, in minutes."""
        if not self.is_local:
            raise TestbedError("the images of the stores are made for local clusters only")
        done = _hack_cluster("images", "--with", "stores", deadline=_BUILD_SECONDS)
        if done.returncode != 0:
            raise TestbedError(f"hack/cluster images --with stores: {_output(done)}")

    def _local(self, key: str) -> str:
        if key not in self.status:
            raise TestbedError(f"hack/cluster status --json has no {key!r}")
        return str(self.status[key])


def find_testbed() -> Testbed:
    """The Kubernetes to use. Raises TestbedError if there is none."""
    named = os.environ.get("ETCD_OPERATOR_KUBECONFIG")
    if named:
        return Testbed(Path(named))
    done = _hack_cluster("status", "--json")
    if done.returncode != 0:
        raise TestbedError(f"no usable cluster; run: hack/cluster up (status: {_output(done)})")
    status = json.loads(done.stdout)
    return Testbed(Path(status["kubeconfig"]), status)


def _hack_cluster(*arguments: str, deadline: float = 180.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CLUSTER, *arguments], capture_output=True, text=True, check=False, timeout=deadline
    )


def _output(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.strip() or done.stdout.strip()
