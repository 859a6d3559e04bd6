"""A client that writes at a steady rate through all members, and what it felt: failed puts and pauses.

It holds one gRPC channel over all members, balanced round robin, as etcd's own client does, with gRPC's own
back-off and no retries of its own: a put that was never sent goes to another member, one that was sent and
not answered has failed. Every put has a key of its own, so that a lost one cannot hide behind a later one.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

import grpc

from e2e.support.intervals import Interval, longest_gap, lost_writes
from e2e.support.pace import Paced
from etcd_operator.build.urls import CLIENT_PORT, endpoint
from etcd_operator.errors import OperatorError
from etcd_operator.etcd import methods
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.channel import Channels

PUT_WITHIN = 1.0
"""Seconds after which a put has failed."""

LOOK_EVERY = 0.2
"""Seconds between two looks for members that came or went."""

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
    """Writes in a `with`; ask what happened afterwards, by intervals of the monotonic clock.

    addresses: the members' addresses now; asked again all the time.
    """

    def __init__(
        self, addresses: Callable[[], list[str]], *, per_second: float = 100.0, prefix: str = "steady"
    ) -> None:
        self._addresses = addresses
        self._prefix = prefix
        self._known: list[str] = []
        self._channel: grpc.Channel | None = None
        self._next: grpc.Channel | None = None
        self._lock = threading.Lock()
        self._look = Paced(self._follow, interval=LOOK_EVERY, name="steady-writer's members")
        self._write = Paced(self._put, interval=1.0 / per_second, name="steady-writer")
        self._puts: list[Put] = []

    def __enter__(self) -> "SteadyWriter":
        self._follow()
        self._look.start()
        self._write.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._look.stop()
        self._write.stop()
        self._take_next()
        if self._channel is not None:
            self._channel.close()

    def acknowledged(self, within: Interval | None = None) -> int:
        """How many puts that began in `within` (always: None) were acknowledged."""
        return sum(not put.failure for put in self._of(within))

    def failures(self, within: Interval | None = None) -> Counter[str]:
        """How many puts that began in `within` failed, by the reason."""
        return Counter(put.failure for put in self._of(within) if put.failure)

    def longest_gap(self, within: Interval) -> float:
        """The longest time of `within` without an acknowledgement, in seconds."""
        return longest_gap((put.ended for put in list(self._puts) if not put.failure), within)

    def lost(self) -> list[str]:
        """The keys that some member does not have as they were acknowledged; ask after the `with`."""
        acknowledged = {put.key: put.revision for put in self._puts if not put.failure}
        assert acknowledged, "not one put was acknowledged"
        lost: set[str] = set()
        channels = Channels()
        try:
            for address in self._addresses():
                lost.update(lost_writes(acknowledged, self._stored(channels, address)))
        finally:
            channels.close()
        return sorted(lost)

    def _of(self, within: Interval | None) -> list[Put]:
        puts = list(self._puts)
        return [put for put in puts if within is None or within.start <= put.began < within.end]

    def _stored(self, channels: Channels, address: str) -> dict[str, int]:
        """Revision by key, read through one member and confirmed by a quorum."""
        read = channels.connection(endpoint(address, CLIENT_PORT)).unary(methods.RANGE)
        begin, end = f"{self._prefix}/".encode(), f"{self._prefix}0".encode()  # 0 comes after /
        try:
            answer = read(pb.RangeRequest(key=begin, range_end=end, keys_only=True), timeout=10)
        except grpc.RpcError as error:
            raise AssertionError(
                f"{address} cannot be read: {error.code().name}: {error.details()}"
            ) from error
        return {found.key.decode(): found.mod_revision for found in answer.kvs}

    def _put(self) -> None:
        self._take_next()
        key, began = f"{self._prefix}/{len(self._puts):08}", time.monotonic()
        if self._channel is None:
            self._puts.append(Put(key, began, began, failure="no member has an address"))
            return
        call = self._channel.unary_unary(
            methods.PUT.path,
            request_serializer=pb.PutRequest.SerializeToString,
            response_deserializer=pb.PutResponse.FromString,
        )
        try:
            answer = call(pb.PutRequest(key=key.encode(), value=b"x"), timeout=PUT_WITHIN)
        except grpc.RpcError as error:
            # gRPC adds addresses and causes that differ from put to put.
            failure = f"{error.code().name}: {(error.details() or '').partition('; last error')[0]}"
            self._puts.append(Put(key, began, time.monotonic(), failure=failure))
            return
        self._puts.append(Put(key, began, time.monotonic(), revision=answer.header.revision))

    def _take_next(self) -> None:
        """Use the newer channel, if there is one; only here, where no put is under way."""
        with self._lock:
            new, self._next = self._next, None
        if new is not None:
            old, self._channel = self._channel, new
            if old is not None:
                old.close()

    def _follow(self) -> None:
        """Make a channel over the members there are now, and have it connected before it is used."""
        try:
            now = sorted(self._addresses())
        except OperatorError:
            return  # the API server is away: the members known so far are written to
        if not now or now == self._known:
            return
        targets = ",".join(endpoint(address, CLIENT_PORT) for address in now)
        scheme = "ipv6" if ":" in now[0] else "ipv4"
        channel = grpc.insecure_channel(f"{scheme}:{targets}", options=_OPTIONS)
        try:
            grpc.channel_ready_future(channel).result(timeout=1.0)
        except grpc.FutureTimeoutError:
            channel.close()
            return  # looked at again soon
        self._known = now
        with self._lock:
            unused, self._next = self._next, channel
        if unused is not None:
            unused.close()
