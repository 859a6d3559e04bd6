"""What is read live before the acts of a recovery: facts that differ from the plan keep it from acting.

No read through a quorum can precede a recovery: there is no quorum. Instead the facts that it rests on
are read again, live, right before its entry in status is written: the lost pods do not exist, and no
survivor knows of voters that could still elect a leader (`recovery.proof` explains why that is a
proof). From then on a linearizable read at the seed precedes each act.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from etcd_operator.api.backups import EtcdBackup
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    ConfirmLoss,
    ConfirmNothingLeft,
    ConfirmSilence,
    ReadMember,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import corrupt_ids
from etcd_operator.controllers.etcd_cluster.dialects.base import Dialect, client_endpoint
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.controllers.etcd_cluster.membership import DEADLINE
from etcd_operator.controllers.etcd_cluster.recovery.readers import Readers
from etcd_operator.controllers.shared.decide.backup_spec import is_restorable
from etcd_operator.controllers.shared.decide.clusters import is_member_name
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, endpoint, host_of
from etcd_operator.errors import Conflict, Unavailable
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient, OnCall
from etcd_operator.etcd.values import EtcdMember, MemberList, Status
from etcd_operator.kube import resources
from etcd_operator.kube.listing import Listing
from etcd_operator.kube.pod_views import Pod


@dataclass(frozen=True, kw_only=True)
class RecoveryProofs:
    """Of one cluster. All methods raise Conflict where the plan is outdated."""

    scope: Scope
    channels: Channels
    on_call: OnCall
    dialect: Dialect[Any]
    readers: Readers

    def confirm_loss(self, action: ConfirmLoss) -> None:
        """No quorum can return; report that."""
        for name in action.gone:
            found = self.pod(name)
            if found is not None and not found.is_finished:
                raise Conflict(f"{name} still exists: not recovering")
        for name, uid in action.survivors:
            at = self._endpoint_of(name, uid)
            self._assert_cannot_elect(name, at, (*action.gone, *action.silent))
            # It may have applied more of its log since it was observed.
            status = self._etcd(at).status()
            if action.below and name not in action.corrupt:
                _assert_behind(name, status.revision, action.below)
            if action.silent and status.leader:
                raise Conflict(f"{name} follows a leader: not recovering")
            self._assert_alarms_known(name, status)
        for member in action.read:
            self._confirm_read(member, action)
        self._assert_silent(action.silent, {uid for _, uid in action.survivors})
        self.scope.report("QuorumLost", action.message)

    def _confirm_read(self, member: ReadMember, action: ConfirmLoss) -> None:
        """The same for one that answers nobody."""
        report = self.readers.ask_again(self.scope, member, self.pod_as_seen(member.name, member.uid))
        voters = [self._name(each.name, each.peer_urls) for each in report.members if not each.is_learner]
        _assert_too_few(member.name, voters, (*action.gone, *action.silent))
        if action.below and member.name not in action.corrupt:
            _assert_behind(member.name, report.revision, action.below)

    def confirm_nothing_left(self, action: ConfirmNothingLeft) -> None:
        """By a live list: not by labels, which may be lost, but by owner and by name.

        A pod that cannot be read is one of a member only if its name is: a tenant's pods hold nothing up.
        """
        desired = self.scope.desired
        listed = self._list()
        if any(is_member_name(each.key.name, desired.name) for each in listed.unreadable):
            listed.whole()
        for pod in listed.items:
            name = pod.metadata.name
            is_ours = pod.metadata.controller_uid == desired.uid or is_member_name(name, desired.name)
            if is_ours and not pod.is_finished and name != action.kept:
                raise Conflict(f"{name} still exists: not recovering from a backup")
        if action.is_loss:
            self.scope.report("QuorumLost", action.message)

    def confirm_silence(self, action: ConfirmSilence) -> None:
        """Nobody follows a leader now, whatever the caches show of their pods."""
        for name, uid in action.survivors:
            status = self._etcd(self._endpoint_of(name, uid, may_leave=True)).status()
            if status.leader or status.cluster_id != self.scope.state.persisted.cluster_id:
                raise Conflict(f"{name} follows a leader: not recovering")
            self._assert_alarms_known(name, status)
        self._assert_silent(action.silent, {uid for _, uid in action.survivors})
        self._assert_no_voter(action.given_up, "not recovering")
        for member in action.read:
            pod = self.pod_as_seen(member.name, member.uid, may_leave=True)
            self.readers.ask_again(self.scope, member, pod)
        self._assert_backups_known()
        self.scope.report("QuorumLost", action.message)

    def _assert_backups_known(self) -> None:
        """The plan knew every EtcdBackup: a cache that was complete once may be hours behind.

        Where it could not know them, it has taken that into account.
        """
        desired, known = self.scope.desired, self.scope.state.backups
        if not known.is_listed:
            return
        listed = self.scope.objects.client.list(resources.BACKUPS, EtcdBackup, namespace=desired.namespace)
        uids = {backup.uid for backup in known.stored}
        for backup in listed.items if known.unreadable else listed.whole():
            if backup.metadata.uid not in uids and is_restorable(backup, desired.key):
                name = backup.metadata.name
                raise Conflict(f"the operator's cache does not show EtcdBackup {name} yet: not recovering")

    def _assert_alarms_known(self, name: str, status: Status) -> None:
        """The plan knew every alarm CORRUPT: one that was committed before the loss may be applied late."""
        unknown = status.corrupt - corrupt_ids(self.scope.state)
        if unknown:
            raise Conflict(f"{name} reports a new alarm CORRUPT for {', '.join(unknown)}: not recovering")

    def _assert_cannot_elect(self, name: str, at: str, gone: tuple[str, ...]) -> None:
        """Whatever the caches show: by this member's own list, too few voters are left."""
        listed = self._etcd(at).member_list(linearizable=False)
        voters = [self._name_of(member) for member in listed.members if not member.is_learner]
        if listed.cluster_id != self.scope.state.persisted.cluster_id:
            raise Conflict(f"{name} is a member of another etcd cluster: not recovering")
        _assert_too_few(name, voters, gone)

    def _assert_silent(self, names: tuple[str, ...], survivors: set[str]) -> None:
        """No pod of these members answers, whether or not it is in a cache."""
        for name in names:
            if any(self._answers(at) for at in self._endpoints_of(name, but=survivors)):
                raise Conflict(f"{name} answers again: not recovering")

    def _endpoints_of(self, name: str, *, but: Collection[str] = ()) -> list[str]:
        """Where the pods that a member has now serve clients. but: UIDs of pods that do not count."""
        found = (pod.status.pod_ip for pod in self._pods_of(name) if pod.metadata.uid not in but)
        return [self._known_at(name, ip) for ip in found if ip]

    def _known_at(self, name: str, ip: str) -> str:
        """Where a member serves clients; with TLS, nobody else is asked there."""
        at = endpoint(ip, CLIENT_PORT)
        self.channels.identify({at: self.dialect.member_host(self.scope.desired, name)})
        return at

    def _assert_no_voter(self, names: Iterable[str], consequence: str) -> None:
        """None of the pods that these members have now, in a cache or not, answers as a voter.

        A cache that is behind shows addresses of pods that are gone, and those that replaced them may serve.
        """
        for name in names:
            if any(self._is_voter(at) for at in self._endpoints_of(name)):
                raise Conflict(f"{name} answers again: {consequence}")

    def _is_voter(self, at: str) -> bool:
        """Whether a voter of the cluster on record answers; a learner reports its last leader for ever."""
        status = self._status(at)
        old = self.scope.state.persisted.cluster_id
        return status is not None and status.cluster_id == old and not status.is_learner

    def _answers(self, at: str) -> bool:
        return self._status(at) is not None

    def _status(self, at: str) -> Status | None:
        try:
            return self._etcd(at).status()
        except Unavailable:
            return None

    def assert_serves(self, name: str, revision: int) -> MemberList:
        """A linearizable read at the seed: it leads a cluster of its own, with all data of the survivor.

        Its pod is read live, too: one that is being deleted still answers.
        """
        etcd = self._etcd(self._endpoint_of(name, self.scope.pod(name).uid))
        listed = etcd.member_list(linearizable=True)
        names = [self._name_of(member) for member in listed.members]
        is_new = not self.scope.recovery.gives_up(listed.cluster_id)
        if not is_new or names != [name] or etcd.status().revision < revision:
            raise Conflict(f"{name} does not serve the recovered data: the old cluster is not changed")
        return listed

    def assert_old_quorum(self) -> None:
        """A linearizable read at a voter of the old cluster: nothing of it needs to be recovered."""
        for member in self._old_voters():
            if member.is_healthy:
                self._etcd(client_endpoint(member)).member_list(linearizable=True)
                return
        raise Conflict("no quorum of the old cluster answers: its recovery continues")

    def assert_leaderless(self, seed: str) -> None:
        """The last read before the point of no return: the old cluster is as it was when that was planned."""
        for member in self._old_voters():
            status, seen = self._etcd(client_endpoint(member)).status(), member.revision
            if status.leader or status.revision > seen:
                raise Conflict(f"{member.name} follows a leader, or has newer data: {seed} may not be needed")
            self._assert_alarms_known(member.name, status)
        silent = (m.name for m in self.scope.state.members if m.name != seed and m.answer is None)
        self._assert_no_voter(silent, f"{seed} may not be needed")
        self.assert_as_read()

    def _old_voters(self) -> Iterator[Member]:
        """Those of the old cluster that answer; but for learners.

        A learner answers no linearizable read. And it never stands for election, so it goes on to report the
        leader that it last knew, for ever (measured with 3.6).
        """
        old = self.scope.state.persisted.cluster_id
        for member in self.scope.state.answers:
            answer = member.answer
            if answer is not None and answer.cluster_id == old and not answer.is_learner:
                yield member

    def assert_as_read(self) -> None:
        """A survivor that answered nobody still does not: its reader ends when it follows a leader."""
        source = self.scope.recovery.offline_survivor
        if source is None:
            return
        survivor = self.scope.state.by_name.get(source.name)
        pod = survivor.pod if survivor is not None and survivor.answer is None else None
        if pod is None or pod.is_terminating:
            return
        if pod.reader is None or not pod.reader.is_running:
            if pod.ip and self._answers(self._known_at(source.name, pod.ip)):
                raise Conflict(f"{source.name} answers again: not giving up the others")
            return
        read = ReadMember(name=source.name, uid=pod.uid, sha256=source.sha256)
        self.readers.ask_again(self.scope, read, self.pod_as_seen(read.name, read.uid))

    def _name_of(self, member: EtcdMember) -> str:
        return self._name(member.name, member.peer_urls)

    def _name(self, name: str, peer_urls: Iterable[str]) -> str:
        hosts = (self.dialect.member_at(self.scope.desired, host_of(peer_url)) for peer_url in peer_urls)
        return name or next(hosts, "")

    def _endpoint_of(self, name: str, uid: str, *, may_leave: bool = False) -> str:
        """Where a survivor serves clients, if it still is the pod that was seen."""
        return self._known_at(name, self.pod_as_seen(name, uid, may_leave=may_leave).status.pod_ip)

    def pod_as_seen(self, name: str, uid: str, *, may_leave: bool = False) -> Pod:
        """A member's pod, live. Raises Conflict if it is another one now, or is being deleted.

        may_leave: whether it may be: one that is not recovered from is merely asked, and may never leave.
        """
        found = self.pod(name)
        is_same = found is not None and found.metadata.uid == uid and bool(found.status.pod_ip)
        if found is None or not is_same or (found.metadata.is_deleting and not may_leave):
            raise Conflict(f"{name} has changed since it was observed: not recovering")
        return found

    def pod(self, name: str) -> Pod | None:
        """A member's pod, live; None if it is gone. That of a persistent member has a name of its own."""
        seen = self.scope.member(name).pod
        return self.scope.objects.find(resources.PODS, seen.name if seen is not None else name, Pod)

    def _pods_of(self, name: str) -> tuple[Pod, ...]:
        """Those with the labels of this member, live. Raises Conflict if any cannot be read."""
        labels = self.dialect.member_labels(self.scope.desired, name)
        return self._list(",".join(f"{key}={value}" for key, value in labels.items())).whole()

    def _list(self, selector: str = "") -> Listing[Pod]:
        """The pods of the namespace that these labels select, live."""
        return self.scope.objects.client.list(
            resources.PODS, Pod, namespace=self.scope.desired.namespace, label_selector=selector
        )

    def _etcd(self, at: str) -> EtcdClient:
        """A client of the member that serves clients there."""
        return EtcdClient(self.channels, at, deadline=DEADLINE, on_call=self.on_call)


def _assert_too_few(name: str, voters: list[str], gone: tuple[str, ...]) -> None:
    """By the voters that this member lists, nobody can be elected."""
    if sum(voter not in gone for voter in voters) >= quorum(len(voters)):
        raise Conflict(f"{name} lists voters that may still elect a leader: not recovering")


def _assert_behind(name: str, revision: int, below: int) -> None:
    if revision >= below:
        raise Conflict(f"{name} has reached revision {revision} by now: not recovering from the backup")
