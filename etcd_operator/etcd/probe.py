"""Asks all members of one cluster at once what they are, within one deadline.

Promises:
- every endpoint is asked for its Status and its own (serializable) member list, in parallel;
- `quorum` is proven by a linearizable read, never concluded from a Status, which names a
  lost leader for seconds;
- the deadline holds whatever the members do: stopped with SIGSTOP, packets dropped, half
  open connections. Silence is a value, `NoAnswer`, not an exception;
- once a quorum is proven, silent members are given no more than `patience` seconds from the
  start: a node that is down must not slow the probe of the healthy rest;
- voters that are no majority by their own lists are given no more than `Known.proof_patience` seconds for
  the proof: it can come only with the help of a member that was not asked;
- a member that requires a user is asked for the proof in any case: nothing else shows its health;
- no thread is kept per member and a healthy cluster costs no handshakes.

It changes nothing and raises nothing but `Unavailable` for closed `Channels`, and `NotProbed` when this
process has no file descriptors left for connections: the silence would be its own.
"""

import math
import queue
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import grpc

from etcd_operator.errors import Forbidden, OperatorError, Unavailable
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import QUORUM_READ, OnCall
from etcd_operator.etcd.errors import NotForLearner, NotProbed, is_connection_lost, is_own_lack, translate
from etcd_operator.etcd.methods import Method, Request, Response
from etcd_operator.etcd.probe_target import PendingCall, Target
from etcd_operator.etcd.values import MemberReply, MetricsPage


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The result of probing a cluster, by endpoint."""

    replies: Mapping[str, MemberReply]
    # True: proven; False: a voter was asked and could not prove it in time; None: nobody could be asked
    quorum: bool | None
    # time was over before all calls had ended, and more time might change the result
    is_cut_short: bool = False
    # metrics pages, added by the prober, which reads those that a pass needs
    pages: Mapping[str, MetricsPage] = field(default_factory=dict)
    # seconds since a silent member last answered, or was first asked; added by the prober
    silent_for: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a caller knows that asks all members that there are."""

    # the endpoints of no members any more, asked for again and again: nothing of theirs is waited for
    gone: Callable[[], frozenset[str]] = frozenset
    proof_patience: float = math.inf  # seconds for the proof of a quorum by too few voters


NOT_ALL = Known()
"""Of a caller that may ask only some of the members."""


def probe(
    channels: Channels,
    endpoints: Iterable[str],
    *,
    deadline: float = 2.0,
    patience: float = 0.5,
    known: Known = NOT_ALL,
    token: str | None = None,
    on_call: OnCall = lambda *_: None,
) -> Probe:
    """Probe the members at `endpoints` (`host:port`); back within `deadline` seconds.

    known: of a caller that asks all members that it knows.
    """
    metadata = (("token", token),) if token is not None else ()
    return _Round(
        channels=channels,
        deadline=deadline,
        patience=patience,
        known=known,
        metadata=metadata,
        on_call=on_call,
    ).run(endpoints)


# How long one voter may take before the others are asked for the proof as well: it may be
# partitioned from a quorum that they still have.
_HEDGE_SECONDS = 0.15

# How long it may take to notice that a member is gone.
_LOOK_AGAIN_SECONDS = 0.1

_SILENCE = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


@dataclass(kw_only=True)
class _Round:
    """One probe under way. gRPC's threads put replies on a queue; all else runs on the caller's thread."""

    channels: Channels
    deadline: float
    patience: float
    known: Known
    metadata: tuple[tuple[str, str], ...]
    on_call: OnCall
    _replies: queue.SimpleQueue[PendingCall] = field(default_factory=queue.SimpleQueue)
    _under_way: set[PendingCall] = field(default_factory=set)
    _targets: dict[str, Target] = field(default_factory=dict)
    _not_asked: str = ""

    def __post_init__(self) -> None:
        self._start = time.monotonic()
        self._end = self._start + self.deadline
        self._patient_until = min(self._end, self._start + self.patience)
        self._hedge_at = self._start + _HEDGE_SECONDS
        self._proof_until = self._end

    def run(self, endpoints: Iterable[str]) -> Probe:
        for endpoint in dict.fromkeys(endpoints):
            target = self._targets[endpoint] = Target(connection=self.channels.connection(endpoint))
            self._ask(target, methods.STATUS, pb.StatusRequest())
            self._ask(target, methods.MEMBER_LIST, pb.MemberListRequest())
        try:
            while not self._is_complete() and time.monotonic() < self._limit():
                self._receive()
                self._seek_proof()
        finally:
            is_cut_short = not self._is_complete() and not self._is_minority()
            self._cancel()
        if self._not_asked:
            raise NotProbed(f"{self._not_asked} was not asked: this process has no file descriptor left")
        replies = {endpoint: target.reply() for endpoint, target in self._targets.items()}
        return Probe(replies=replies, quorum=self._quorum(), is_cut_short=is_cut_short)

    def _ask(self, target: Target, method: Method[Request, Response], request: Request) -> None:
        sent = time.monotonic()
        try:
            future = target.connection.unary(method).future(
                request, timeout=max(self._end - sent, 0.0), metadata=self.metadata
            )
        except ValueError as error:  # another thread closed the channel
            target.error = target.error or Unavailable(str(error))
            return
        call = PendingCall(target=target, name=method.name, sent=sent, future=future)
        self._under_way.add(call)
        future.add_done_callback(lambda _: self._replies.put(call))

    def _receive(self) -> None:
        until = min(self._limit(), self._hedge_at) if self._candidates() else self._limit()
        try:
            call = self._replies.get(timeout=min(max(until - time.monotonic(), 0.0), _LOOK_AGAIN_SECONDS))
        except queue.Empty:
            return
        self._under_way.remove(call)
        code, details = call.future.code(), call.future.details() or ""
        self.on_call(call.name, code.name, time.monotonic() - call.sent)
        if code is grpc.StatusCode.OK:
            call.target.record(call.future.result())
            return
        if code not in _SILENCE and not is_connection_lost(code, details):
            call.target.has_answered = True
        if is_own_lack(details):
            self._not_asked = call.target.connection.endpoint
        where = f"{call.name} at {call.target.connection.endpoint}"
        self._record_error(call, translate(code, details, call=where, is_write=False))

    def _record_error(self, call: PendingCall, error: OperatorError) -> None:
        if call.name == methods.STATUS.name:
            call.target.error = error
        elif call.name == methods.RANGE.name:
            # etcd confirms the read before it checks rights (see EtcdClient.has_quorum).
            call.target.gave_proof = isinstance(error, Forbidden)
            call.target.is_no_voter = isinstance(error, NotForLearner)
            self._hedge_at = self._start

    def _seek_proof(self) -> None:
        """Ask the first voter that knows a leader; when it fails or hesitates, all that may prove.

        While nothing is under way, nobody else can turn out to know one.
        """
        able = self._candidates()
        if not self._is_proven() and self._under_way and time.monotonic() < self._hedge_at:
            if any(target.proof_sent for target in self._targets.values()):
                return
            able = [target for target in able if not target.knows_no_leader][:1]
            if able:
                self._hedge_at = time.monotonic() + _HEDGE_SECONDS
        for target in able:
            target.proof_sent = True
            self._proof_until = min(self._end, time.monotonic() + self.known.proof_patience)
            self._ask(target, methods.RANGE, QUORUM_READ)

    def _is_proven(self) -> bool:
        return any(target.gave_proof for target in self._targets.values())

    def _is_complete(self) -> bool:
        if self._is_proven():
            return not self._candidates() and all(self._is_needless(call) for call in self._under_way)
        return not self._under_way and not self._candidates()

    def _is_needless(self, call: PendingCall) -> bool:
        is_spare_proof = call.name == methods.RANGE.name and not call.target.is_refusing
        return is_spare_proof or call.target.connection.endpoint in self.known.gone()

    def _candidates(self) -> list[Target]:
        """Who may be asked for the proof: once there is one, only those that refuse everything else."""
        able = [target for target in self._targets.values() if target.may_prove]
        return [target for target in able if target.is_refusing] if self._is_proven() else able

    def _limit(self) -> float:
        if self._is_proven():
            return self._patient_until
        return self._proof_until if self._is_minority() else self._end

    def _is_minority(self) -> bool:
        """Whether all have replied in full, and there are fewer voters than each needs for a quorum."""
        gone = self.known.gone()
        targets = [target for endpoint, target in self._targets.items() if endpoint not in gone]
        there = sum(target.is_voter for target in targets)
        return all(target.status is not None and target.majority > there for target in targets)

    def _quorum(self) -> bool | None:
        if self._is_proven():
            return True
        has_asked_voter = any(each.proof_sent and not each.is_no_voter for each in self._targets.values())
        return False if has_asked_voter else None

    def _cancel(self) -> None:
        """Stop what is still under way; a connection over which nothing came is not trusted again."""
        for call in self._under_way:
            self.on_call(call.name, grpc.StatusCode.CANCELLED.name, time.monotonic() - call.sent)
            call.future.cancel()
        for target in self._targets.values():
            if not target.has_answered:
                self.channels.discard(target.connection)
