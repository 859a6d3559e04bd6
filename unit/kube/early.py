"""Operators in pods on a node, of which one holds a Lease and may have ended."""

import threading
from contextlib import suppress
from datetime import timedelta

import msgspec
import urllib3

from etcd_operator.kube.lease import Elector
from etcd_operator.kube.lease_record import Lease, Spec, document, micro_time
from etcd_operator.kube.own_pod import OwnPod
from unit.fakes.apiserver import ApiServer
from unit.fakes.apiserver.kinds import LEASES, NAMESPACES, NODES, PODS
from unit.fakes.apiserver.refusals import Refusal
from unit.kube.electors import Bench, SkewedClock
from unit.waiting import eventually

NODE = "node-1"
EARLY = 3.0
CALL = 2.0
"""The longest call that changes etcd's members."""


def pod(number: int) -> OwnPod:
    return OwnPod(uid=f"uid-{number}", name=f"operator-{number}", namespace="default", node=NODE)


class World(Bench):
    """Pods of operators on a node, which works by default."""

    def __init__(self, api: ApiServer, pool: urllib3.PoolManager) -> None:
        super().__init__(api, pool)
        api.objects.create(NAMESPACES, "", {"metadata": {"name": "kube-node-lease"}})
        api.objects.create(NODES, "", {"metadata": {"name": NODE}})
        self.node_is("True")
        self.renew_node()

    def start(self, name: str, own: OwnPod | None, *, skew: float = 0.0) -> Elector:
        """An operator begins to run; `own` is its pod, which is made unless it is there."""
        clock = SkewedClock(self.clock)
        clock.skew = timedelta(seconds=skew)
        return self.elector(name, clock, self._running(own) if own is not None else None)

    def rivals(self) -> tuple[Elector, Elector]:
        """Two operators in pods of their own, of which the first holds the Lease."""
        first, second = self.start("first", pod(1)), self.start("second", pod(2))
        first._attempt()
        return first, second

    def _running(self, own: OwnPod) -> OwnPod:
        """The pod with the UID that the API server gave it."""
        found = {each["metadata"]["name"]: each for each in self.api.objects.select(PODS, "default")}
        spec = {"nodeName": own.node, "containers": [{"name": "etcd-operator", "image": "i"}]}
        body = {"metadata": {"name": own.name}, "spec": spec}
        made = found.get(own.name) or self.api.objects.create(PODS, "default", body)
        return msgspec.structs.replace(own, uid=made["metadata"]["uid"])

    def delete_pod(self, own: OwnPod) -> None:
        """By force: it is gone at once, whatever its process does."""
        self.api.objects.delete(PODS, "default", own.name, grace=0)

    def node_is(self, ready: str) -> None:
        status = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
        self.api.objects.patch(NODES, "", NODE, status, "merge", subresource="status")

    def renew_node(self, age: float = 0.0) -> None:
        """The kubelet's own Lease, renewed `age` seconds ago."""
        renewed = micro_time(self.clock.now() - timedelta(seconds=age))
        spec = {"renewTime": renewed, "leaseDurationSeconds": 40, "holderIdentity": NODE}
        with suppress(Refusal):
            self.api.objects.delete(LEASES, "kube-node-lease", NODE)
        self.api.objects.create(LEASES, "kube-node-lease", {"metadata": {"name": NODE}, "spec": spec})

    def asked(self, elector: Elector) -> bool:
        """What an elector that does not run answers once its wait for a renewal is over."""
        answers: list[bool] = []
        asking = threading.Thread(target=lambda: answers.append(elector.leads_for(CALL)))
        asking.start()
        eventually(lambda: self.clock.waiting == 1 or bool(answers))
        self.clock.advance(EARLY - CALL)
        asking.join(30)
        (answer,) = answers
        return answer

    def seconds_until_taken(self, elector: Elector, *, others: tuple[Elector, ...] = ()) -> float:
        """Let time pass, a tenth of a second at a time, while `elector` tries and `others` renew."""
        for tenths in range(400):
            for other in others if tenths % 20 == 0 else ():
                other._attempt()
            elector._attempt()
            if elector.is_leader():
                return tenths / 10
            self.clock.advance(0.1)
        return float("inf")


def lease_of(holder: str | None, own: OwnPod | None, seconds: int | None = 15) -> Lease:
    body = document({"resourceVersion": "1"}, Spec(holder_identity=holder), own)
    return Lease(body["metadata"], Spec(holder_identity=holder, lease_duration_seconds=seconds))
