"""The acting half of a recovery: what is made sure live, and what is done to seed and survivors.

A recovery cannot be preceded by a read through a quorum: there is none. Instead the very
facts that it rests on are read again, live, right before its marker is written: the lost
pods are not there, and no survivor knows of voters that could still elect a leader
(`core.rules.quorum_lost` says why that is a proof). From then on each act is preceded by a
linearizable read at the seed.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from etcd_operator.api.meta import RawObject
from etcd_operator.build import seed
from etcd_operator.build.urls import CLIENT_PORT, endpoint, host_of
from etcd_operator.core.actions import ConfirmLoss, OpenSeed, RecoveryAction, RetireMember, SealSeed
from etcd_operator.core.desired import DesiredCluster, Record
from etcd_operator.core.members import Answer, Member, quorum
from etcd_operator.core.state import ClusterState
from etcd_operator.errors import Conflict, NotFound, Unavailable
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient, OnCall
from etcd_operator.etcd.values import Member as Listed
from etcd_operator.etcd.values import hex_id
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Pod, Service

DEADLINE = 2.0
"""Seconds for one call to etcd."""

Report = Callable[[str, str], None]
Wrote = Callable[[Resource, Key, str], None]
"""Told of every write: resource, key, the new resourceVersion."""

MemberAt = Callable[[DesiredCluster, str], str]
"""The member that peers reach under a host name (see `dialects.base`)."""


def of_one_history(record: Record, answers: dict[str, Answer]) -> dict[str, Answer]:
    """While a recovery is under way: without seeds of earlier attempts, which never served anybody."""
    recovery = record.recovery
    if recovery is None or not record.is_recovering:
        return answers
    return {
        name: answer
        for name, answer in answers.items()
        if name == recovery.seed or answer.cluster_id == recovery.replaces
    }


def tellers_of(record: Record, answers: Iterable[Answer]) -> list[Answer]:
    """Whose member list counts: never that of the old cluster once the new one tells its own."""
    answers = list(answers)
    if record.recovery is None:
        return answers
    new = [answer for answer in answers if answer.cluster_id != record.recovery.replaces]
    return new or answers


@dataclass(frozen=True, kw_only=True)
class Recoverer:
    """Carries out the actions of a recovery of one cluster."""

    client: Client
    channels: Channels
    on_call: OnCall
    state: ClusterState
    member_at: MemberAt
    wrote: Wrote
    report: Report

    def act(self, action: RecoveryAction) -> None:
        """Do it. Raises Conflict when the world is not as the plan saw it."""
        match action:
            case ConfirmLoss():
                self._confirm(action)
            case SealSeed():
                self._assert_serves(action.name, action.revision)
                self._patch(action.name, "annotations", seed.SEALED)
            case RetireMember():
                self._assert_serves(action.seed, 0)
                self._retire(action.name)
            case OpenSeed():
                self._patch(action.name, "labels", seed.opened(self.state.desired))
            case _:
                assert_never(action)

    def _confirm(self, action: ConfirmLoss) -> None:
        for name in action.gone:
            found = self._pod(name)
            if found is not None and found.status.phase not in ("Failed", "Succeeded"):
                raise Conflict(f"{name} is there after all: not recovering")
        for name, uid in action.survivors:
            found = self._pod(name)
            if (
                found is None
                or found.metadata.uid != uid
                or found.metadata.deletion_timestamp is not None
                or not found.status.pod_ip
            ):
                raise Conflict(f"{name} is not what it was: not recovering")
            self._assert_cannot_elect(name, found.status.pod_ip, action.gone)
        self.report("QuorumLost", action.message)

    def _assert_cannot_elect(self, name: str, ip: str, gone: tuple[str, ...]) -> None:
        """Whatever the caches showed: by this member's own list, too few voters can be left."""
        listed = self._etcd(ip).member_list(linearizable=False)
        voters = [self._name_of(member) for member in listed.members if not member.is_learner]
        is_other = hex_id(listed.cluster_id) != self.state.record.cluster_id
        if is_other or sum(voter not in gone for voter in voters) >= quorum(len(voters)):
            raise Conflict(f"{name} knows of voters that may still elect a leader: not recovering")

    def _name_of(self, member: Listed) -> str:
        hosts = (self.member_at(self.state.desired, host_of(peer_url)) for peer_url in member.peer_urls)
        return member.name or next(hosts, "")

    def _assert_serves(self, name: str, revision: int) -> None:
        """A linearizable read at the seed: it leads a cluster of its own, with all that was to be saved."""
        pod = self._member(name).pod
        if pod is None or not pod.ip:
            raise Unavailable(f"{name} has no address")
        etcd = self._etcd(pod.ip)
        listed = etcd.member_list(linearizable=True)
        names = [self._name_of(member) for member in listed.members]
        recovery = self.state.record.recovery
        is_new = recovery is not None and hex_id(listed.cluster_id) != recovery.replaces
        if not is_new or names != [name] or etcd.status().revision < revision:
            raise Conflict(f"{name} does not serve the recovered data: nothing of the old cluster is touched")

    def _retire(self, name: str) -> None:
        member = self._member(name)
        if member.pod is not None and not member.pod.is_terminating:
            self._delete(resources.PODS, name, member.pod.uid)
            self.report("PodRemoved", f"removed Pod {name} of the cluster that was lost")
        if not member.has_service:
            return
        with suppress(NotFound):
            service = self.client.get(resources.SERVICES, self._key(name), Service)
            if service.metadata.controller_uid == self.state.desired.uid:
                self._delete(resources.SERVICES, name, service.metadata.uid)

    def _delete(self, resource: Resource, name: str, uid: str) -> None:
        with suppress(NotFound):
            self.client.delete(resource, self._key(name), uid=uid)

    def _patch(self, name: str, field: str, values: dict[str, str]) -> None:
        """Edit the pod that was seen, not one that has taken its name."""
        pod = self._member(name).pod
        if pod is None:
            raise Unavailable(f"{name} has no pod")
        patch: list[RawObject] = [{"op": "test", "path": "/metadata/uid", "value": pod.uid}]
        patch += [
            {"op": "add", "path": f"/metadata/{field}/{key}", "value": text} for key, text in values.items()
        ]
        written = self.client.patch(resources.PODS, self._key(name), patch, Pod, kind=PatchKind.JSON)
        self.wrote(resources.PODS, self._key(name), written.metadata.resource_version)

    def _pod(self, name: str) -> Pod | None:
        try:
            return self.client.get(resources.PODS, self._key(name), Pod)
        except NotFound:
            return None

    def _member(self, name: str) -> Member:
        return self.state.by_name.get(name) or Member(name=name)

    def _etcd(self, ip: str) -> EtcdClient:
        at = endpoint(ip, CLIENT_PORT)
        return EtcdClient(self.channels, at, deadline=DEADLINE, on_call=self.on_call)

    def _key(self, name: str) -> Key:
        return Key(self.state.desired.namespace, name)
