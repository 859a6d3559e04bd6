"""Which Kubernetes the tests run on, and what can be broken there.

`$ETCD_OPERATOR_KUBECONFIG` names any cluster whose pods can be dialled from here; without it
the local one is used (`hack/cluster`, which of several says `$ETCD_OPERATOR_CLUSTER`). Faults and
the audit log exist on the local one only: what needs them asks `is_local` first.
"""

import os
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CLUSTER = ROOT / "hack" / "cluster"


class TestbedError(Exception):
    """There is no usable Kubernetes."""

    __test__ = False


@dataclass(frozen=True)
class Testbed:
    """A running Kubernetes; `report` is what `hack/cluster status` printed, empty for a foreign one."""

    __test__ = False  # not a test, whatever pytest thinks of the name

    kubeconfig: Path
    report: str = ""

    @property
    def is_local(self) -> bool:
        """Whether this is a cluster of hack/cluster, which can be broken on purpose."""
        return bool(self.report)

    @cached_property
    def path(self) -> str:
        """A PATH that has kubectl and etcdctl."""
        last = self.report.splitlines()[-1] if self.report else ""
        _, _, tools = last.partition("PATH=")
        return tools.replace("$PATH", os.environ["PATH"]) or os.environ["PATH"]

    @cached_property
    def audit_log(self) -> Path:
        """Where the API server writes who asked for what."""
        return Path(self._line("audit log"))

    @cached_property
    def volumes(self) -> Path:
        """Where the volumes of class `standard` are."""
        return Path(self._line("volumes").removesuffix(" (class standard)"))

    @cached_property
    def logs(self) -> str:
        """The folder of the control plane's own logs."""
        return self._line("logs")

    def fault(self, *words: str) -> str:
        """Break something, or mend it: the words of `hack/cluster fault`."""
        print("$ hack/cluster fault", *words, flush=True)
        return _hack_cluster("fault", *words)

    def _line(self, name: str) -> str:
        for line in self.report.splitlines():
            if line.strip().startswith(name + "  "):
                return line.strip().removeprefix(name).strip()
        raise TestbedError(f"hack/cluster status names no {name!r}")


def find_testbed() -> Testbed:
    """The Kubernetes to use. Raises TestbedError if there is none."""
    named = os.environ.get("ETCD_OPERATOR_KUBECONFIG")
    if named:
        return Testbed(Path(named))
    kubeconfig = _hack_cluster("kubeconfig").strip()
    return Testbed(Path(kubeconfig), _hack_cluster("status").strip())


def _hack_cluster(*words: str) -> str:
    done = subprocess.run([CLUSTER, *words], capture_output=True, text=True, check=False, timeout=180)
    if done.returncode != 0:
        raise TestbedError(f"hack/cluster {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
