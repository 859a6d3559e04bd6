"""The kubelets of the fake Kubernetes, and the scheduler: they start, restart and end what runs in pods.

What runs inside a pod is the test's: `on_start` is called with each container that starts (also when it is
restarted with another image), `on_stop` with each that ends; neither raises. Pods run on nodes that are `up`.
An image in `unpullable` cannot be pulled: a container that is to run it ends and waits. The volumes of a pod
whose name begins as one in `unmountable` cannot be mounted: it is created without end.
Not modelled: scheduling constraints, probes, restarts by exit code, Jobs.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from unit.fakes import added
from unit.fakes.apiserver import ApiServer, Json
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.fakes.apiserver.store import copied
from unit.fakes.containers import Running, claims_of, main_of, rendered

NODES = ("node-1", "node-2", "node-3")


Handler = Callable[[Running], None]
"""Called with each container that starts, or ends."""


def ignore(_running: Running) -> None:
    """For worlds whose containers are empty."""


Prepare = Callable[[Running], tuple[int, str]]
"""Runs init containers: how many have ended well, and why the next one has not; empty when all have."""


def nothing_to_prepare(running: Running) -> tuple[int, str]:
    """For worlds whose init containers are empty."""
    return len(running.init), ""


class Addresses:
    """Of pods, from a /16 network. used: how many have been given."""

    def __init__(self, prefix: str = "10.244", used: int = 0) -> None:
        self.used = used
        self._prefix = prefix

    def new(self) -> str:
        """One that nobody had before."""
        self.used += 1
        return f"{self._prefix}.{self.used // 250}.{self.used % 250 + 1}"


class Kubelets:
    """All of them, on the objects of `api`."""

    def __init__(
        self,
        api: ApiServer,
        *,
        on_start: Handler = ignore,
        on_stop: Handler = ignore,
        on_init: Prepare = nothing_to_prepare,
        nodes: tuple[str, ...] = NODES,
        addresses: Addresses | None = None,
    ) -> None:
        self.up = set(nodes)
        self.unpullable: set[str] = set()
        self.unmountable: set[str] = set()
        self._objects = api.objects
        self._nodes = nodes
        self._on_start, self._on_stop, self._on_init = on_start, on_stop, on_init
        self.reports: dict[str, str] = {}
        self._running: dict[str, Running] = {}
        self._addresses = addresses or Addresses()

    @property
    def running(self) -> list[Running]:
        """What runs now, by pod."""
        return sorted(self._running.values(), key=lambda running: (running.namespace, running.pod))

    def run_pods(self) -> None:
        """Start pods that are neither ending nor ended, have a node that is up and their claims bound."""
        for pod in self._objects.select(PODS):
            ended = pod["status"]["phase"] in ("Failed", "Succeeded")
            if ended or pod["metadata"].get("deletionTimestamp") or not self._claims_are_bound(pod):
                continue
            running = self._running.get(pod["metadata"]["uid"])
            if main_of(pod)["image"] in self.unpullable:
                self._wait_for_image(pod, running)
            elif running is None:
                self._start(pod)
            elif running.node in self.up and running.image != main_of(pod)["image"]:
                self._restart(pod, running)
            elif running.node in self.up:
                self._run_added(pod)

    def _wait_for_image(self, pod: Json, running: Running | None) -> None:
        main = main_of(pod)
        if running is not None and running.image != main["image"]:
            self._on_stop(running)
            self._running[running.uid] = replace(running, image=main["image"])
        waiting = {"reason": "ErrImagePull", "message": f"no such image: {main['image']}"}
        restarts = running.restarts if running is not None else 0
        status = {"name": main["name"], "restartCount": restarts, "ready": False}
        self._report(pod, {"containerStatuses": [{**status, "state": {"waiting": waiting}}]})

    def end_pods(self) -> None:
        """End what is being or has been deleted, where the node is up to do it."""
        there = {pod["metadata"]["uid"]: pod for pod in self._objects.select(PODS)}
        for uid, running in list(self._running.items()):
            pod = there.get(uid)
            if running.node in self.up and (pod is None or pod["metadata"].get("deletionTimestamp")):
                self._stop(uid)
        for pod in there.values():
            meta = pod["metadata"]
            if meta.get("deletionTimestamp") and pod["spec"].get("nodeName") in self.up:
                self._objects.delete(PODS, meta["namespace"], meta["name"], uid=meta["uid"], grace=0)

    def fail(self, namespace: str, name: str) -> None:
        """End a pod for good: its phase is Failed, as after an eviction by its kubelet."""
        pod = self._objects.get(PODS, namespace, name)
        self._stop(pod["metadata"]["uid"])
        self._report(pod, {"phase": "Failed", "reason": "Evicted"})

    def restart(self, namespace: str, name: str) -> None:
        """End and start the container of a pod in place: same pod, same address, same volumes."""
        pod = self._objects.get(PODS, namespace, name)
        self._restart(pod, self._running[pod["metadata"]["uid"]])

    def _start(self, pod: Json) -> None:
        node = pod["spec"].get("nodeName") or self._choose_node(pod)
        if node not in self.up:
            return
        meta = pod["metadata"]
        if not pod["spec"].get("nodeName"):
            self._assign(pod, node)
        if any(meta["name"].startswith(name) for name in self.unmountable):
            self._report(self._objects.get(PODS, meta["namespace"], meta["name"]), _creating(pod))
            return
        ip = pod["status"].get("podIP") or self._addresses.new()
        running = rendered(pod, ip, node, 0)
        done, failure = self._on_init(running)
        prepared = _init_status(pod, done, failure, self.reports.get(running.uid, ""))
        placed = self._objects.get(PODS, meta["namespace"], meta["name"])
        if failure:
            self._report(placed, {"phase": "Pending", "podIP": ip, **prepared})
            return
        self._begin(pod, running)
        self._report(placed, {**self._running_status(pod, ip, 0), **prepared})

    def _restart(self, pod: Json, running: Running) -> None:
        self._stop(running.uid)
        restarts = running.restarts + 1
        self._begin(pod, rendered(pod, running.ip, running.node, restarts))
        self._report(pod, self._running_status(pod, running.ip, restarts))

    def _running_status(self, pod: Json, ip: str, restarts: int) -> dict[str, Any]:
        main = main_of(pod)
        status = {
            "name": main["name"],
            "image": main["image"],
            "ready": True,
            "restartCount": restarts,
            "state": {"running": {"startedAt": self._objects.stamp()}},
        }
        return {
            "phase": "Running",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")],
            "containerStatuses": [status],
        }

    def _run_added(self, pod: Json) -> None:
        before = pod["status"].get("ephemeralContainerStatuses") or []
        found = added.started(pod, self.unpullable, self._objects.stamp())
        if found != before:
            self._report(pod, {"ephemeralContainerStatuses": found})

    def end_added(self, namespace: str, name: str, code: int = 0) -> None:
        """The processes of the ephemeral containers of a pod end by themselves, with that exit code."""
        pod = self._objects.get(PODS, namespace, name)
        now = self._objects.stamp()
        self._report(pod, {"ephemeralContainerStatuses": added.ended(pod, now, code)})

    def _choose_node(self, pod: Json) -> str:
        """The node with the fewest pods among those that are up; empty when there is none."""
        load = {node: 0 for node in self._nodes if node in self.up}
        for running in self._running.values():
            if running.node in load:
                load[running.node] += 1
        return min(load, key=lambda node: load[node], default="")

    def _assign(self, pod: Json, node: str) -> None:
        # the real scheduler writes through the `binding` subresource, which may change the spec
        bound = copied(pod)
        bound["spec"]["nodeName"] = node
        with self._objects.store.changed:
            self._objects.store.put(PODS, bound)

    def _begin(self, pod: Json, running: Running) -> None:
        self._running[pod["metadata"]["uid"]] = running
        self._on_start(running)

    def _stop(self, uid: str) -> None:
        running = self._running.pop(uid, None)
        if running is not None:
            self._on_stop(running)

    def _report(self, pod: Json, status: Json) -> None:
        meta = pod["metadata"]
        if "conditions" in status:
            # what others have set (readiness gates) is kept, as the kubelet does
            mine = {condition["type"] for condition in status["conditions"]}
            now = self._objects.get(PODS, meta["namespace"], meta["name"])["status"]
            others = [c for c in now.get("conditions") or () if c["type"] not in mine]
            status = {**status, "conditions": [*status["conditions"], *others]}
        self._objects.patch(
            PODS, meta["namespace"], meta["name"], {"status": status}, "merge", subresource="status"
        )

    def _claims_are_bound(self, pod: Json) -> bool:
        namespace = pod["metadata"]["namespace"]
        found = {claim["metadata"]["name"]: claim for claim in self._objects.select(CLAIMS, namespace)}
        return all(name in found and found[name]["status"]["phase"] == "Bound" for name in claims_of(pod))


def _creating(pod: Json) -> Json:
    """As long as its volumes are not mounted: no address, and no container has a reason but this one."""
    steps = pod["spec"].get("initContainers") or ()
    waiting = {"waiting": {"reason": "PodInitializing" if steps else "ContainerCreating"}}
    found = {"phase": "Pending", "containerStatuses": [{"name": main_of(pod)["name"], "state": waiting}]}
    if steps:
        found["initContainerStatuses"] = [{"name": step["name"], "state": waiting} for step in steps]
    return found


def _init_status(pod: Json, done: int, failure: str, report: str) -> Json:
    """How far the init containers are: those before `done` have ended, the next one has crashed.

    report: what the first one wrote as its termination message.
    """
    steps = pod["spec"].get("initContainers") or ()
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": failure}}
    ended: Json = {"terminated": {"reason": "Completed", "message": report}}
    states: list[Json] = [ended] * done + [waiting] * bool(failure)
    found = [
        {"name": step["name"], "state": state} for step, state in zip(steps, states, strict=False)
    ]  # those that come later have no status yet
    return {"initContainerStatuses": found} if steps else {}
