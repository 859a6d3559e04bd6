"""Keeps a store equal to a collection of the API server: list, then watch, until stopped.

Three loops, each readable alone: until stopped (`run`), one list and its streams (`_follow`), one stream
(`_stream`).

Promises
- The position moves with every event and bookmark; a new stream begins where the last one ended, so no event
  is missed or reported twice.
- 410, from the server or within a stream, causes a new list; so does a stream whose versions decrease, whose
  events are ignored. A position in the future (the API server's etcd was restored from a backup) is taken by
  the API server, which sends nothing until it gets there (kubernetes/kubernetes#107457): after a stream
  without any event the current version is read.
- After 429 it waits as long as the server requests, but at least the back-off and at most a minute, so that
  the cache does not go stale for longer.
- Failures back off, with jitter; the back-off is reset after 2 minutes without a failure.
- A half-open connection is noticed: each stream requests that the server ends it after 5 to 10 minutes
  (random, so that a thousand watchers do not return at once) and is closed after the silence that `watch`
  explains.
- A missing API (404: the CRD is not installed), missing rights and all other errors of the server are not
  fatal: `last_error` has them, and the reflector tries again.
- `stop()` from another thread ends `run` at once (except during a handshake: 3 s).

There are two back-offs, because two things fail. A server that *responds* with an error is overloaded,
starting, or will refuse for long: 0.8 s growing to 30 s. A server that does *not* respond is down, and
requests cost it nothing: 0.8 s growing to 2 s, so that work continues within 5 s of its return, however long
it was down. They are counted separately: an outage of a minute must not leave a wait of 30 s when the first
response is the 503 of a server that is still starting. The factor is 1.5, not 2: after t seconds of errors
the next wait is about t/2, so a start that takes 6 s costs 3 s more, not 6.
"""

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Generic, TypeVar

import structlog

from etcd_operator.api.meta import HasMetadata
from etcd_operator.clock import Clock
from etcd_operator.errors import Gone, OperatorError, Throttled, Unavailable
from etcd_operator.kube.client import Client
from etcd_operator.kube.connections import Abort
from etcd_operator.kube.resources import Selection
from etcd_operator.kube.store import Store, is_older
from etcd_operator.kube.transport import NoResponse
from etcd_operator.kube.watch import Event, EventType, Watch
from etcd_operator.pacing import Exponential

T = TypeVar("T", bound=HasMetadata)

AWAY = Exponential(0.8, cap=2.0, factor=1.5)
REFUSED = Exponential(0.8, cap=30.0, factor=1.5)
JITTER = 0.2
QUIET = 120.0
LONGEST_RETRY_AFTER = 60.0
STREAM_SECONDS = (300, 600)
SHORT_STREAM = 1.0

log = structlog.get_logger()


class _Backoff:
    """The wait before the next attempt after failures of one kind."""

    def __init__(self, waits: Exponential, clock: Clock, random: Callable[[], float]) -> None:
        self._waits = waits
        self._clock = clock
        self._random = random
        self._failures = 0
        self._last = clock.monotonic()

    def next(self) -> float:
        """Seconds: the plain delay and up to a fifth more."""
        now = self._clock.monotonic()
        if now - self._last >= QUIET:
            self._failures = 0
        self._last = now
        self._failures += 1
        return self._waits.after(self._failures) * (1 + JITTER * self._random())


class Reflector(Generic[T]):
    """Runs in one thread, is read and stopped from others.

    `random` returns numbers in [0, 1). `on_synced` is called after each list has been reported.
    """

    def __init__(
        self,
        client: Client,
        selection: Selection,
        decode: type[T],
        store: Store[T],
        *,
        clock: Clock,
        random: Callable[[], float],
        on_synced: Callable[[], None],
    ) -> None:
        self._client = client
        self._selection = selection
        self._decode = decode
        self._store = store
        self._clock = clock
        self._random = random
        self._on_synced = on_synced
        self._abort = Abort()
        self._stopping = threading.Condition()
        self._away = _Backoff(AWAY, clock, random)
        self._refused = _Backoff(REFUSED, clock, random)
        self._position = ""
        self.lists_begun = self.lists_stored = 0
        """How many lists were begun, and the number of the last one that is stored."""
        self.last_error: OperatorError | None = None
        """Why the store may be out of date; None while a stream is open."""
        self._failing_since: float | None = None

    @property
    def failing_for(self) -> float:
        """For how many seconds `last_error`, or another error, has been there; 0 while a stream is open."""
        since = self._failing_since
        return self._clock.monotonic() - since if since is not None else 0.0

    def run(self) -> None:
        """List and watch until `stop` is called."""
        while not self._abort.triggered:
            try:
                self._follow()
            except OperatorError as error:
                if not self._abort.triggered:
                    self._failed(error)

    def stop(self) -> None:
        """Make `run` return; never blocks."""
        self._abort.trigger()
        with self._stopping:
            self._stopping.notify_all()

    def _follow(self) -> None:
        if not self._position:
            self._list()
        while not self._abort.triggered:
            self._stream()

    def _list(self) -> None:
        self.lists_begun += 1
        listing = self._client.list(
            self._selection.resource,
            self._decode,
            namespace=self._selection.namespace,
            label_selector=self._selection.label_selector,
            abort=self._abort,
        )
        self._store.replace(listing.items, listing.resource_version, unreadable=listing.unreadable)
        self._position, self.lists_stored = listing.resource_version, self.lists_begun
        self._on_synced()

    def _stream(self) -> None:
        shortest, longest = STREAM_SECONDS
        watch = Watch(
            self._client,
            self._selection,
            self._decode,
            resource_version=self._position,
            timeout_seconds=int(shortest + (longest - shortest) * self._random()),
            abort=self._abort,
        )
        watch.open()
        self.last_error = self._failing_since = None
        began, opened_at = self._clock.monotonic(), self._position
        with closing(iter(watch)) as events:
            for event in events:
                self._apply(event)
        if self._clock.monotonic() - began < SHORT_STREAM:
            raise Unavailable(f"watch {self._selection.resource}: the stream ended immediately")
        if self._position == opened_at and not self._abort.triggered:
            self._assert_reached()

    def _assert_reached(self) -> None:
        version = self._client.current_version(self._selection, self._abort)
        if is_older(version, self._position):
            raise self._decreased(version)

    def _decreased(self, version: str) -> Gone:
        resource = self._selection.resource
        return Gone(f"watch {resource}: versions decreased from {self._position} to {version}")

    def _apply(self, event: Event[T]) -> None:
        version = event.resource_version
        if is_older(version, self._position):
            raise self._decreased(version)
        if event.type is EventType.DELETED:
            self._store.remove(event.key, version)
        elif event.object is not None:
            self._store.put(event.object)
        elif event.unreadable is not None:
            self._store.turned_unreadable(event.unreadable, version)
        else:
            self._store.advance(version)
        self._position = version

    def _failed(self, error: OperatorError) -> None:
        """Remember the error, decide where to resume, and wait."""
        self.last_error = error
        if self._failing_since is None:
            self._failing_since = self._clock.monotonic()
        if isinstance(error, Gone):
            self._position = ""
        delay = self._delay(error)
        log.warning(
            "watch_failed",
            resource=str(self._selection.resource),
            namespace=self._selection.namespace,
            error=str(error),
            retry_in=round(delay, 1),
        )
        ends = self._clock.monotonic() + delay
        with self._stopping:
            while not self._abort.triggered and (left := ends - self._clock.monotonic()) > 0:
                self._clock.wait(self._stopping, left)

    def _delay(self, error: OperatorError) -> float:
        if isinstance(error, NoResponse):
            return self._away.next()
        delay = self._refused.next()
        if isinstance(error, Throttled):
            return max(delay, min(error.retry_after, LONGEST_RETRY_AFTER))
        return delay
