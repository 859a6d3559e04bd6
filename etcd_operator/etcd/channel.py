"""Connections to the members of one etcd cluster.

Promises:
- one connection per endpoint, opened on first use and kept open while it works, so that probing a settled
  cluster needs no handshakes and no growing number of files or threads;
- a connection that failed is discarded: the next call opens a new one at once instead of waiting for gRPC's
  back-off against an address that may belong to another pod by then;
- closing ends the calls in flight with `Unavailable`;
- with credentials, a server is verified before it is sent anything, by the name that it must have; to an
  endpoint whose name is not known there is no connection;
- a reply above `LARGEST_REPLY` is neither received in full nor decoded: the call fails.

By default gRPC shares connections between the channels of a process and uses HTTP_PROXY: both are disabled.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import grpc
import grpc.experimental

from etcd_operator.errors import Unavailable
from etcd_operator.etcd.methods import Method, Request, Response

LARGEST_REPLY = 256 * 1024
"""In bytes. An endpoint that a user names may be any server; etcd sends a snapshot in messages of 32 KiB."""

_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.max_receive_message_length", LARGEST_REPLY),
    # etcd closes connections that are pinged more often than every 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    # A stream is received in the thread that reads it, which takes half of the CPU time.
    (grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsCredentials:
    """The CA and the client certificate, as PEM."""

    ca: bytes
    certificate: bytes | None = None  # with its key, or not at all
    key: bytes | None = field(default=None, repr=False)
    server_name: str | None = None  # replaces the endpoint's host in the check
    # whether each endpoint has a name of its own, see `Channels.identify`
    by_name: bool = False


class Connection:
    """A channel to one endpoint (`host:port`) that prepares each call once."""

    def __init__(self, endpoint: str, credentials: TlsCredentials | None) -> None:
        self.endpoint = endpoint
        self._channel = _open(endpoint, credentials)
        self._unary: dict[str, Callable[..., object]] = {}

    def unary(self, method: Method[Request, Response]) -> "grpc.UnaryUnaryMultiCallable[Request, Response]":
        """The callable of a request-reply method."""
        call = self._unary.get(method.path)
        if call is None:
            call = self._unary[method.path] = self._channel.unary_unary(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
        return call  # type: ignore[return-value]  # keyed by the method, which carries the types

    def stream(self, method: Method[Request, Response]) -> "grpc.UnaryStreamMultiCallable[Request, Response]":
        """The callable of a method that replies with a stream."""
        return self._channel.unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )

    def close(self) -> None:
        """End the calls in flight and close."""
        self._channel.close()


class Channels:
    """The open connections of one cluster. Safe to use from any thread.

    A long stream (a snapshot) needs `Channels` of its own: the probe closes connections to members that are
    slow to respond, and with them all their calls in flight.
    """

    def __init__(self, credentials: TlsCredentials | None = None) -> None:
        self._lock = threading.Lock()
        self._credentials = credentials
        self._names: dict[str, str] = {}
        self._open: dict[str, Connection] = {}
        self._closed = False

    @property
    def credentials(self) -> TlsCredentials | None:
        """With which it connects."""
        return self._credentials

    def identify(self, names: Mapping[str, str]) -> None:
        """The names that the servers at these endpoints must have from now on, with credentials `by_name`.

        A connection to an endpoint that had another name is closed: the address has another owner.
        """
        with self._lock:
            others = [at for at, name in names.items() if self._names.get(at, name) != name]
            outdated = [self._open.pop(at) for at in others if at in self._open]
            self._names.update(names)
        _close(outdated)

    def connection(self, endpoint: str) -> Connection:
        """The connection to `endpoint` (`host:port`); connects in the background when first used.

        Raises `Unavailable` once closed, and for a server whose name is not known.
        """
        with self._lock:
            if self._closed:
                raise Unavailable(f"connections are closed, not calling {endpoint}")
            connection = self._open.get(endpoint)
            if connection is None:
                connection = self._open[endpoint] = Connection(endpoint, self._credentials_for(endpoint))
            return connection

    def _credentials_for(self, endpoint: str) -> TlsCredentials | None:
        credentials = self._credentials
        if credentials is None or not credentials.by_name:
            return credentials
        name = self._names.get(endpoint)
        if name is None:
            raise Unavailable(f"the name of the server at {endpoint} is not known: not calling it")
        return replace(credentials, server_name=name)

    def discard(self, connection: Connection) -> None:
        """Close a connection that failed; a newer one to the same endpoint is kept."""
        with self._lock:
            if self._open.get(connection.endpoint) is connection:
                del self._open[connection.endpoint]
        connection.close()

    def retain(self, endpoints: Collection[str]) -> None:
        """Close the connections to all other endpoints."""
        with self._lock:
            unused = [self._open.pop(endpoint) for endpoint in set(self._open).difference(endpoints)]
            self._names = {at: name for at, name in self._names.items() if at in endpoints}
        _close(unused)

    def close(self) -> None:
        """Close all connections permanently."""
        with self._lock:
            self._closed = True
            old, self._open = self._open, {}
        _close(old.values())


def _close(connections: Collection[Connection]) -> None:
    for connection in connections:
        connection.close()


def _open(endpoint: str, credentials: TlsCredentials | None) -> grpc.Channel:
    if credentials is None:
        return grpc.insecure_channel(endpoint, options=_OPTIONS)
    options = _OPTIONS
    if credentials.server_name is not None:
        options += (("grpc.ssl_target_name_override", credentials.server_name),)
    tls = grpc.ssl_channel_credentials(credentials.ca, credentials.key, credentials.certificate)
    return grpc.secure_channel(endpoint, tls, options=options)


Message = TypeVar("Message")


class StreamStalled(grpc.RpcError):
    """Nothing arrived for the time limit; translated like an error of gRPC."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def code(self) -> grpc.StatusCode:
        """The code of a passed deadline."""
        return grpc.StatusCode.DEADLINE_EXCEEDED

    def details(self) -> str:
        """What happened, for people."""
        return f"no data for {self._seconds:g} s"


def limit_silence(
    replies: Iterator[Message], seconds: float, cancel: Callable[[], object]
) -> Iterator[Message]:
    """Yield the replies; `cancel` the stream and raise `StreamStalled` if none arrives for `seconds`.

    Only the time spent waiting for a reply counts, not the time that the caller takes to process one.
    `cancel` is called from another thread and must make a blocked `next(replies)` raise `grpc.RpcError`.
    """
    watchdog = _Watchdog(seconds, cancel)
    watchdog.start()
    try:
        while True:
            watchdog.waiting_since = time.monotonic()
            reply = next(replies, None)
            watchdog.waiting_since = None
            if reply is None:
                return
            yield reply
    except grpc.RpcError as error:
        if watchdog.has_cancelled:
            raise StreamStalled(seconds) from error
        raise
    finally:
        watchdog.ended.set()


class _Watchdog(threading.Thread):
    """Cancels once. Reads `waiting_since` without a lock: a stale value delays the cancellation, no more."""

    def __init__(self, seconds: float, cancel: Callable[[], object]) -> None:
        super().__init__(name="stream-watchdog", daemon=True)
        self._seconds = seconds
        self._cancel = cancel
        self.waiting_since: float | None = None
        self.has_cancelled = False
        self.ended = threading.Event()

    def run(self) -> None:
        left = self._seconds
        while not self.ended.wait(left):
            since = self.waiting_since
            left = self._seconds if since is None else since + self._seconds - time.monotonic()
            if left <= 0:
                self.has_cancelled = True
                self._cancel()
                return
