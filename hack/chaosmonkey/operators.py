"""The operator's pods: who leads, how one is killed, and whether one ended by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from e2e.support.api import Api
from e2e.support.waiting import wait_until
from etcd_operator.errors import NotFound, OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from localcluster.console import RefusalError
from localcluster.kubectl import Kubectl

from .logs import Follower, Scan, scan
from .schedule import FaultKind

NAME = "etcd-operator"
DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments", kind="Deployment")

OBSERVE_SECONDS = 0.5
READY_SECONDS = 120.0

Pod = dict[str, Any]
Signal = Callable[[str, str], object]
"""Kills the process of a container: `NAMESPACE/POD`, container."""


class Operators:
    """Watches the Deployment `etcd-operator` of a namespace; use it in a `with`.

    `takeovers` are the seconds from the killing of a leader to the next holder of the Lease.
    """

    def __init__(self, api: Api, kubectl: Kubectl, namespace: str, folder: Path, signal: Signal) -> None:
        self._api = api
        self._namespace = namespace
        self._kubectl = kubectl.within(namespace)
        self._signal = signal
        self._follower = Follower(self._kubectl, folder)
        self._selector = self._find_selector()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="operators")
        self._lock = threading.Lock()
        self._killed: set[str] = set()
        self._first_restarts: dict[str, int] = {}
        self._restarts: dict[str, str] = {}
        self._holder = ""
        self._leaderless_since: float | None = None
        self._changes = 0
        self.takeovers: list[float] = []

    def __enter__(self) -> Operators:
        self._observe()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        self._follower.stop()

    @property
    def is_watching(self) -> bool:
        """Whether nothing has ended the watch before its time."""
        return self._thread.is_alive()

    @property
    def changes(self) -> int:
        """How often another process has become the leader."""
        return self._changes

    def ready(self) -> tuple[int, int]:
        """How many pods are ready, and how many are declared."""
        found = self._deployment()
        return int(found.get("status", {}).get("readyReplicas", 0)), int(found["spec"]["replicas"])

    def wait_ready(self) -> None:
        """Wait until all declared pods are ready, and one leads."""

        def is_ready() -> bool:
            try:
                ready, wanted = self.ready()
            except OperatorError:
                return False
            return ready == wanted and self._leaderless_since is None

        wait_until(is_ready, "the operator is ready and leads", within=READY_SECONDS, every=OBSERVE_SECONDS)

    def kill(self, kind: FaultKind, draw: float) -> str:
        """Kill the pod that leads (if none is known to, the one that `draw` picks); what was done."""
        pods = [pod for pod in self._pods() if pod["status"].get("phase") == "Running"]
        if not pods:
            return ""
        leaders = [pod for pod in pods if self._leads(pod)]
        target = leaders[0] if leaders else pods[int(draw * len(pods))]
        name = str(target["metadata"]["name"])
        with self._lock:
            self._killed.add(target["metadata"]["uid"])
            if leaders and self._leaderless_since is None:
                self._leaderless_since = time.monotonic()
        if kind is FaultKind.KILL:
            self._signal(f"{self._namespace}/{name}", NAME)
        # The pod is deleted as well: a container that is killed often is restarted more and more slowly.
        self._delete(name, grace_seconds=0 if kind is FaultKind.KILL else None)
        return f"{name}{' [leader]' if leaders else ''}"

    def ended_by_themselves(self) -> list[str]:
        """Pods whose container was restarted though they were not killed."""
        with self._lock:
            return sorted(self._restarts.values())

    def log(self) -> Scan:
        """All that the operator has written since the beginning."""
        for pod in self._pods():
            name = pod["metadata"]["name"]
            self._follower.save(name, self._kubectl("logs", name, check=False))
        return scan(self._follower.lines())

    def _find_selector(self) -> str:
        found = self._deployment()
        labels = found["spec"]["selector"]["matchLabels"]
        return ",".join(f"{key}={value}" for key, value in labels.items())

    def _deployment(self) -> dict[str, Any]:
        found = self._api.get(DEPLOYMENTS, self._namespace, NAME)
        if found is None:
            raise RefusalError(
                f"there is no Deployment {NAME} in namespace {self._namespace}; run: hack/deploy"
            )
        return found

    def _pods(self) -> list[Pod]:
        pods = self._api.all_of(resources.PODS, self._namespace, self._selector)
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def _leads(self, pod: Pod) -> bool:
        return self._holder.startswith(f"{pod['metadata']['name']}_")

    def _delete(self, name: str, *, grace_seconds: int | None) -> None:
        key = Key(self._namespace, name)
        try:
            self._api.client.delete(resources.PODS, key, grace_seconds=grace_seconds)
        except NotFound:
            return

    def _watch(self) -> None:
        while not self._stop.wait(OBSERVE_SECONDS):
            try:
                self._observe()
            except OperatorError:
                continue  # the API server is away

    def _observe(self) -> None:
        lease = self._api.get(resources.LEASES, self._namespace, NAME) or {}
        self._note_holder(str(lease.get("spec", {}).get("holderIdentity") or ""))
        followed, pods = [], self._pods()
        with self._lock:
            for pod in pods:
                name, uid = str(pod["metadata"]["name"]), str(pod["metadata"]["uid"])
                statuses = pod["status"].get("containerStatuses", [])
                count = sum(int(status["restartCount"]) for status in statuses)
                again = count - self._first_restarts.setdefault(uid, count)
                if again and uid not in self._killed:
                    self._restarts[uid] = f"{name} ({again} times)"
                if any("running" in status.get("state", {}) for status in statuses):
                    followed.append((name, f"{uid} {count}"))
        self._follower.follow(followed)

    def _note_holder(self, holder: str) -> None:
        if holder in ("", self._holder):
            return
        with self._lock:
            if self._holder:
                self._changes += 1
            self._holder = holder
            if self._leaderless_since is not None:
                self.takeovers.append(time.monotonic() - self._leaderless_since)
                self._leaderless_since = None
