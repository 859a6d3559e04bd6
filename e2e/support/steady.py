"""A client that writes at a steady rate through all members, and what it noticed: failed puts and pauses.

It holds one gRPC channel over all members, balanced round robin, as etcd's own client does, with gRPC's own
back-off and no retries of its own: a put that was never sent is sent to another member, one that was sent and
not answered has failed. Every put has a key of its own, so that a lost one cannot hide behind a later one.

No put waits for the one before, as many clients would write: one that waits for the answer of a member that
has ended would hide what the others notice meanwhile.
"""

import itertools
import json
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from e2e.support.intervals import Interval, longest_gap, lost_writes, outages
from e2e.support.keys import PUT
from e2e.support.pace import Paced
from e2e.support.waiting import answered, wait_until
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, endpoint
from etcd_operator.errors import OperatorError
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.channel import Channels, TlsCredentials

PUT_WITHIN = 1.0
"""Seconds after which a put has failed, by default."""

DISCOVERY_SECONDS = 0.2
"""Seconds between two reads of the members' addresses."""

PAGE = 2000
"""Keys that are read at once: a reply has a limit."""

Access = Callable[[], TlsCredentials | None]
"""With what to connect from now on; None: without TLS."""

_OPTIONS = (
    ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True)
class Put:
    """One put; `failure` is empty if it was acknowledged, at `revision`."""

    key: str
    began: float
    ended: float
    revision: int = 0
    failure: str = ""


class SteadyWriter:
    """Writes in a `with`; afterwards it has the figures, by intervals of the monotonic clock.

    addresses, access: the members' addresses, and the credentials, now; read again and again.
    """

    def __init__(
        self,
        addresses: Callable[[], list[str]],
        *,
        per_second: float = 100.0,
        prefix: str = "steady",
        access: Access = lambda: None,
        put_within: float = PUT_WITHIN,
    ) -> None:
        self._addresses = addresses
        self._access = access
        self._prefix = prefix
        self._put_within = put_within
        self._known: tuple[list[str], TlsCredentials | None] = ([], None)
        self._channels: list[grpc.Channel] = []  # the newest is written to
        self._numbers = itertools.count()
        self._pending: set[grpc.Future[pb.PutResponse]] = set()
        self._discovery = Paced(self._follow, interval=DISCOVERY_SECONDS, name="steady-writer's members")
        self._write = Paced(self._put, interval=1.0 / per_second, name="steady-writer")
        self._puts: list[Put] = []

    def __enter__(self) -> "SteadyWriter":
        self._follow()
        self._discovery.start()
        self._write.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._discovery.stop()
        self._write.stop()
        wait_until(lambda: not self._pending, "the last puts are answered or timed out")
        for channel in self._channels:
            channel.close()

    @property
    def credentials(self) -> TlsCredentials | None:
        """With what it is connected."""
        return self._known[1]

    def go_on(self, more: int = 100) -> None:
        """Wait until so many puts that begin from now on are acknowledged."""
        began = Interval(time.monotonic(), math.inf)
        wait_until(lambda: self.acknowledged(began) >= more, f"{more} writes are acknowledged")

    def acknowledged(self, within: Interval | None = None) -> int:
        """How many puts that began in `within` (always: None) were acknowledged."""
        return sum(not put.failure for put in self._of(within))

    def keys(self) -> list[str]:
        """The keys of the acknowledged puts, in the order of the answers."""
        return [put.key for put in list(self._puts) if not put.failure]

    def failures(self, within: Interval | None = None) -> Counter[str]:
        """How many puts that began in `within` failed, by the reason."""
        return Counter(put.failure for put in self._of(within) if put.failure)

    def longest_gap(self, within: Interval) -> float:
        """The longest time of `within` without an acknowledgement, in seconds."""
        return longest_gap((put.ended for put in list(self._puts) if not put.failure), within)

    def outages(self, within: Interval, *, least: float) -> list[Interval]:
        """The times of `within` without an acknowledgement that lasted at least so many seconds."""
        return outages((put.ended for put in list(self._puts) if not put.failure), within, least=least)

    def latencies(self, within: Interval) -> list[float]:
        """How long each put that began in `within` took until it was acknowledged, in seconds."""
        return [put.ended - put.began for put in self._of(within) if not put.failure]

    def lost(self) -> list[str]:
        """The keys that some member does not have as they were acknowledged; call it after the `with`."""
        acknowledged = {put.key: put.revision for put in self._puts if not put.failure}
        assert acknowledged, "not one put was acknowledged"
        lost: set[str] = set()
        channels = Channels(self._access())
        try:
            for address in self._addresses():
                lost.update(lost_writes(acknowledged, self._stored_at(channels, address)))
        finally:
            channels.close()
        return sorted(lost)

    def _of(self, within: Interval | None) -> list[Put]:
        puts = list(self._puts)
        return [put for put in puts if within is None or within.start <= put.began < within.end]

    def _stored_at(self, channels: Channels, address: str) -> dict[str, int]:
        return answered(lambda: self._stored(channels, address), f"{address} is read")

    def _stored(self, channels: Channels, address: str) -> dict[str, int]:
        """Revision by key, read through one member and confirmed by a quorum."""
        read = channels.connection(endpoint(address, CLIENT_PORT)).unary(methods.RANGE)
        begin, end = f"{self._prefix}/".encode(), f"{self._prefix}0".encode()  # 0 comes after /
        stored: dict[str, int] = {}
        while True:
            request = pb.RangeRequest(key=begin, range_end=end, limit=PAGE, keys_only=True)
            try:
                answer = read(request, timeout=10)
            except grpc.RpcError as error:
                raise AssertionError(
                    f"{address} cannot be read: {error.code().name}: {error.details()}"
                ) from error
            stored |= {found.key.decode(): found.mod_revision for found in answer.kvs}
            if not answer.more:
                return stored
            begin = answer.kvs[-1].key + b"\0"

    def _put(self) -> None:
        key, began = f"{self._prefix}/{next(self._numbers):08}", time.monotonic()
        if not self._channels:
            self._puts.append(Put(key, began, began, failure="no member has an address"))
            return
        put = self._channels[-1].unary_unary(
            PUT.path,
            request_serializer=pb.PutRequest.SerializeToString,
            response_deserializer=pb.PutResponse.FromString,
        )
        call = put.future(pb.PutRequest(key=key.encode(), value=b"x"), timeout=self._put_within)
        self._pending.add(call)
        call.add_done_callback(lambda call: self._note(key, began, call))

    def _note(self, key: str, began: float, call: "grpc.Future[pb.PutResponse]") -> None:
        """In a thread of gRPC, when a put is answered or timed out."""
        ended = time.monotonic()
        try:
            revision, failure = call.result().header.revision, ""
        except grpc.RpcError as error:
            # gRPC adds addresses and causes that differ from put to put.
            details = (error.details() or "").partition("; last error")[0]
            revision, failure = 0, f"{error.code().name}: {details}"
        self._puts.append(Put(key, began, ended, revision=revision, failure=failure))
        self._pending.discard(call)

    def _follow(self) -> None:
        """Make a channel over the members there are now, and have it connected before it is used."""
        try:
            now = sorted(self._addresses()), self._access()
        except OperatorError:
            return  # the API server is away: the members known so far are written to
        if not now[0] or now == self._known:
            return
        channel = _channel(*now)
        try:
            grpc.channel_ready_future(channel).result(timeout=1.0)
        except grpc.FutureTimeoutError:
            channel.close()
            return  # tried again soon
        self._known = now
        self._channels.append(channel)  # those before are closed at the end: puts are under way on them


def _channel(addresses: list[str], credentials: TlsCredentials | None) -> grpc.Channel:
    targets = ",".join(endpoint(address, CLIENT_PORT) for address in addresses)
    target = f"{'ipv6' if ':' in addresses[0] else 'ipv4'}:{targets}"
    if credentials is None:
        return grpc.insecure_channel(target, options=_OPTIONS)
    options = (*_OPTIONS, ("grpc.ssl_target_name_override", credentials.server_name))
    tls = grpc.ssl_channel_credentials(credentials.ca, credentials.key, credentials.certificate)
    return grpc.secure_channel(target, tls, options=options)
