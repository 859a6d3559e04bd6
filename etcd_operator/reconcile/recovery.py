"""The acting half of a recovery: what is made sure live, and what is done to seed and survivors.

A recovery cannot be preceded by a read through a quorum: there is none. Instead the very
facts that it rests on are read again, live, right before its entry in status is written: the lost
pods are not there, and no survivor knows of voters that could still elect a leader
(`core.rules.quorum_lost` says why that is a proof). From then on each act is preceded by a
linearizable read at the seed.

What only persistent members need is at the end: the silence of those that a person gave up,
and the acts on peers and claims where ephemeral members have pods and services of their own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

import msgspec

from etcd_operator.api import improbable
from etcd_operator.api.meta import RawObject
from etcd_operator.api.persisted import Bootstrap
from etcd_operator.core.actions import (
    ConfirmLoss,
    ConfirmSilence,
    DropSeed,
    OpenSeed,
    RecoveryAction,
    RetireMember,
    SetSeedExistingOnly,
)
from etcd_operator.core.desired import DesiredCluster, PersistedState
from etcd_operator.core.kinds.persistent import PERSISTENT
from etcd_operator.core.members import Member, quorum
from etcd_operator.core.replies import Answer
from etcd_operator.core.rules.manual_recovery import name_of
from etcd_operator.core.starts import Resuming
from etcd_operator.core.state import ClusterState
from etcd_operator.errors import Conflict, NotFound, Unavailable
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient, OnCall
from etcd_operator.etcd.values import Member as Listed
from etcd_operator.etcd.values import MemberList, hex_id
from etcd_operator.kube import resources
from etcd_operator.kube.views import Pod, Service
from etcd_operator.reconcile.objects import Objects, Report
from etcd_operator.reconcile.removal import Removal
from etcd_operator.render import persistent, seed
from etcd_operator.render.steps import SEALED
from etcd_operator.render.urls import CLIENT_PORT, endpoint, host_of

DEADLINE = 2.0
"""Seconds for one call to etcd."""

MemberAt = Callable[[DesiredCluster, str], str]
"""The member that peers reach under a host name (see `dialects.base`)."""


def of_one_history(persisted: PersistedState, answers: dict[str, Answer]) -> dict[str, Answer]:
    """While a recovery is under way: without seeds of earlier attempts, which never served anybody."""
    recovery = persisted.recovery
    if recovery is None or not persisted.is_recovering:
        return answers
    return {
        name: answer
        for name, answer in answers.items()
        if name == recovery.seed or answer.cluster_id == recovery.replaces
    }


def authoritative(persisted: PersistedState, answers: Iterable[Answer]) -> list[Answer]:
    """Whose member list counts: that of the cluster on record, if any of it answers.

    But never that of the old cluster once the new one tells its own.
    """
    answers = list(answers)
    known = [answer for answer in answers if answer.cluster_id == persisted.cluster_id]
    if persisted.recovery is None or (known and not persisted.is_recovering):
        return known or answers
    new = [answer for answer in answers if answer.cluster_id != persisted.recovery.replaces]
    return new or answers


@dataclass(frozen=True, kw_only=True)
class Recoverer:
    """Carries out the actions of a recovery of one cluster."""

    objects: Objects
    channels: Channels
    on_call: OnCall
    state: ClusterState
    member_at: MemberAt
    now: datetime
    report: Report

    def act(self, action: RecoveryAction) -> None:
        """Do it. Raises Conflict when the world is not as the plan saw it."""
        match action:
            case ConfirmLoss():
                self._confirm(action)
            case ConfirmSilence():
                self._confirm_silence(action)
            case SetSeedExistingOnly():
                served = self._assert_serves(action.name, action.revision)
                self._patch(action.name, "annotations", SEALED)
                if self.state.kind is PERSISTENT:
                    self._set_peer_existing_only(action.name, served)
            case RetireMember():
                self._assert_serves(action.seed, 0)
                if action.keeps_claim:
                    self._keep_claim(action.name)
                whose = " of the cluster that was lost"
                self._remove(action.name, whose, keeps_claim=action.keeps_claim)
            case DropSeed():
                self._assert_old_quorum()
                self._remove(action.name, ", which is not needed any more")
            case OpenSeed() if self.state.kind is PERSISTENT:
                self._move_clients()
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
            self._assert_cannot_elect(name, self._ip_of(name, uid), action.gone)
        self.report("QuorumLost", action.message)

    def _ip_of(self, name: str, uid: str) -> str:
        """The address of a survivor, if it still is the pod that was seen."""
        found = self._pod(name)
        if (
            found is None
            or found.metadata.uid != uid
            or found.metadata.deletion_timestamp is not None
            or not found.status.pod_ip
        ):
            raise Conflict(f"{name} is not what it was: not recovering")
        return found.status.pod_ip

    def _assert_cannot_elect(self, name: str, ip: str, gone: tuple[str, ...]) -> None:
        """Whatever the caches showed: by this member's own list, too few voters can be left."""
        listed = self._etcd(ip).member_list(linearizable=False)
        voters = [self._name_of(member) for member in listed.members if not member.is_learner]
        is_other = hex_id(listed.cluster_id) != self.state.persisted.cluster_id
        if is_other or sum(voter not in gone for voter in voters) >= quorum(len(voters)):
            raise Conflict(f"{name} knows of voters that may still elect a leader: not recovering")

    def _name_of(self, member: Listed) -> str:
        hosts = (self.member_at(self.state.desired, host_of(peer_url)) for peer_url in member.peer_urls)
        return member.name or next(hosts, "")

    def _assert_serves(self, name: str, revision: int) -> MemberList:
        """A linearizable read at the seed: it leads a cluster of its own, with all that was to be saved."""
        etcd = self._etcd(self._address(name))
        listed = etcd.member_list(linearizable=True)
        names = [self._name_of(member) for member in listed.members]
        recovery = self.state.persisted.recovery
        is_new = recovery is not None and hex_id(listed.cluster_id) != recovery.replaces
        if not is_new or names != [name] or etcd.status().revision < revision:
            raise Conflict(f"{name} does not serve the recovered data: nothing of the old cluster is touched")
        return listed

    def _remove(self, name: str, whose: str, *, keeps_claim: bool = False) -> None:
        removal = Removal(objects=self.objects, state=self.state, report=self.report, whose=whose)
        removal.remove(name, keeps_claim=keeps_claim)

    def _patch(self, name: str, field: str, values: dict[str, str]) -> None:
        """Edit the pod that was seen, not one that has taken its name."""
        pod = self._member(name).pod
        if pod is None:
            raise Unavailable(f"{name} has no pod")
        changes: list[RawObject] = [
            {"op": "add", "path": f"/metadata/{field}/{key}", "value": text} for key, text in values.items()
        ]
        self.objects.edit(resources.PODS, pod.name, pod.uid, changes)

    def _pod(self, name: str) -> Pod | None:
        """A member's pod as it is now; that of a persistent member has a name of its own."""
        seen = self._member(name).pod
        key = self.objects.key(seen.name if seen is not None else name)
        try:
            return self.objects.client.get(resources.PODS, key, Pod)
        except NotFound:
            return None

    def _address(self, name: str) -> str:
        pod = self._member(name).pod
        if pod is None or not pod.ip:
            raise Unavailable(f"{name} has no address")
        return pod.ip

    def _member(self, name: str) -> Member:
        return self.state.by_name.get(name) or Member(name=name)

    def _etcd(self, ip: str) -> EtcdClient:
        at = endpoint(ip, CLIENT_PORT)
        return EtcdClient(self.channels, at, deadline=DEADLINE, on_call=self.on_call)

    # persistent members

    def _confirm_silence(self, action: ConfirmSilence) -> None:
        """No survivor follows a leader now: there is no quorum that they know of."""
        for name, uid in action.survivors:
            status = self._etcd(self._ip_of(name, uid)).status()
            if status.leader or hex_id(status.cluster_id) != self.state.persisted.cluster_id:
                raise Conflict(f"{name} follows a leader: not recovering")
        self.report("QuorumLost", action.message)

    def _assert_old_quorum(self) -> None:
        """A linearizable read at a member of the old cluster: nothing of it needs to be recovered."""
        old = self.state.persisted.cluster_id
        for member in self.state.answers:
            if member.answer is not None and member.answer.cluster_id == old and member.is_healthy:
                self._etcd(self._address(member.name)).member_list(linearizable=True)
                return
        raise Conflict("no quorum of the old cluster answers after all: its recovery goes on")

    def _set_peer_existing_only(self, name: str, served: MemberList) -> None:
        """First the peer: its next pod starts from the data. Then the claim: now there is no way back."""
        member, desired = self._member(name), self.state.desired
        recovery = self.state.persisted.recovery
        if member.peer is None or member.claim is None or recovery is None:
            raise Unavailable(f"{name} has no peer or no claim")
        if not member.claim.cluster_id:
            self._assert_leaderless(name)
        bootstrap = persistent.peer_bootstrap(desired, name, Resuming(token=recovery.token))
        spec = {"op": "replace", "path": "/spec/bootstrap", "value": msgspec.to_builtins(bootstrap)}
        self.objects.edit(resources.PEERS, name, member.peer.uid, [spec])
        member_id = hex_id(served.members[0].id)
        notes = {
            improbable.CLUSTER_ID_ANNOTATION: hex_id(served.cluster_id),
            improbable.MEMBER_ID_ANNOTATION: member_id,
            improbable.VOTERS_ANNOTATION: f"{name}={member_id}",
            improbable.VOTERS_REVISION_ANNOTATION: "1",
            improbable.VERSION_ANNOTATION: recovery.version,
        }
        changes: list[RawObject] = [
            {"op": "add", "path": f"/metadata/annotations/{key.replace('/', '~1')}", "value": text}
            for key, text in notes.items()
        ]
        self.objects.edit(resources.CLAIMS, name, member.claim.uid, changes)

    def _keep_claim(self, name: str) -> None:
        """From this write on the claim is nobody's: no rule sees it but to leave its number alone."""
        claim, recovery = self._member(name).claim, self.state.persisted.recovery
        if claim is None or recovery is None:
            return
        notes = {
            improbable.GIVEN_UP_ANNOTATION: name_of(recovery),
            improbable.GIVEN_UP_AT_ANNOTATION: self.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        change = {"metadata": {"uid": claim.uid, "annotations": notes}}
        self.objects.patch(resources.CLAIMS, name, change)
        self.report(
            "PVCKept",
            f"kept PersistentVolumeClaim {name} of the cluster that was lost: "
            "delete it when its data is not needed any more",
        )

    def _assert_leaderless(self, seed: str) -> None:
        """The last look before there is no way back: nobody of the old cluster follows a leader again."""
        for member in self.state.answers:
            if member.name != seed and self._etcd(self._address(member.name)).status().leader:
                raise Conflict(f"{member.name} follows a leader again: {seed} may not be needed")

    def _move_clients(self) -> None:
        """Clients, and peers that look for names, find the members of the new cluster from now on."""
        desired, recovery = self.state.desired, self.state.persisted.recovery
        found = self.objects.client.get(resources.SERVICES, self.objects.key(desired.name), Service)
        if found.metadata.controller_uid != desired.uid or recovery is None:
            raise Conflict(f"Service {desired.name} is not this cluster's")
        bootstrap = Bootstrap(members=(recovery.seed,), token=recovery.token)
        renewed = replace(desired, persisted=replace(desired.persisted, bootstrap=bootstrap))
        selector = persistent.client_service(renewed)["spec"]["selector"]
        change = {"op": "replace", "path": "/spec/selector", "value": selector}
        self.objects.edit(resources.SERVICES, desired.name, found.metadata.uid, [change])
