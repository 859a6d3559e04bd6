"""The floor of membership changes: a cluster that is kept by hand, with the steps that etcd requires.

One client, no operator: register a learner, make its objects, promote it; move the leader, remove a member,
delete its objects. It never waits for longer than etcd and Kubernetes make it wait. Members of a persistent
cluster are a claim and a ReplicaSet of one pod each, as the operator's are, so that pods come back.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from benchmark import floor
from benchmark.bed import POLL_SECONDS, Bed, Document
from e2e.support.clusters import COREOS
from e2e.support.members import Members
from e2e.support.waiting import wait_until
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining
from etcd_operator.controllers.shared.manifests.urls import PEER_PORT, url
from etcd_operator.errors import Unavailable
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.errors import NotInSync, UnhealthyCluster
from etcd_operator.kube import resources

T = TypeVar("T")

STEP_SECONDS = 60.0


class ByHand:
    """A cluster of plain etcd; `document` has its kind and its first size."""

    def __init__(self, bed: Bed, document: Document, namespace: str) -> None:
        self._bed = bed
        self._document = document
        self._namespace = namespace
        self._is_persistent = document["apiVersion"] != COREOS
        self._blueprint = floor.Blueprint(document, namespace)
        self._names = list(self._blueprint.initial_members)
        self._next = len(self._names)

    def create(self) -> None:
        """Make the initial members."""
        floor.create(self._bed.api, self._blueprint.objects(with_replica_sets=True), self._namespace)

    def resize(self, size: int) -> None:
        """Do one step after the other; returns when the last is requested, not when all is done."""
        with Members() as members:
            while len(self._names) < size:
                self._add(members)
            while len(self._names) > size:
                self._take_out(members, self._names[-1] if self._is_persistent else self._names[0])

    def replace(self, name: str) -> None:
        """Another member instead of `name`, whose pod is deleted."""
        with Members() as members:
            self._take_out(members, name)
            self._add(members)

    def _add(self, members: Members) -> None:
        name = self._blueprint.name_of(len(self._names) if self._is_persistent else self._next)
        self._next += 1
        peer_url = url(self._blueprint.host_of(name), PEER_PORT)
        leader = self._leader(members)
        added = _soon(lambda: leader.member_add((peer_url,), learner=True), UnhealthyCluster)
        start = Joining(members=(*self._names, name), token=floor.BOOTSTRAP)
        made = self._blueprint.member(name, start, with_replica_sets=True)
        floor.create(self._bed.api, made, self._namespace)
        self._names.append(name)
        _soon(lambda: leader.member_promote(added.id), NotInSync, Unavailable)

    def _take_out(self, members: Members, name: str) -> None:
        self._names.remove(name)
        leader = self._leader(members, but=name)
        listed = {member.name: member.id for member in leader.member_list(linearizable=True).members}
        _soon(lambda: leader.member_remove(listed[name]), UnhealthyCluster)
        kinds = [resources.PODS, resources.SERVICES]
        if self._is_persistent:
            kinds = [resources.REPLICA_SETS, resources.CLAIMS]
            for pod in self._pods(name):
                self._bed.api.delete(resources.PODS, self._namespace, pod["metadata"]["name"])
        for kind in kinds:
            self._bed.api.delete(kind, self._namespace, name)

    def _leader(self, members: Members, but: str = "") -> EtcdClient:
        """The leader; one that is to be removed moves its leadership first."""
        clients = {name: members.client(address) for name, address in self._addresses().items()}
        by_id = {client.status().member_id: name for name, client in clients.items()}

        def known() -> str:
            """A leader whose pod was just deleted is reported for a moment longer."""
            named = next(iter(clients.values())).status().leader
            return named if named in by_id else ""

        leader = wait_until(known, "an existing member leads", within=STEP_SECONDS, every=POLL_SECONDS)
        if by_id.get(leader) != but:
            return clients[by_id[leader]]
        transferee_id, transferee = next(
            (number, name) for number, name in by_id.items() if name in self._names
        )
        clients[but].move_leader(transferee_id)
        return clients[transferee]

    def _addresses(self) -> dict[str, str]:
        """The addresses of the members whose pods are not being deleted."""
        pods = self._bed.api.member_pods(self._document, self._namespace)
        return {
            self._blueprint.member_of(pod): pod["status"]["podIP"]
            for pod in pods
            if pod.get("status", {}).get("podIP")
        }

    def _pods(self, name: str) -> list[dict[str, Any]]:
        pods = self._bed.api.member_pods(self._document, self._namespace)
        return [pod for pod in pods if self._blueprint.member_of(pod) == name]


def _soon(call: Callable[[], T], *not_yet: type[Exception]) -> T:
    """The answer of `call`, tried again at once while etcd refuses it as too early."""
    answer: list[T] = []

    def is_done() -> bool:
        try:
            answer.append(call())
        except not_yet:
            return False
        return True

    wait_until(is_done, "etcd allows the change", within=STEP_SECONDS, every=POLL_SECONDS)
    return answer[0]
