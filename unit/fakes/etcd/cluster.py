"""The members of one fake cluster: real gRPC on loopback addresses, and etcd's rules behind it.

    cluster = FakeEtcdCluster()
    cluster.bootstrap({"m0": "http://m0:2380"})      # as --initial-cluster has it
    cluster.start("m0", peer_url="http://m0:2380", address="127.1.0.1:2379")
    cluster.stop / freeze / thaw / wipe / start again; cluster.close() at the end

It keeps etcd's rules as measured on 3.5 to 3.7: quorum, the 5 s rule (only with a clock), one learner at a
time, promotion only in sync, what a learner answers, what answers without quorum, no answer of a process that
has not followed a leader. It does not model the log: data is one dict, a follower is up to date unless it
`lags` without a quorum, a leader is elected at once unless `elect_slowly` was called.

`on_write(method, applied)` is called before and after each change; raising `Refusal` there fails the call
before it, or loses its reply. `damage` changes the bytes of snapshots; `on_chunk(index)` is called before
each chunk of one is sent, and may block. `credentials`: of members that serve TLS only.

The cluster version follows the lowest version of the members, unless `holds_version`. Of the log it knows
three things: that 3.7 does not start on entries that 3.5 wrote unless a raft snapshot of 3.6 lies behind
them, that one is saved every `snapshot_every` entries, and that a member that was frozen for more than 5,000
refuses what goes through the log until there is another entry.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import grpc

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.members import quorum
from unit.fakes.etcd.auth import FakeAuth
from unit.fakes.etcd.member import FakeMember
from unit.fakes.etcd.refusals import StartRefused, check
from unit.fakes.etcd.rpc import open_server
from unit.fakes.etcd.rules import (
    NOT_FOUND,
    UNHEALTHY,
    URL_EXISTS,
    refuses_learner,
    refuses_promotion,
    refuses_removal,
)

_CONNECTED_SECONDS = 5.0
_MOST_UNAPPLIED = 5000
_UNREADABLE = "panic: unmarshal should never fail (proto: cannot parse invalid wire-format data)"


class FakeEtcdCluster:
    """Every method takes its lock, and `changed` is notified after each change.

    hangs: whether what cannot be answered hangs until the caller's time is over, as in the real one. False,
    for scenarios with a clock of their own: it is over at once.
    """

    def __init__(self, *, cluster_id: int = 0xC0FFEE, clock: Clock | None = None, hangs: bool = True) -> None:
        self.cluster_id, self.hangs = cluster_id, hangs
        self.changed = threading.Condition(threading.RLock())
        self.members: list[FakeMember] = []
        self.leader: FakeMember | None = None
        self.term = 1
        self.raft_index = 4
        self.revision = 1
        self.keys: dict[bytes, tuple[bytes, int]] = {}
        self.alarms: set[tuple[int, str]] = set()
        self.auth = FakeAuth()
        self.credentials: grpc.ServerCredentials | None = None
        self.writes: list[str] = []
        self.strangers: list[str] = []
        self.snapshot_every = 1500
        self.has_old_entries, self.holds_version = False, False
        self.cluster_version = ""
        self.elects = True
        self.on_write: Callable[[str, bool], None] | None = None
        self.damage: Callable[[bytes], bytes] | None = None
        self.on_chunk: Callable[[int], None] | None = None
        self._clock = clock
        self._executor = ThreadPoolExecutor(max_workers=64, thread_name_prefix="fake-etcd")
        self._next_id = 0x1001

    # The processes

    def bootstrap(self, peers: Mapping[str, str]) -> None:
        """Make these (name to peer URL) the initial voters."""
        with self.changed:
            for name, peer_url in peers.items():
                self._admit((peer_url,), name=name, is_learner=False)

    def start(
        self,
        name: str,
        *,
        peer_url: str,
        address: str = "127.0.0.1:0",
        version: str = "3.6.16",
        credentials: grpc.ServerCredentials | None = None,
        has_dual_port: bool = False,
        member_id: int = 0,
        listens_with_tls: bool | None = None,
        has_peer_files: bool = False,
    ) -> FakeMember:
        """Start the process of a member at `address`; port 0 picks one (see its `endpoint`).

        member_id: of the member whose data it has; without data, etcd finds it by its peer URL.

        Raises `StartRefused` if the cluster has no member with that peer URL, or it has lost its
        data while another member still has its own.
        """
        with self.changed:
            member = next((m for m in self.members if m.id == member_id or peer_url in m.peer_urls), None)
            if member is None:
                raise StartRefused("member count is unequal")
            member.listens_with_tls, member.has_peer_files = listens_with_tls, has_peer_files
            if member.is_wiped:
                self._forget(member)
            self._read_log(member, version)
            member.credentials, member.has_dual_port = credentials, has_dual_port
            member.server, port = open_server(self, member, address, self._executor)
            member.endpoint = f"{address.rpartition(':')[0]}:{port}"
            member.name, member.version = name, version
            member.started_at = self._now()
            member.is_running, member.is_frozen, member.is_in_sync = True, False, True
            member.has_led = False
            self._note_strangers()
            self._settle()
            return member

    def _note_strangers(self) -> None:
        """Two members are in touch if one of them can dial the other: raft uses its connections both ways."""
        running = [member for member in self.members if member.is_running]
        for one, other in combinations(running, 2):
            if not one.dials(other) and not other.dials(one):
                self.strangers.append(f"{one.name} and {other.name} cannot dial each other")

    def _forget(self, member: FakeMember) -> None:
        """A member begins without data: alone it is refused, with all others the cluster begins again."""
        if not all(each.is_wiped for each in self.members):
            raise StartRefused(f"member {member.id:x} has already been bootstrapped")
        self.keys.clear()
        self.revision = 1
        for each in self.members:
            each.is_wiped = False

    def snapshots(self, member: FakeMember) -> int:
        """How many raft snapshots its process has saved."""
        with self.changed:
            saved = (self.raft_index - member.started_index) // self.snapshot_every
            member.has_snapshot = member.has_snapshot or saved > 0
            return saved

    def _read_log(self, member: FakeMember, version: str) -> None:
        minor = int(version.split(".")[1])
        if member.is_running or member.started_index:
            self.snapshots(member)
        if minor >= 7 and self.has_old_entries and not member.has_snapshot:
            raise StartRefused(_UNREADABLE)
        if minor <= 5:
            self.has_old_entries, member.has_snapshot = True, False
        member.started_index = self.raft_index

    def stop(self, name: str) -> None:
        """End the process: its port refuses connections, its data is kept."""
        with self.changed:
            member = self.member(name)
            member.is_running = False
            server, member.server = member.server, None
            dual, member.dual_port = member.dual_port, None
            self._settle()
        if dual is not None:
            dual.close()
        if server is not None:
            server.stop(grace=None).wait(30)

    def freeze(self, name: str) -> None:
        """As SIGSTOP: connections are accepted, nothing is answered."""
        with self.changed:
            member = self.member(name)
            member.is_frozen, member.frozen_index = True, self.raft_index
            self._settle()

    def thaw(self, name: str) -> None:
        """As SIGCONT."""
        with self.changed:
            member = self.member(name)
            member.is_frozen = False
            self._settle()
            if self.raft_index - member.frozen_index > _MOST_UNAPPLIED:
                member.snapshot_index = self.raft_index

    def elect_slowly(self, *, elects: bool = False) -> None:
        """Without a leader no other one is elected, until this is called with `elects`."""
        with self.changed:
            self.elects = elects
            self._settle()

    def wipe(self, name: str) -> None:
        """End the process and lose its data directory."""
        self.stop(name)
        with self.changed:
            self.member(name).is_wiped = True

    def close(self) -> None:
        """Stop all processes and threads."""
        for member in list(self.members):
            if member.is_running:
                self.stop(member.name)
        self._executor.shutdown(wait=True)

    # What is known of it

    def member(self, name: str) -> FakeMember:
        """The member of that name (KeyError if none)."""
        with self.changed:
            for member in self.members:
                if member.name == name:
                    return member
        raise KeyError(name)

    @property
    def voters(self) -> list[FakeMember]:
        return [member for member in self.members if not member.is_learner]

    @property
    def has_quorum(self) -> bool:
        able = [voter for voter in self.voters if voter.is_alive]
        return len(able) >= quorum(len(self.voters)) and (self.elects or self.leader in able)

    # The rules of the calls; the caller holds the lock

    def add(self, asked: FakeMember, peer_urls: tuple[str, ...], *, is_learner: bool) -> FakeMember:
        known = {url for member in self.members for url in member.peer_urls}
        learners = len(self.members) - len(self.voters)
        refused = refuses_learner(
            voters=len(self.voters), connected=self._connected(asked), learners=learners * is_learner
        )
        # In etcd the connections are judged before the change is proposed, the rest when it is applied.
        check(URL_EXISTS if refused != UNHEALTHY and known & set(peer_urls) else refused)
        return self._admit(peer_urls, name="", is_learner=is_learner)

    def remove(self, asked: FakeMember, member_id: int) -> None:
        member = self._by_id(member_id)
        if not member.is_learner:
            others = [voter for voter in self.voters if voter is not member]
            refused = refuses_removal(
                is_active=member.is_alive,
                others=len(others),
                started=sum(bool(voter.name) for voter in others),
                connected=self._connected(asked),
            )
            check(refused)
        self.members.remove(member)
        self._settle()

    def readdress(self, member_id: int, peer_urls: tuple[str, ...]) -> None:
        member = self._by_id(member_id)
        others = {url for other in self.members if other is not member for url in other.peer_urls}
        check(URL_EXISTS if others & set(peer_urls) else "")
        member.peer_urls = peer_urls
        self._note_strangers()
        self._settle()

    def promote(self, member_id: int) -> None:
        member = self._by_id(member_id)
        is_in_sync = member.is_alive and member.is_in_sync
        check(refuses_promotion(is_learner=member.is_learner, is_in_sync=is_in_sync))
        member.is_learner = False
        self._settle()

    def move_leader(self, asked: FakeMember, target: int) -> None:
        check("" if asked is self.leader else "not leader")
        member = next((voter for voter in self.voters if voter.id == target and voter.is_alive), None)
        check("" if member is not None else "bad leader transferee")
        assert member is not None
        self._lead(member)
        self._settle()

    def put(self, key: bytes, value: bytes) -> None:
        self.revision += 1
        self.keys[key] = (value, self.revision)
        self._settle()

    def _by_id(self, member_id: int) -> FakeMember:
        found = [member for member in self.members if member.id == member_id]
        check("" if found else NOT_FOUND)
        return found[0]

    def _admit(self, peer_urls: tuple[str, ...], *, name: str, is_learner: bool) -> FakeMember:
        member = FakeMember(id=self._next_id, peer_urls=peer_urls, name=name, is_learner=is_learner)
        self._next_id += 1
        self.members.append(member)
        self._settle()
        return member

    def _connected(self, asked: FakeMember) -> int:
        """How many voters `asked` has been connected to for 5 s, itself included."""
        if asked.is_misled:
            return 1
        if self._clock is None:
            return sum(voter.is_alive for voter in self.voters)
        long_ago = self._now() - _CONNECTED_SECONDS
        return sum(
            voter is asked or (voter.is_alive and voter.started_at <= long_ago) for voter in self.voters
        )

    def _now(self) -> float:
        return self._clock.monotonic() if self._clock is not None else 0.0

    def _settle(self) -> None:
        """After any change: a new leader if one is needed and possible, and wake all that wait."""
        self.raft_index += 1
        able = [voter for voter in self.voters if voter.is_alive]
        if not self.has_quorum:
            self.leader = None
        elif self.leader not in able:
            self._lead(able[0])
        if self.has_quorum:
            for member in self.members:
                member.has_led = member.has_led or member.is_alive
                member.lags = 0 if member.is_alive else member.lags
        if self.has_quorum and not self.holds_version:
            self._agree()
        self.changed.notify_all()

    def _agree(self) -> None:
        """The cluster version: 3.0 until all members can be asked, then the lowest, and never back."""
        started = [member for member in self.members if member.is_alive]
        known = [tuple(map(int, member.version.split("-")[0].split(".")[:2])) for member in started]
        lowest = min(known) if len(started) == len(self.members) else (3, 0)
        agreed = tuple(map(int, self.cluster_version.split("."))) if self.cluster_version else lowest
        self.cluster_version = ".".join(map(str, max(lowest, agreed)))

    def _lead(self, member: FakeMember) -> None:
        self.leader = member
        self.term += 1
