"""The operator as a process of this machine, for development: no image, no Deployment.

State is a file, because the parallel workers of one test run share the process.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import yaml

from e2e.support.operators import DeployedOperator, Operator
from e2e.support.ports import free_port
from e2e.support.testbed import ROOT
from e2e.support.waiting import wait_until
from localcluster.kubectl import Kubectl

ACCOUNT = "etcd-operator-process"

_children: list[subprocess.Popen[bytes]] = []
"""What this process has started and has to reap, whoever ended it."""


class OperatorProcess(Operator):
    """`etcd-operator run` out of cluster, with the rights of an administrator."""

    user = f"system:serviceaccount:default:{ACCOUNT}"

    def __init__(self, kubectl: Kubectl, folder: Path, *flags: str) -> None:
        self._kubectl = kubectl
        self._folder = folder
        self._flags = flags
        self._pid_file = folder / "operator.pid"
        self._log_file = folder / "operator.log"
        self._kubeconfig = folder / "operator.kubeconfig"
        self._port_file = folder / "operator.port"

    def prepare(self) -> None:
        """Make the account and the port; once, before the first start."""
        deployed = ("deployment", DeployedOperator.NAME, "-o", "jsonpath={.spec.replicas}")
        running = self._kubectl.within(DeployedOperator.NAMESPACE)("get", *deployed, check=False)
        assert running in ("0", "") or "NotFound" in running, (
            "a deployed operator serves this cluster already"
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        self._port_file.write_text(str(free_port()))
        kubectl = self._kubectl.within("default")
        kubectl("create", "serviceaccount", ACCOUNT, check=False)
        binding = ["clusterrolebinding", ACCOUNT, "--clusterrole=cluster-admin"]
        kubectl("create", *binding, f"--serviceaccount=default:{ACCOUNT}", check=False)
        token = kubectl("create", "token", ACCOUNT, "--duration=12h").strip()
        config = yaml.safe_load(self._kubectl.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {"token": token}
        self._kubeconfig.touch(mode=0o600)
        self._kubeconfig.write_text(json.dumps(config))

    def address(self) -> str:
        return f"127.0.0.1:{self._port_file.read_text()}"

    def log(self) -> str:
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    def incarnation(self) -> str:
        return self._pid_file.read_text() if self._pid_file.exists() else ""

    def kill(self) -> None:
        self._end(signal.SIGKILL)
        self._spawn()

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def start(self) -> None:
        if not self._is_running():
            self._spawn()
        self.wait_ready()

    def _spawn(self) -> None:
        command = [sys.executable, "-m", "etcd_operator", "run", f"--listen={self.address()}"]
        command += ["--no-leader-elect", f"--kubeconfig={self._kubeconfig}", *self._flags]
        with self._log_file.open("a") as log:
            process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
        _children.append(process)
        self._pid_file.write_text(str(process.pid))

    def _is_running(self) -> bool:
        pid = self._pid()
        return pid is not None and _is_ours(pid)

    def _end(self, number: signal.Signals) -> None:
        pid = self._pid()
        if pid is None or not _is_ours(pid):
            return
        os.kill(pid, number)
        wait_until(lambda: _has_ended(pid), f"operator process {pid} ends")
        self._pid_file.unlink()

    def _pid(self) -> int | None:
        return int(self._pid_file.read_text()) if self._pid_file.exists() else None


def _is_ours(pid: int) -> bool:
    """Whether this process is an operator that runs: the number alone may belong to another process now."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"etcd_operator" in arguments


def _has_ended(pid: int) -> bool:
    for child in _children:
        child.poll()
    return not _is_ours(pid)
