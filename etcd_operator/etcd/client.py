"""Calls to one etcd member.

Every call has a deadline in seconds (a snapshot: a limit on silence) and is sent to exactly one endpoint: the
caller chooses the member (the leader, a voter, the survivor), and a write whose outcome is unknown is never
repeated implicitly. Failures are the errors of `etcd.errors`; `maybe_applied` marks a write that may have
taken effect.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field

import grpc

from etcd_operator.errors import Conflict, Forbidden, NotFound, Unavailable
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.channel import Channels, Connection, limit_silence
from etcd_operator.etcd.errors import (
    MemberNotFound,
    NotForLearner,
    NotLearner,
    is_connection_lost,
    translate,
)
from etcd_operator.etcd.methods import Method, Request, Response, alarms_of, member_of, members_of, status_of
from etcd_operator.etcd.values import Alarm, EtcdMember, HashKV, MemberList, Status
from etcd_operator.formats import hex_id

OnCall = Callable[[str, str, float], None]
"""Called after every call with the method name, the gRPC code ("OK", "UNAVAILABLE") and seconds."""

QUORUM_READ = pb.RangeRequest(key=b"\0", count_only=True)
"""A request that only a member with a quorum can answer: it is confirmed even if the key is absent."""

_WINDOW = 100


@dataclass(eq=False)
class EtcdClient:
    """Calls one endpoint (`host:port`) over the cluster's connections."""

    channels: Channels
    endpoint: str
    _: KW_ONLY
    deadline: float = 5.0  # the default for every call
    # what `authenticate` returned, if the cluster requires a user and no client certificate names one
    token: str | None = field(default=None, repr=False)
    on_call: OnCall = lambda *_: None

    # Reading

    def status(self) -> Status:
        """The member's own status; needs no quorum, and a learner answers it, too."""
        return status_of(self._call(methods.STATUS, pb.StatusRequest()))

    def member_list(self, *, linearizable: bool) -> MemberList:
        """The members; a linearizable list needs a quorum, any other may be stale. Not from a learner."""
        response = self._call(methods.MEMBER_LIST, pb.MemberListRequest(linearizable=linearizable))
        return MemberList(cluster_id=hex_id(response.header.cluster_id), members=members_of(response.members))

    def has_quorum(self, *, deadline: float) -> bool:
        """Whether a quorum confirmed a read through this voter within `deadline` seconds.

        etcd confirms the read before it checks permissions, so a refused user proves a quorum, too.
        False means not proven: no answer, no leader, too slow, or the member is a learner.
        """
        try:
            self._call(methods.RANGE, QUORUM_READ, deadline=deadline)
        except Forbidden:
            return True
        except (Unavailable, NotForLearner):
            return False
        return True

    def hash_kv(self, revision: int = 0, *, deadline: float | None = None) -> HashKV:
        """The member's hash of all keys up to `revision` (0: its newest)."""
        response = self._call(methods.HASH_KV, pb.HashKVRequest(revision=revision), deadline=deadline)
        return HashKV(hash=response.hash, compact_revision=response.compact_revision)

    def alarms(self) -> tuple[Alarm, ...]:
        """The active alarms of all members; needs a quorum."""
        return alarms_of(self._call(methods.ALARM_LIST, pb.AlarmRequest()).alarms)

    def snapshot(self, *, stall: float) -> Iterator[bytes]:
        """The member's database in chunks of some 32 KiB, followed by the SHA-256 of its bytes.

        The bytes are as `etcdutl snapshot restore` expects them; the caller verifies the hash. If nothing
        arrives for `stall` seconds it raises `Timeout`; the time that the caller takes does not count.
        Closing the iterator ends the stream.
        """
        connection = self.channels.connection(self.endpoint)
        with self._translated(methods.SNAPSHOT, connection):
            stream = connection.stream(methods.SNAPSHOT)(pb.SnapshotRequest(), metadata=self._metadata)
            try:
                replies = limit_silence(iter(stream), stall, stream.cancel)
                yield from (response.blob for response in replies)
            finally:
                stream.cancel()

    # Changing the membership

    def member_add(self, peer_urls: tuple[str, ...], *, learner: bool) -> EtcdMember:
        """Register a member before it is started.

        Raises `UnhealthyCluster`, `AlreadyExists` (perhaps for our own request whose reply was lost), and
        `Conflict` for a second learner. etcd derives IDs from URL and second: a URL that was removed within
        this second is a `Conflict`, too; add it again after 1.1 s.
        """
        request = pb.MemberAddRequest(peerURLs=peer_urls, isLearner=learner)
        try:
            return member_of(self._call(methods.MEMBER_ADD, request).member)
        except NotFound as error:
            raise Conflict(f"{error} (the same peer URL was removed within this second)") from error

    def member_promote(self, member_id: str) -> bool:
        """Promote a learner; False if it is a voter already. Raises `NotInSync`, `MemberNotFound`."""
        try:
            self._call(methods.MEMBER_PROMOTE, pb.MemberPromoteRequest(ID=int(member_id, 16)))
        except NotLearner:
            return False
        return True

    def member_remove(self, member_id: str) -> bool:
        """Remove a member permanently; False if it was removed already. Raises `UnhealthyCluster`."""
        try:
            self._call(methods.MEMBER_REMOVE, pb.MemberRemoveRequest(ID=int(member_id, 16)))
        except MemberNotFound:
            return False
        return True

    def member_update(self, member_id: str, peer_urls: tuple[str, ...]) -> None:
        """Tell all members where they reach this one. Raises `MemberNotFound`, `AlreadyExists`."""
        request = pb.MemberUpdateRequest(ID=int(member_id, 16), peerURLs=peer_urls)
        self._call(methods.MEMBER_UPDATE, request)

    def move_leader(self, target: str) -> None:
        """Transfer leadership to `target`; only the leader can (else `RetryableError`)."""
        self._call(methods.MOVE_LEADER, pb.MoveLeaderRequest(targetID=int(target, 16)))

    # Maintenance

    def disarm(self, alarm: Alarm) -> None:
        """Clear an alarm whose cause is resolved."""
        request = pb.AlarmRequest(
            action=pb.AlarmRequest.DEACTIVATE, memberID=int(alarm.member_id, 16), alarm=alarm.kind.value
        )
        self._call(methods.ALARM_DISARM, request)

    def append_nothing(self, entries: int, *, within: float) -> None:
        """Append up to `entries` entries to the log that change no key and no revision.

        etcd writes even a request for the list of alarms to the log, in 3.5 to 3.7 alike (measured). A
        hundred at a time, so that clients' writes come in between; none is sent after `within` seconds.
        """
        end = time.monotonic() + within
        connection = self.channels.connection(self.endpoint)
        call = connection.unary(methods.ALARM_LIST)
        for begin in range(0, entries, _WINDOW):
            if time.monotonic() >= end:
                return
            with self._translated(methods.ALARM_LIST, connection):
                pending = [
                    call.future(pb.AlarmRequest(), timeout=self.deadline, metadata=self._metadata)
                    for _ in range(min(_WINDOW, entries - begin))
                ]
                for reply in pending:
                    reply.result()

    def authenticate(self, user: str, password: str) -> str:
        """A token for this user; needs a quorum. Raises `AuthRequired` for a wrong password."""
        request = pb.AuthenticateRequest(name=user, password=password)
        return self._call(methods.AUTHENTICATE, request).token

    @property
    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("token", self.token),) if self.token is not None else ()

    def _call(
        self, method: Method[Request, Response], request: Request, *, deadline: float | None = None
    ) -> Response:
        connection = self.channels.connection(self.endpoint)
        timeout = self.deadline if deadline is None else deadline
        with self._translated(method, connection):
            return connection.unary(method)(request, timeout=timeout, metadata=self._metadata)

    @contextmanager
    def _translated(self, method: Method[Request, Response], connection: Connection) -> Iterator[None]:
        """Report the call's end; translate gRPC's errors and discard a broken connection."""
        start = time.monotonic()
        code = grpc.StatusCode.OK
        try:
            yield
        except grpc.RpcError as error:
            code, details = error.code(), error.details() or ""
            if is_connection_lost(code, details):
                self.channels.discard(connection)
            call = f"{method.name} at {self.endpoint}"
            raise translate(code, details, call=call, is_write=method.is_write) from error
        except ValueError as error:
            # gRPC raises this if another thread closed the channel before the call began.
            code = grpc.StatusCode.CANCELLED
            raise Unavailable(f"{method.name} at {self.endpoint}: {error}") from error
        finally:
            self.on_call(method.name, code.name, time.monotonic() - start)
