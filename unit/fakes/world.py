"""The rest of the cluster, one explicit step at a time: ReplicaSet controller, volume binder, kubelet.

Promises: nothing happens but in `step` (or the method called), on the caller's thread; the world writes past
HTTP, so its writes are neither in the log of requests nor subject to faults. Pods run on nodes that are `up`.
What runs inside a pod is the test's: `on_start` is told each container that starts (also when it is restarted
with another image), `on_stop` each that ends; raising nothing, returning nothing.
An image in `unpullable` cannot be had: a container that is to run it ends and waits.
Not modelled: scheduling constraints, probes, restarts by exit code, Jobs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unit.fakes.apiserver import ApiServer, Json
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS
from unit.fakes.apiserver.rules import CLAIM_PROTECTION
from unit.fakes.apiserver.store import copied

_NODE_IPS = "10.244"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The first container of a pod as the kubelet starts it: what an etcd in it would be given."""

    namespace: str
    pod: str
    uid: str
    ip: str
    node: str
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    claims: tuple[str, ...] = field(default=())
    restarts: int = 0
    init: tuple[tuple[str, ...], ...] = ()


Told = Callable[[Running], None]


def tell_nobody(_running: Running) -> None:
    """For worlds whose containers are empty."""


Prepare = Callable[[Running], tuple[int, str]]
"""Runs init containers: how many have ended well, and why the next one has not; empty when all have."""


def nothing_to_prepare(running: Running) -> tuple[int, str]:
    """For worlds whose init containers are empty."""
    return len(running.init), ""


class World:
    """What would act on the objects of `api` besides the operator."""

    def __init__(
        self,
        api: ApiServer,
        *,
        on_start: Told = tell_nobody,
        on_stop: Told = tell_nobody,
        on_init: Prepare = nothing_to_prepare,
        nodes: tuple[str, ...] = ("node-1", "node-2", "node-3"),
    ) -> None:
        self.up = set(nodes)
        self.binds_claims = True
        self.unpullable: set[str] = set()
        self._objects = api.objects
        self._nodes = nodes
        self._on_start, self._on_stop, self._on_init = on_start, on_stop, on_init
        self._running: dict[str, Running] = {}
        self._ips = 0

    def step(self) -> bool:
        """Everyone acts once, in the order in which causes precede effects; whether anything changed."""
        before = self._objects.store.revision
        self.replicate()
        self.bind()
        self.end_pods()
        self.run_pods()
        self.unprotect_claims()
        return self._objects.store.revision != before

    def settle(self, steps: int = 50) -> None:
        """Step until nothing changes; fails when that does not come."""
        for _ in range(steps):
            if not self.step():
                return
        raise AssertionError(f"the world did not settle in {steps} steps")

    @property
    def running(self) -> list[Running]:
        """What runs now, by pod."""
        return sorted(self._running.values(), key=lambda running: (running.namespace, running.pod))

    # the ReplicaSet controller

    def replicate(self) -> None:
        """Bring each ReplicaSet to its number of pods; those being deleted do not count."""
        for replica_set in self._objects.select(REPLICA_SETS):
            if not replica_set["metadata"].get("deletionTimestamp"):
                self._replicate(replica_set)

    def _replicate(self, replica_set: Json) -> None:
        meta, spec = replica_set["metadata"], replica_set["spec"]
        pods = self._claimed(replica_set)
        for _ in range(spec["replicas"] - len(pods)):
            self._objects.create(PODS, meta["namespace"], _pod_of(replica_set))
        pods.sort(key=lambda pod: (not _is_ready(pod), pod["metadata"]["creationTimestamp"]))
        for pod in pods[spec["replicas"] :]:
            self._objects.delete(PODS, meta["namespace"], pod["metadata"]["name"])
        patch = {"status": {"replicas": spec["replicas"], "observedGeneration": meta["generation"]}}
        self._objects.patch(
            REPLICA_SETS, meta["namespace"], meta["name"], patch, "merge", subresource="status"
        )

    def _claimed(self, replica_set: Json) -> list[Json]:
        """Its pods, once those without its labels are let go and those of nobody with them are taken."""
        meta, wanted = replica_set["metadata"], replica_set["spec"]["selector"]["matchLabels"]
        mine = []
        for pod in self._objects.select(PODS, meta["namespace"]):
            about = pod["metadata"]
            if about.get("deletionTimestamp") or pod["status"]["phase"] in ("Failed", "Succeeded"):
                continue
            owners = about.get("ownerReferences") or []
            owns = any(owner["uid"] == meta["uid"] for owner in owners)
            fits = wanted.items() <= (about.get("labels") or {}).items()
            if owns != fits and (owns or not owners):
                note = {"ownerReferences": _owners_of_pod(replica_set) if fits else []}
                self._objects.patch(PODS, meta["namespace"], about["name"], {"metadata": note}, "merge")
            if fits and (owns or not owners):
                mine.append(pod)
        return mine

    # the volume binder and the claim protection controller

    def bind(self) -> None:
        """Give each pending claim a volume of its own, unless `binds_claims` is off."""
        for claim in self._objects.select(CLAIMS):
            meta = claim["metadata"]
            if (
                claim["status"]["phase"] != "Pending"
                or meta.get("deletionTimestamp")
                or not self.binds_claims
            ):
                continue
            volume = {"spec": {"volumeName": f"pv-{meta['uid']}"}}
            self._objects.patch(CLAIMS, meta["namespace"], meta["name"], volume, "merge")
            status = {"status": {"phase": "Bound"}}
            self._objects.patch(
                CLAIMS, meta["namespace"], meta["name"], status, "merge", subresource="status"
            )

    def unprotect_claims(self) -> None:
        """Let deleted claims go that no pod uses."""
        for claim in self._objects.select(CLAIMS):
            meta = claim["metadata"]
            pods = self._objects.select(PODS, meta["namespace"])
            if not meta.get("deletionTimestamp") or any(meta["name"] in _claims(pod) for pod in pods):
                continue
            left = [name for name in meta.get("finalizers") or () if name != CLAIM_PROTECTION]
            patch = {"metadata": {"finalizers": left}}
            self._objects.patch(CLAIMS, meta["namespace"], meta["name"], patch, "merge")

    # the kubelets

    def run_pods(self) -> None:
        """Start pods that are neither ending nor ended, have a node that is up and their claims bound."""
        for pod in self._objects.select(PODS):
            ended = pod["status"]["phase"] in ("Failed", "Succeeded")
            if ended or pod["metadata"].get("deletionTimestamp") or not self._claims_are_bound(pod):
                continue
            running = self._running.get(pod["metadata"]["uid"])
            if _main(pod)["image"] in self.unpullable:
                self._wait_for_image(pod, running)
            elif running is None:
                self._start(pod)
            elif running.node in self.up and running.image != _main(pod)["image"]:
                self._restart(pod, running)

    def _wait_for_image(self, pod: Json, running: Running | None) -> None:
        main = _main(pod)
        if running is not None and running.image != main["image"]:
            self._on_stop(running)
            self._running[running.uid] = replace(running, image=main["image"])
        waiting = {"reason": "ErrImagePull", "message": f"no such image: {main['image']}"}
        restarts = running.restarts if running is not None else 0
        status = {"name": main["name"], "restartCount": restarts, "ready": False}
        self._report(pod, {"containerStatuses": [{**status, "state": {"waiting": waiting}}]})

    def end_pods(self) -> None:
        """End what is being deleted or gone, where the node is up to do it."""
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
        ip = pod["status"].get("podIP") or self._new_address()
        running = _rendered(pod, ip, node, 0)
        done, failure = self._on_init(running)
        prepared = _init_status(pod, done, failure)
        placed = self._objects.get(PODS, meta["namespace"], meta["name"])
        if failure:
            self._report(placed, {"phase": "Pending", "podIP": ip, **prepared})
            return
        self._begin(pod, running)
        self._report(placed, {**self._running_status(pod, ip, 0), **prepared})

    def _new_address(self) -> str:
        self._ips += 1
        return f"{_NODE_IPS}.{self._ips // 250}.{self._ips % 250 + 1}"

    def _restart(self, pod: Json, running: Running) -> None:
        self._stop(running.uid)
        restarts = running.restarts + 1
        self._begin(pod, _rendered(pod, running.ip, running.node, restarts))
        self._report(pod, self._running_status(pod, running.ip, restarts))

    def _running_status(self, pod: Json, ip: str, restarts: int) -> dict[str, Any]:
        main = _main(pod)
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
            # what others have set (readiness gates) stays, as the kubelet leaves it
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
        return all(name in found and found[name]["status"]["phase"] == "Bound" for name in _claims(pod))


def _pod_of(replica_set: Json) -> Json:
    meta, template = replica_set["metadata"], replica_set["spec"]["template"]
    own = {"generateName": meta["name"] + "-", "ownerReferences": _owners_of_pod(replica_set)}
    return {"metadata": {**(template.get("metadata") or {}), **own}, "spec": template["spec"]}


def _owners_of_pod(replica_set: Json) -> list[Json]:
    meta = replica_set["metadata"]
    owner = {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return [owner]


def _is_ready(pod: Json) -> bool:
    told = {c["type"]: c["status"] for c in pod["status"].get("conditions") or ()}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    return all(told.get(kind) == "True" for kind in ("Ready", *gates))


def _main(pod: Json) -> Json:
    container: Json = pod["spec"]["containers"][0]
    return container


def _claims(pod: Json) -> tuple[str, ...]:
    volumes = pod["spec"].get("volumes") or ()
    return tuple(v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v)


def _rendered(pod: Json, ip: str, node: str, restarts: int) -> Running:
    meta, main = pod["metadata"], _main(pod)
    fields = {"metadata.name": meta["name"], "metadata.namespace": meta["namespace"], "status.podIP": ip}
    # read at every start of the container, from the pod as it is then
    fields |= {f"metadata.annotations['{k}']": v for k, v in (meta.get("annotations") or {}).items()}

    def value(entry: Json) -> str:
        if "valueFrom" in entry:
            path: str = entry["valueFrom"]["fieldRef"]["fieldPath"]
            return str(fields.get(path, ""))
        return str(entry.get("value", ""))

    def environment(container: Json) -> dict[str, str]:
        return {entry["name"]: value(entry) for entry in container.get("env") or ()}

    def words(container: Json) -> tuple[str, ...]:
        found = [*(container.get("command") or ()), *(container.get("args") or ())]
        for name, text in environment(container).items():
            found = [word.replace(f"$({name})", text) for word in found]
        return tuple(found)

    return Running(
        namespace=meta["namespace"],
        pod=meta["name"],
        uid=meta["uid"],
        ip=ip,
        node=node,
        image=main["image"],
        command=words(main),
        env=environment(main),
        claims=_claims(pod),
        restarts=restarts,
        init=tuple(words(step) for step in pod["spec"].get("initContainers") or ()),
    )


def _init_status(pod: Json, done: int, failure: str) -> Json:
    """How far the init containers are: those before `done` have ended, the next one has crashed."""
    steps = pod["spec"].get("initContainers") or ()
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": failure}}
    states: list[Json] = [{"terminated": {"reason": "Completed"}}] * done + [waiting] * bool(failure)
    found = [
        {"name": step["name"], "state": state} for step, state in zip(steps, states, strict=False)
    ]  # those that come later have no status yet
    return {"initContainerStatuses": found} if steps else {}
