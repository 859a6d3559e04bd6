"""Changes to etcd's member list, each behind a live read through a quorum (I12).

A plan rests on an observation that may be a second old. Right before an act the list is
read again, linearizably: a change that took effect already is not repeated, a change that
was planned for other members than etcd lists now is not made, and a member that etcd still
lists never loses its objects.

etcd has no precondition that would refuse the change of an operator that no longer leads. So each is
requested only while no other operator can become the leader before its deadline (decision 011).
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from etcd_operator.controllers.etcd_cluster.decide.actions import MoveLeader
from etcd_operator.controllers.etcd_cluster.decide.facts.peering import is_listed_as_recorded
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.dialects.base import client_endpoint
from etcd_operator.errors import AlreadyExists, AuthEnabled, Conflict, Forbidden, OperatorError, Unavailable
from etcd_operator.etcd.auth import AuthClient
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient, OnCall
from etcd_operator.etcd.errors import Corrupt, UnhealthyCluster
from etcd_operator.etcd.values import Alarm, AlarmKind, EtcdMember, MemberList

T = TypeVar("T")

DEADLINE = 2.0
"""Seconds for one call; a worker waits no longer than that for one cluster."""

ENTRY_DEADLINE = 0.5
"""Seconds for an entry that changes nothing: it is requested again, and nothing depends on its reply."""

HASH_DEADLINE = 10.0
"""Seconds for the hash of all that one member has: a few gigabytes."""


@dataclass(frozen=True, kw_only=True)
class Membership:
    """etcd's list of one cluster, as seen through its healthy voters."""

    channels: Channels
    state: ClusterState
    on_call: OnCall
    leads_for: Callable[[float], bool]

    def add_learner(self, peer_url: str) -> bool:
        """Add a learner; false if it is listed already. Raises `UnhealthyCluster`, Conflict, others.

        One that is listed with the other scheme, by an earlier addition that took effect late, is started so.
        """
        listed = self._listed()
        found = _at(peer_url, listed)
        if found is not None and found.peer_urls != (peer_url,):
            raise Conflict(f"{' '.join(found.peer_urls)} was added meanwhile: trying again")
        if found is not None:
            return False
        self._assert_as_planned(listed)
        try:
            self._of_any_voter(lambda voter: voter.member_add((peer_url,), learner=True), self._able())
        except AlreadyExists:
            return False
        return True

    def promote(self, member_id: str) -> bool:
        """Promote a learner; false if it votes already. Raises `NotInSync`.

        With a certificate as the user, only through the leader: a follower cannot pass it on, and does not
        answer (measured with 3.5 to 3.7).
        """
        leader, able = self.state.leader, self._able()
        if self.channels.credentials is not None and (leader is None or leader not in able):
            raise Unavailable("the leader does not answer: not promoting a member")
        voter = self._voter()
        self._assert_leads()
        return voter.member_promote(member_id)

    def remove(self, name: str, member_id: str, *, by_ours: bool = False) -> bool:
        """Remove a member; false if it is removed already. Sent to a member that is kept. Raises Conflict.

        by_ours: not to an external member, which may be configured to accept what ours refuse.
        """
        listed = self._listed(but=name)
        if member_id not in {member.id for member in listed.members}:
            return False
        self._assert_as_planned(listed)
        self._assert_leads_as_planned(name, member_id)
        able = [v for v in self._able(name) if not by_ours or v in self.state.voters]
        return self._of_any_voter(lambda voter: voter.member_remove(member_id), able)

    def move_leader(self, action: MoveLeader) -> None:
        """Move leadership; only the leader takes the request."""
        leader = self.state.leader
        if leader is None:
            raise Unavailable("no leader is known")
        self._assert_leads()
        self._client(leader).move_leader(action.member_id)

    def assert_corrupt(self, member_id: str) -> None:
        """The alarm still names the member, and the others agree. Raises Conflict, Corrupt."""
        named = Alarm(member_id=member_id, kind=AlarmKind.CORRUPT)
        if named not in self._client(_require_some(self._trusted())[-1]).alarms():
            raise Conflict(f"etcd no longer reports that the data of {member_id} differs: trying again")
        self._assert_equal()

    def disarm_corrupt(self, member_id: str) -> None:
        """Disarm the alarm of a removed member, if all others agree. Raises Conflict, Corrupt."""
        if member_id in {member.id for member in self._listed().members}:
            raise Conflict(f"{member_id} is a member again: not disarming its alarm")
        self._assert_equal()
        self._assert_leads()
        self._voter().disarm(Alarm(member_id=member_id, kind=AlarmKind.CORRUPT))

    def assert_no_authentication(self) -> None:
        """Requests need no user. Raises AuthEnabled if they do."""
        voter = _require_some(self._able())[0]
        client = AuthClient(self.channels, client_endpoint(voter), deadline=DEADLINE, on_call=self.on_call)
        try:
            is_enabled = client.auth_status().is_enabled
        except Forbidden:
            is_enabled = True  # the operator is not root
        if is_enabled:
            raise AuthEnabled(
                "etcd's authentication is enabled, and needs TLS for clients with certificates: disable it, "
                "or set tls.client.mode to Require, and clientCertAuth to true"
            )

    def _assert_equal(self) -> None:
        """Every healthy voter that no alarm names has the same data, and they are a quorum of all voters."""
        voters = [self._client(voter) for voter in self._trusted()]
        listed = self._list_of(self._client(_require_some(self._trusted())[-1]))
        if len(voters) < quorum(sum(not member.is_learner for member in listed.members)):
            raise Conflict("too few voters are left to agree on the data: trying again")
        revision = max(voter.status().revision for voter in voters)
        hashes = [voter.hash_kv(revision, deadline=HASH_DEADLINE) for voter in voters]
        if len({found.compact_revision for found in hashes}) > 1:
            raise Conflict("members are not compacted to the same revision yet: trying again")
        if len({found.hash for found in hashes}) > 1:
            names = ", ".join(voter.name for voter in self._trusted())
            raise Corrupt(
                f"the data of {names} differs, too, at revision {revision}: no member is removed; compare "
                "`etcdctl endpoint hashkv --cluster`, remove the member that is wrong, then run "
                "`etcdctl alarm disarm`"
            )

    def _trusted(self) -> list[Member]:
        """Those whose data is not known to differ, the leader last: it never refuses what goes to the log."""
        trusted = [voter for voter in self.state.healthy_voters if voter.id not in self.state.corrupt]
        return sorted(trusted, key=lambda voter: voter is self.state.leader)

    def append_nothing(self, entries: int) -> None:
        """Append entries that change nothing, as many as a worker's time allows."""
        self._voter().append_nothing(entries, within=DEADLINE / 4)

    def append_entry(self) -> None:
        """Request one entry that changes nothing. It may be appended, too, where the reply comes too late."""
        self._voter(deadline=ENTRY_DEADLINE).append_nothing(1, within=ENTRY_DEADLINE)

    def lists(self, name: str, peer_url: str) -> bool:
        """Whether etcd lists a member at that address now, as the others report."""
        return _at(peer_url, self._listed(but=name)) is not None

    def still_lists(self, member: Member) -> bool:
        """Whether etcd lists a member now, wherever it has its URL, as the others report."""
        return member.id in {each.id for each in self._listed(but=member.name).members}

    def readdress(self, member: Member, peer_url: str) -> tuple[str, ...]:
        """Tell all members that they reach one at this URL, before it listens so; the URLs that it had.

        Empty if nothing was changed: it is listed as is on record, or there is no quorum to change the list.
        Then it listens as it is listed (`facts.peering.started`).

        Until it does, its messages, and the replies to them, go through the connections that it opens itself.
        Never both URLs: others would try the wrong one for seconds (measured with 3.5 and 3.6). Raises
        Conflict if the list has changed since it was observed.
        """
        if not self.state.has_quorum or is_listed_as_recorded(self.state, member):
            return ()
        listed = self._listed()
        self._assert_as_planned(listed)
        (former,) = (each.peer_urls for each in listed.members if each.id == member.id)
        if former == (peer_url,):
            raise Conflict(f"the peer URL of {member.name} has changed since it was observed: trying again")
        self._assert_leads()
        self._voter().member_update(member.id, (peer_url,))
        return former

    def put_back(self, member: Member, peer_urls: tuple[str, ...]) -> None:
        """Undo `readdress` of a member that could not be stopped, if possible: it listens as before."""
        with suppress(OperatorError):
            self._assert_leads()
            self._voter().member_update(member.id, peer_urls)

    def _assert_as_planned(self, listed: MemberList) -> None:
        """An earlier change may have taken effect, late, after the observation that the plan rests on."""
        planned = {(entry.id, entry.is_learner) for entry in self.state.etcd_members}
        if {(member.id, member.is_learner) for member in listed.members} != planned:
            raise Conflict("etcd's members have changed since they were observed: trying again")

    def _assert_leads_as_planned(self, name: str, member_id: str) -> None:
        """A member that was silent may have come back, and have won an election, since the observation."""
        known = {member.answer.leader for member in self.state.members if member.answer is not None}
        if member_id not in known and self._voter(name).status().leader == member_id:
            raise Conflict(f"{name} leads now: it is removed when another member leads")

    def _listed(self, but: str = "") -> MemberList:
        return self._list_of(self._voter(but))

    def _list_of(self, client: EtcdClient) -> MemberList:
        """etcd's list. Raises Conflict if the member that is asked is one of another etcd cluster."""
        listed, recorded = client.member_list(linearizable=True), self.state.persisted.cluster_id
        if recorded and listed.cluster_id != recorded:
            raise Conflict("another etcd cluster answers than the one on record: not changing members")
        return listed

    def _of_any_voter(self, change: Callable[[EtcdClient], T], able: Sequence[Member]) -> T:
        """Ask one voter after the other while they answer `UnhealthyCluster`; raises it when all do.

        Each judges by the connections that it has itself, and may be wrong about them for ever: a
        first message to a peer that times out after its streams were opened (its Service was late)
        left the peer inactive in the view of an etcd 3.6.16 for as long as it was observed.
        """
        for voter in able[:-1]:
            with suppress(UnhealthyCluster):
                return self._changed(change, voter)
        return self._changed(change, _require_some(able)[-1])

    def _changed(self, change: Callable[[EtcdClient], T], voter: Member) -> T:
        client = self._client(voter)
        self._assert_leads()
        return change(client)

    def _assert_leads(self) -> None:
        if not self.leads_for(DEADLINE):
            raise Unavailable("the operator could not confirm its leadership: not changing members")

    def _voter(self, but: str = "", *, deadline: float = DEADLINE) -> EtcdClient:
        return self._client(_require_some(self._able(but))[0], deadline=deadline)

    def _able(self, but: str = "") -> list[Member]:
        """The healthy voters, the leader first: what it does not have to forward takes less time."""
        able = [v for v in self.state.all_healthy_voters if v.name != but]
        able.sort(key=lambda voter: voter is not self.state.leader)
        return able

    def _client(self, member: Member, *, deadline: float = DEADLINE) -> EtcdClient:
        at = client_endpoint(member)
        return EtcdClient(self.channels, at, deadline=deadline, on_call=self.on_call)


def _at(peer_url: str, listed: MemberList) -> EtcdMember | None:
    """The member at this address, with TLS or without; None if there is none."""
    host = urlsplit(peer_url).netloc
    return next(
        (each for each in listed.members if host in {urlsplit(at).netloc for at in each.peer_urls}), None
    )


def _require_some(members: Sequence[Member]) -> Sequence[Member]:
    if not members:
        raise Unavailable("no healthy voter to ask")
    return members
