"""Clients that watch: streams that stay open on each member, as those of Kubernetes' API servers do.

An etcd that is stopped waits for open streams up to 7 s (`ReqTimeout` in its `embed.Etcd.Close`: 5 s and two
election timeouts of 1 s), so a roll without watching clients is faster than any that production sees.
"""

import threading
from collections.abc import Callable, Iterator

import grpc

from e2e.support.pace import Paced
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, endpoint
from etcd_operator.errors import OperatorError

PATH = "/etcdserverpb.Watch/Watch"
ALL_KEYS = bytes.fromhex("0a060a0100120100")
"""A WatchRequest whose create_request has key and range_end `\\0`: the operator itself never watches etcd."""

FOLLOW_SECONDS = 0.2
"""Seconds between two looks at the members' addresses, and at streams that have ended."""


class Streams:
    """`per_member` watches of all keys on each member, in a `with`; one that ends is opened again.

    A watch goes on until its member ends it, also when the address is no member's any more: clients learn of
    a stop from etcd alone. addresses: the members' addresses now; read again and again.
    """

    def __init__(self, addresses: Callable[[], list[str]], *, per_member: int) -> None:
        self._addresses = addresses
        self._per_member = per_member
        self._open: dict[tuple[str, int], _Stream] = {}
        self._discovery = Paced(self._follow, interval=FOLLOW_SECONDS, name="watch streams")

    def __enter__(self) -> "Streams":
        self._discovery.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._discovery.stop()
        for stream in self._open.values():
            stream.close()

    def confirmed(self) -> int:
        """How many streams are open, each confirmed by its member."""
        return sum(stream.is_confirmed for stream in list(self._open.values()))

    def _follow(self) -> None:
        try:
            now = self._addresses()
        except OperatorError:
            return  # the API server is away: the streams that are open stay
        wanted = {(address, number) for address in now for number in range(self._per_member)}
        for place, stream in list(self._open.items()):
            if stream.has_ended:
                self._open.pop(place).close()
        for address, number in wanted - self._open.keys():
            self._open[address, number] = _Stream(address)


class _Stream:
    """One connection with one watch, as of a client of its own."""

    def __init__(self, address: str) -> None:
        self.is_confirmed = False
        self.has_ended = False
        target = endpoint(address, CLIENT_PORT)
        self._channel = grpc.insecure_channel(target, options=(("grpc.enable_http_proxy", 0),))
        self._is_closed = threading.Event()
        watch: grpc.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(PATH)
        self._call = watch(self._request())
        self._thread = threading.Thread(target=self._read, name=f"watch {target}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cancel the watch and close its connection."""
        self._is_closed.set()
        self._call.cancel()
        self._thread.join(10)
        self._channel.close()
        self.is_confirmed = False

    def _request(self) -> Iterator[bytes]:
        yield ALL_KEYS
        self._is_closed.wait()  # the end of the requests would end the stream

    def _read(self) -> None:
        try:
            for _ in self._call:
                self.is_confirmed = True
        except grpc.RpcError:
            pass  # the member has ended; the next look opens another one
        finally:
            self.is_confirmed, self.has_ended = False, True
