"""The operator under test: a Deployment from the real image, or a process of this machine.

`$ETCD_OPERATOR_E2E_OPERATOR` selects it. Both run as a service account of their own, so that the audit
log shows their requests apart from all others.
"""

import contextlib
import os
import urllib.request
from abc import ABC, abstractmethod
from typing import Any

from e2e.support.testbed import Testbed, TestbedError
from e2e.support.waiting import wait_until
from localcluster.kubectl import Kubectl, KubectlError, is_ready


class Operator(ABC):
    """What tests do to the operator, and what they read from it."""

    user: str
    """The user of its requests in the audit log."""

    @abstractmethod
    def address(self) -> str:
        """`host:port` of its status page; empty while it does not run."""

    @abstractmethod
    def log(self) -> str:
        """Its log, that of killed ones included as far as it is kept."""

    @abstractmethod
    def incarnation(self) -> str:
        """Something that changes whenever it starts again."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL, and start it again; does not wait until it is ready."""

    @abstractmethod
    def stop(self) -> None:
        """End it as its owner would, and wait for its end."""

    @abstractmethod
    def start(self) -> None:
        """Start it, and wait until it is ready."""

    def is_ready(self) -> bool:
        """Whether its caches are complete."""
        try:
            self.page("readyz")
        except OSError:
            return False
        return True

    def wait_ready(self) -> None:
        """Wait until it is ready."""
        wait_until(self.is_ready, "the operator is ready")

    def page(self, path: str) -> str:
        """A page of its status server. Raises OSError when it does not answer, or not with 200."""
        address = self.address()
        if not address:
            raise ConnectionRefusedError("the operator does not run")
        with urllib.request.urlopen(f"http://{address}/{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def metric(self, name: str) -> float:
        """The sum of a metric over all its labels."""
        values = [
            float(line.rpartition(" ")[2])
            for line in self.page("metrics").splitlines()
            if line.startswith((name + " ", name + "{"))
        ]
        return sum(values)

    def metrics(self, of: str, namespace: str, name: str) -> dict[str, float]:
        """What metrics show of an object, by the last part of their names. of: backup, cluster or restore."""
        prefix, found = f"etcd_operator_{of}_", {}
        for line in self.page("metrics").splitlines():
            if line.startswith(prefix) and f'name="{name}",namespace="{namespace}"' in line:
                sample, _, value = line.rpartition(" ")
                found[sample.partition("{")[0].removeprefix(prefix)] = float(value)
        return found


def configured_kind() -> str:
    """`deployment` or `process`."""
    kind = os.environ.get("ETCD_OPERATOR_E2E_OPERATOR", "deployment")
    if kind not in ("deployment", "process"):
        raise ValueError(f"ETCD_OPERATOR_E2E_OPERATOR must be deployment or process, not {kind!r}")
    return kind


class DeployedOperator(Operator):
    """The Deployment `etcd-operator`, as manifests/deployment.yaml makes it."""

    NAME = "etcd-operator"
    NAMESPACE = "etcd-operator"

    def __init__(self, testbed: Testbed, kubectl: Kubectl, namespace: str = NAMESPACE) -> None:
        self._testbed = testbed
        self._namespace = namespace
        self._kubectl = kubectl.within(namespace)
        try:
            account = self._kubectl.json("get", "deployment", self.NAME)["spec"]["template"]["spec"]
        except KubectlError as error:
            raise TestbedError(f"{error}: deploy the operator first: hack/deploy") from error
        self.user = f"system:serviceaccount:{namespace}:{account['serviceAccountName']}"

    def address(self) -> str:
        pods = [pod for pod in self.pods() if pod.get("status", {}).get("podIP")]
        return f"{pods[0]['status']['podIP']}:8080" if pods else ""

    def log(self) -> str:
        texts = [
            self._kubectl("logs", pod["metadata"]["name"], *extra, check=False)
            for pod in self.pods()
            for extra in (["--previous"], [])
        ]
        return "\n".join(texts)

    def incarnation(self) -> str:
        return " ".join(
            f"{pod['metadata']['uid']}:{status.get('restartCount')}"
            for pod in self.pods()
            for status in pod["status"].get("containerStatuses", [])
        )

    def kill(self) -> None:
        """The pod is deleted as well: a container that is killed often is restarted more and more slowly."""
        for pod in self.pods():
            if pod["status"]["phase"] == "Running":
                self.kill_one(pod["metadata"]["name"])
            else:
                self._delete(pod["metadata"]["name"])

    def kill_one(self, pod: str) -> None:
        """Kill the process in one of its pods, and let another pod take its place."""
        with contextlib.suppress(TestbedError):  # it has ended, or not begun, by itself
            self._testbed.fault("kill", f"{self._namespace}/{pod}", self.NAME)
        self._delete(pod)

    def kill_process(self) -> None:
        """SIGKILL, and nothing else: the kubelet starts its container again, at once the first time."""
        for pod in self.pods():
            with contextlib.suppress(TestbedError):  # it has ended, or not begun, by itself
                self._testbed.fault("kill", f"{self._namespace}/{pod['metadata']['name']}", self.NAME)

    def delete_by_force(self) -> None:
        """Take its pods out of the API without waiting for the kubelet."""
        names = [pod["metadata"]["name"] for pod in self.pods()]
        if names:
            self._delete(*names, "--force", "--grace-period=0")

    def _delete(self, *arguments: str) -> None:
        """Delete pods, some of which may have ended by themselves."""
        self._kubectl("delete", "pod", *arguments, "--ignore-not-found", "--wait=false")

    def silence_and_delete(self) -> None:
        """Delete by force what can neither act, nor renew its Lease, nor release it any more."""
        for pod in self.pods():
            name = f"{self._namespace}/{pod['metadata']['name']}"
            self._testbed.fault("freeze", name, self.NAME)
        self.delete_by_force()

    def renew(self) -> None:
        """A new pod, ready, whose container has never ended, and which leads."""
        self.stop()
        self.start()
        wait_until(lambda: self.metric("leader_election_master_status") == 1, "it leads")

    def stop(self) -> None:
        self.scale(0)

    def start(self) -> None:
        self.scale(1)

    def scale(self, replicas: int) -> None:
        """Run so many, and wait until they do (those that are ready may include none that leads)."""
        self._kubectl("scale", "deployment", self.NAME, f"--replicas={replicas}")

        def is_done() -> bool:
            pods = self.pods(with_deleted=True)
            ready = [pod for pod in pods if is_ready(pod)]
            return len(pods) == len(ready) == replicas

        wait_until(is_done, f"{replicas} operators run")

    def pods(self, *, with_deleted: bool = False) -> list[dict[str, Any]]:
        """Its pods, oldest first."""
        selector = self._kubectl.json("get", "deployment", self.NAME)["spec"]["selector"]["matchLabels"]
        labels = ",".join(f"{key}={value}" for key, value in selector.items())
        pods = self._kubectl.json("get", "pods", "-l", labels)["items"]
        pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        return [pod for pod in pods if with_deleted or "deletionTimestamp" not in pod["metadata"]]
