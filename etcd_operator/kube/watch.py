"""One watch stream: typed events until it ends.

Promises
- Iterating yields events in the order of the API server, or raises one of our errors; an end of the iteration
  is a normal end: the server's `timeoutSeconds` passed, or the stream was aborted or silent.
- Triggering `abort` from another thread ends it within 100 ms, whatever it is doing, except for a TCP
  or TLS handshake.
- Always bounded: a silence longer than `Timeouts.silence` ends the iteration, and so does a duration longer
  than `timeout_seconds` plus a grace period (a stream that sends single bytes would never end).
- Half a line at the end of a broken stream is never an event.
- An object that does not fit its type is logged and its event has no object: the other events arrive, the
  position moves on, and a deletion still names the deleted object.

Why a silence is an end and not an error: the API server sends bookmarks about once a minute (`cacher.go`:
`defaultBookmarkFrequency`), but none at all for a resource that has never changed since it started. So 90 s
of silence mean either such a resource or a half-open connection; opening the stream again at the same
position costs one GET and distinguishes the two.
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from etcd_operator.decoding import read
from etcd_operator.errors import Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.connections import Abort
from etcd_operator.kube.decode import Unreadable, fitting, partial, unreadable
from etcd_operator.kube.failures import failure, parse_status
from etcd_operator.kube.resources import Selection
from etcd_operator.kube.transport import NoResponse, Stream

T = TypeVar("T")


class EventType(StrEnum):
    """What happened to the object; a bookmark reports only the version that the stream has reached."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Generic[T]):
    """One change."""

    type: EventType
    key: Key
    resource_version: str
    object: T | None  # None for a bookmark, and where the object does not fit its type
    unreadable: Unreadable | None = None  # what is known of such an object


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


@dataclass(eq=False)
class Watch(Generic[T]):
    """A single-use stream of the changes after `resource_version`.

    One thread opens and iterates; any thread may end the stream by triggering `abort`, after which
    the iteration stops without an error.
    """

    client: Client
    selection: Selection
    decode: type[T]
    _: KW_ONLY
    resource_version: str
    timeout_seconds: int
    abort: Abort
    _stream: Stream | None = None

    def open(self) -> Stream:
        """Send the request and wait until the server accepts it. `Gone` if the position is too old."""
        self._stream = self.client.open_watch(
            self.selection,
            resource_version=self.resource_version,
            timeout_seconds=self.timeout_seconds,
            abort=self.abort,
        )
        return self._stream

    def __iter__(self) -> Generator[Event[T], None, None]:
        with closing(self._stream or self.open()) as stream:
            yield from self._events(stream)

    def _events(self, stream: Stream) -> Iterator[Event[T]]:
        for line in self._lines(stream):
            event = self._event(line)
            if event is not None:
                yield event
            if self.abort.triggered:
                return

    def _lines(self, stream: Stream) -> Iterator[bytes]:
        """Complete lines only; whatever the last newline does not end is dropped."""
        pending: list[bytes] = []
        for chunk in self._chunks(stream):
            *complete, rest = chunk.split(b"\n")
            for line in complete:
                yield b"".join((*pending, line))
                pending.clear()
            if rest:
                pending.append(rest)

    def _chunks(self, stream: Stream) -> Iterator[bytes]:
        try:
            yield from stream.chunks()
        except TimeoutError:
            return
        except NoResponse:
            if not self.abort.triggered:
                raise

    def _event(self, line: bytes) -> Event[T] | None:
        if not line.strip():
            return None
        label = f"watch {self.selection.resource}"
        try:
            frame = read(line, _Frame)
        except msgspec.DecodeError as error:
            raise Unavailable(f"{label}: a line is not an event: {error}") from error
        if frame.type == "ERROR":
            status = parse_status(frame.object)
            raise failure(f"{label}, in the stream", status.code or 500, status)
        return self._typed(frame)

    def _typed(self, frame: _Frame) -> Event[T] | None:
        known = partial(frame.object).metadata
        version = known.resource_version
        try:
            kind = EventType(frame.type)
        except ValueError as error:
            unreadable(self.selection.resource, frame.object, error)
            kind = EventType.BOOKMARK
        if not version:
            unreadable(self.selection.resource, frame.object, ValueError("it has no resourceVersion"))
            return None
        value, odd = (None, None) if kind is EventType.BOOKMARK else self._decode(frame.object)
        return Event(type=kind, key=known.key, resource_version=version, object=value, unreadable=odd)

    def _decode(self, raw: msgspec.Raw) -> tuple[T | None, Unreadable | None]:
        try:
            return fitting(raw, self.decode), None
        except msgspec.ValidationError as error:
            return None, unreadable(self.selection.resource, raw, error)
