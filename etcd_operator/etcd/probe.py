"""Asks all members of one cluster at once what they are, within one deadline.

Promises:
- every endpoint is asked for its Status and its own (serializable) member list, in parallel;
- `quorum` is proven by a linearizable read, never concluded from a Status, which names a
  lost leader for seconds;
- the deadline holds whatever the members do: stopped with SIGSTOP, packets dropped, half
  open connections. Silence is a value, `NoAnswer`, not an exception;
- once a quorum is proven, silent members are given no more than `patience` seconds from the
  start: a node that is down must not slow the look at the healthy rest;
- a member that wants a user is asked for the proof in any case: nothing else shows how it is;
- no thread is kept per member and a healthy cluster costs no handshakes.

It changes nothing and raises nothing but `Unavailable` for closed `Channels`, and `NotProbed` when this
process has no file descriptors left for connections: the silence would be its own.
"""

import queue
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import grpc
from google.protobuf.message import Message

from etcd_operator.errors import Forbidden, OperatorError, Unavailable
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.channel import Channels, Connection
from etcd_operator.etcd.client import OnCall, ignore_call, quorum_read
from etcd_operator.etcd.errors import LearnerAsked, NotProbed, is_connection_lost, is_own_lack, translate
from etcd_operator.etcd.methods import Method, Request, Response
from etcd_operator.etcd.values import Member, Status, members_of, status_of
from etcd_operator.etcd.vitals import Vitals


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The member answered. `members` is None if it gave no list: a learner never does."""

    status: Status
    members: tuple[Member, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The member answered that it wants a user, or another one: it is alive but reports nothing.

    is_serving: it has just confirmed a linearizable read, as only a voter in touch with a quorum can.
    """

    reason: str
    is_serving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """Nothing was heard in time: that the member is down does not follow."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One look at a cluster.

    `quorum`: True is proven. False: a voter was asked and could not prove it in time.
    None: nobody could be asked.
    is_cut_short: whether time was over before all calls had ended.
    vitals: what pages of members said, by endpoint; added by whoever asked for them.
    silent_for: seconds since who is silent was heard, or first asked; added by whoever asks again and again.
    """

    answers: Mapping[str, Answer | Refused | NoAnswer]
    quorum: bool | None
    is_cut_short: bool = False
    vitals: Mapping[str, Vitals] = field(default_factory=dict)
    silent_for: Mapping[str, float] = field(default_factory=dict)


def probe(
    channels: Channels,
    endpoints: Iterable[str],
    *,
    deadline: float = 2.0,
    patience: float = 0.5,
    removed: frozenset[str] = frozenset(),
    token: str | None = None,
    on_call: OnCall = ignore_call,
) -> Probe:
    """Look at the members at `endpoints` (`host:port`); back within `deadline` seconds.

    removed: those of them that are no members any more; nobody waits for them once a quorum is proven.
    """
    metadata = (("token", token),) if token is not None else ()
    look = _Look(
        channels, deadline=deadline, patience=patience, removed=removed, metadata=metadata, on_call=on_call
    )
    return look.run(endpoints)


# How long one voter may think before the others are asked for the proof as well: it may be
# cut off from a quorum that they still have.
_HEDGE_SECONDS = 0.15

_SILENCE = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


class _Future(Protocol):
    """What gRPC gives for a call under way; its own types do not name it."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def result(self) -> Message: ...
    def cancel(self) -> bool: ...


@dataclass(slots=True, kw_only=True, eq=False)
class _Asked:
    """One endpoint under way: what it was asked and what it has said so far."""

    connection: Connection
    status: Status | None = None
    members: tuple[Member, ...] | None = None
    error: OperatorError | None = None
    is_heard: bool = False
    proof_sent: bool = False
    gave_proof: bool = False
    is_no_voter: bool = False

    @property
    def may_prove(self) -> bool:
        """Whether it lives and, as far as it says, is a voter not yet asked for the proof."""
        if self.proof_sent:
            return False
        if self.status is None:
            return self.is_refusing
        return not self.status.is_learner

    @property
    def is_refusing(self) -> bool:
        return self.status is None and isinstance(self.error, Forbidden)

    @property
    def knows_no_leader(self) -> bool:
        return self.status is not None and self.status.leader == 0

    def answer(self) -> Answer | Refused | NoAnswer:
        if self.status is not None:
            return Answer(status=self.status, members=self.members)
        if self.is_refusing:
            return Refused(reason=str(self.error), is_serving=self.gave_proof)
        return NoAnswer(reason=str(self.error) if self.error is not None else "no answer in time")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Call:
    """One call under way; `sent` is monotonic."""

    asked: _Asked
    name: str
    sent: float
    future: _Future


class _Look:
    """One probe under way. gRPC's threads hand in replies by a queue; all else is the caller's thread."""

    def __init__(
        self,
        channels: Channels,
        *,
        deadline: float,
        patience: float,
        removed: frozenset[str],
        metadata: tuple[tuple[str, str], ...],
        on_call: OnCall,
    ) -> None:
        self._channels = channels
        self._start = time.monotonic()
        self._end = self._start + deadline
        self._patient_until = min(self._end, self._start + patience)
        self._hedge_at = self._start + _HEDGE_SECONDS
        self._removed = removed
        self._metadata = metadata
        self._on_call = on_call
        self._replies: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._under_way: set[_Call] = set()
        self._asked: dict[str, _Asked] = {}
        self._not_asked = ""

    def run(self, endpoints: Iterable[str]) -> Probe:
        for endpoint in dict.fromkeys(endpoints):
            asked = self._asked[endpoint] = _Asked(connection=self._channels.connection(endpoint))
            self._ask(asked, methods.STATUS, pb.StatusRequest())
            self._ask(asked, methods.MEMBER_LIST, pb.MemberListRequest())
        try:
            while not self._is_complete() and time.monotonic() < self._limit():
                self._take_reply()
                self._seek_proof()
        finally:
            is_cut_short = not self._is_complete()
            self._let_go()
        if self._not_asked:
            raise NotProbed(f"{self._not_asked} was not asked: this process has no file descriptor left")
        answers = {endpoint: asked.answer() for endpoint, asked in self._asked.items()}
        return Probe(answers=answers, quorum=self._quorum(), is_cut_short=is_cut_short)

    def _ask(self, asked: _Asked, method: Method[Request, Response], request: Request) -> None:
        sent = time.monotonic()
        try:
            future = asked.connection.unary(method).future(
                request, timeout=max(self._end - sent, 0.0), metadata=self._metadata
            )
        except ValueError as error:  # another thread closed the channel
            asked.error = asked.error or Unavailable(str(error))
            return
        call = _Call(asked=asked, name=method.name, sent=sent, future=future)
        self._under_way.add(call)
        future.add_done_callback(lambda _: self._replies.put(call))

    def _take_reply(self) -> None:
        until = min(self._limit(), self._hedge_at) if self._candidates() else self._limit()
        try:
            call = self._replies.get(timeout=max(until - time.monotonic(), 0.0))
        except queue.Empty:
            return
        self._under_way.remove(call)
        code, details = call.future.code(), call.future.details() or ""
        self._on_call(call.name, code.name, time.monotonic() - call.sent)
        if code is grpc.StatusCode.OK:
            call.asked.is_heard = True
            _note(call.asked, call.future.result())
            return
        if code not in _SILENCE and not is_connection_lost(code, details):
            call.asked.is_heard = True
        if is_own_lack(details):
            self._not_asked = call.asked.connection.endpoint
        where = f"{call.name} at {call.asked.connection.endpoint}"
        self._note_error(call, translate(code, details, call=where, is_write=False))

    def _note_error(self, call: _Call, error: OperatorError) -> None:
        if call.name == methods.STATUS.name:
            call.asked.error = error
        elif call.name == methods.RANGE.name:
            # etcd confirms the read before it looks at rights (see EtcdClient.has_quorum).
            call.asked.gave_proof = isinstance(error, Forbidden)
            call.asked.is_no_voter = isinstance(error, LearnerAsked)
            self._hedge_at = self._start

    def _seek_proof(self) -> None:
        """Ask the first voter that knows a leader; when it fails or hesitates, all that may prove."""
        able = self._candidates()
        if not self._is_proven() and time.monotonic() < self._hedge_at:
            if any(asked.proof_sent for asked in self._asked.values()):
                return
            able = [asked for asked in able if not asked.knows_no_leader][:1]
            if able:
                self._hedge_at = time.monotonic() + _HEDGE_SECONDS
        for asked in able:
            asked.proof_sent = True
            self._ask(asked, methods.RANGE, quorum_read())

    def _is_proven(self) -> bool:
        return any(asked.gave_proof for asked in self._asked.values())

    def _is_complete(self) -> bool:
        if self._is_proven():
            return not self._candidates() and all(self._is_needless(call) for call in self._under_way)
        return not self._under_way and not self._candidates()

    def _is_needless(self, call: _Call) -> bool:
        is_spare_proof = call.name == methods.RANGE.name and not call.asked.is_refusing
        return is_spare_proof or call.asked.connection.endpoint in self._removed

    def _candidates(self) -> list[_Asked]:
        """Who may be asked for the proof: once there is one, only those that refuse everything else."""
        able = [asked for asked in self._asked.values() if asked.may_prove]
        return [asked for asked in able if asked.is_refusing] if self._is_proven() else able

    def _limit(self) -> float:
        return self._patient_until if self._is_proven() else self._end

    def _quorum(self) -> bool | None:
        if self._is_proven():
            return True
        asked_voter = any(asked.proof_sent and not asked.is_no_voter for asked in self._asked.values())
        return False if asked_voter else None

    def _let_go(self) -> None:
        """Stop what is still under way; a connection over which nothing came is not trusted again."""
        for call in self._under_way:
            self._on_call(call.name, grpc.StatusCode.CANCELLED.name, time.monotonic() - call.sent)
            call.future.cancel()
        for asked in self._asked.values():
            if not asked.is_heard:
                self._channels.discard(asked.connection)


def _note(asked: _Asked, reply: Message) -> None:
    if isinstance(reply, pb.StatusResponse):
        asked.status = status_of(reply)
    elif isinstance(reply, pb.MemberListResponse):
        asked.members = members_of(reply.members)
    else:
        asked.gave_proof = True
