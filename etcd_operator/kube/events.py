"""Kubernetes Events: what the operator did or will not do, recorded on the object concerned.

Promises
- `Recorder.record` never blocks and never raises: it puts the Event on a bounded queue, which a thread of its
  own drains. Events that do not fit are dropped and counted.
- The same Event (object, type, reason, message) recorded again increases the count of the first one.
- One object cannot flood the API server: `burst` at once, then one every `refill_seconds`. client-go allows
  25 and one in five minutes. Here a cluster of seven members causes some 50 different Events while it is
  created and upgraded, and each is a step that someone may have to explain: 60, and one in 30 s.
- A write that fails is retried a few times, unless a retry cannot help; then the Event is dropped, counted,
  and logged once. Others are written meanwhile.

Not promised: delivery. Nothing may depend on an Event.
"""

import heapq
import secrets
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import msgspec
import structlog

from etcd_operator.api.meta import ObjectMeta, Value
from etcd_operator.clock import Clock
from etcd_operator.errors import AlreadyExists, NotFound, OperatorError, RetryableError
from etcd_operator.formats import timestamp
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.resources import EVENTS, Resource
from etcd_operator.pacing import Exponential, TokenBuckets

log = structlog.get_logger()

EventType = Literal["Normal", "Warning"]

COMPONENT = "etcd-operator"

CAUSES = ("full", "limited", "failed", "stopped")
"""Why an Event is not written: the queue is full, its object has had too many lately, the API server refused
it or did not answer, this process stops."""

_MAX_MESSAGE = 1024  # characters; the API server refuses longer notes in events.k8s.io
_LONGEST_STEM = 236  # characters; with the rest of the name 253, as many as a name may have
_REMEMBERED = 4096  # objects and Events; the oldest are forgotten first
_TRIES = 4
_PAUSES = Exponential(1.0)


class Reference(Value, frozen=True, kw_only=True):
    """The object of an Event, as it is written in it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def to(cls, resource: Resource, metadata: ObjectMeta) -> Self:
        """A stored object of a resource."""
        return cls(
            api_version=resource.api_version,
            kind=resource.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
        )


@dataclass(frozen=True, slots=True)
class _Fact:
    about: Reference
    type: EventType
    reason: str
    message: str


@dataclass(slots=True, order=True, kw_only=True)
class _Post:
    """A fact to be written when it is `due` (monotonic); all attempts use the same Event `name`."""

    due: float = 0.0
    fact: _Fact = field(compare=False)
    name: str = field(default="", compare=False)
    tries: int = field(default=0, compare=False)


class Recorder:
    """Accepts Events from any thread; its own thread writes them. `instance` names this process."""

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        clock: Clock,
        capacity: int = 1000,
        burst: int = 60,
        refill_seconds: float = 30.0,
    ) -> None:
        self._client = client
        self._instance = instance
        self._clock = clock
        self._capacity = capacity
        self._changed = threading.Condition()
        self._queue: deque[_Post] = deque()
        self._again: list[_Post] = []  # a heap, the earliest first
        self._buckets = TokenBuckets(clock, burst=burst, refill_seconds=refill_seconds, capacity=_REMEMBERED)
        self._dropped = Counter(dict.fromkeys(CAUSES, 0))
        self._stopping = False
        self._gives_up_at: float | None = None
        self._written: OrderedDict[_Fact, tuple[str, int]] = OrderedDict()
        """The name and the count of the Event that exists for a fact; of the writing thread alone."""
        self._thread = threading.Thread(target=self._drain, name="events")

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def record(self, about: Reference, event_type: EventType, reason: str, message: str) -> None:
        """Record an Event on an object: `reason` is one CamelCase word, `message` a sentence."""
        with self._changed:
            if self._stopping:
                self._dropped["stopped"] += 1
            elif len(self._queue) + len(self._again) >= self._capacity:
                self._dropped["full"] += 1
            elif not self._buckets.take(about.uid):
                self._dropped["limited"] += 1
            else:
                self._queue.append(_Post(fact=_Fact(about, event_type, reason, message[:_MAX_MESSAGE])))
                self._changed.notify_all()

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many Events were not written, by each of `CAUSES`."""
        with self._changed:
            return dict(self._dropped)

    def stop(self, timeout: float) -> bool:
        """Accept no more, write the queued Events for up to `timeout` seconds; whether all were written."""
        with self._changed:
            self._stopping = True
            self._gives_up_at = self._clock.monotonic() + timeout
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        with self._changed:
            left = len(self._queue) + len(self._again)
            self._dropped["stopped"] += left
            sent = not left and not self._thread.is_alive()
            self._queue.clear()
            self._again.clear()
        return sent

    # the writing thread

    def _drain(self) -> None:
        while (post := self._next()) is not None:
            self._deliver(post)

    def _next(self) -> _Post | None:
        """Wait for the next Event that is due; None at the end."""
        with self._changed:
            while not self._has_given_up():
                now = self._clock.monotonic()
                is_due = bool(self._again) and self._again[0].due <= now
                if self._queue and not is_due:
                    return self._queue.popleft()
                if self._again and (is_due or self._stopping):  # a stop does not wait for a retry
                    return heapq.heappop(self._again)
                if self._stopping:
                    return None
                self._clock.wait(self._changed, self._again[0].due - now if self._again else None)
        return None

    def _has_given_up(self) -> bool:
        return self._gives_up_at is not None and self._clock.monotonic() >= self._gives_up_at

    def _deliver(self, post: _Post) -> None:
        post.name = post.name or _new_name(post.fact.about.name)
        post.tries += 1
        try:
            self._write(post.fact, post.name)
        except RetryableError as error:
            if post.tries < _TRIES:
                self._retry(post)
            else:
                self._drop(post.fact, error)
        except OperatorError as error:
            self._drop(post.fact, error)

    def _retry(self, post: _Post) -> None:
        with self._changed:
            post.due = self._clock.monotonic() + _PAUSES.after(post.tries)
            heapq.heappush(self._again, post)

    def _drop(self, fact: _Fact, error: OperatorError) -> None:
        with self._changed:
            self._dropped["failed"] += 1
        object_name = str(Key(fact.about.namespace, fact.about.name))
        log.warning("event_dropped", reason=fact.reason, object=object_name, error=str(error))

    def _write(self, fact: _Fact, name: str) -> None:
        if not self._count_up(fact):
            self._create(fact, name)
            self._written[fact] = name, 1
        self._written.move_to_end(fact)
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)

    def _count_up(self, fact: _Fact) -> bool:
        """Increase the count of the Event that exists; false if none does. Repeating is harmless."""
        name, count = self._written.get(fact, ("", 0))
        if not name:
            return False
        patch = {"count": count + 1, "lastTimestamp": self._time()}
        key = Key(_namespace(fact.about), name)
        try:
            self._client.patch(EVENTS, key, patch, dict[str, Any], kind=PatchKind.MERGE)
        except NotFound:
            return False
        self._written[fact] = name, count + 1
        return True

    def _create(self, fact: _Fact, name: str) -> None:
        body = self._event(fact, name)
        try:
            self._client.create(EVENTS, _namespace(fact.about), body, dict[str, Any])
        except AlreadyExists:
            return  # the name is ours alone: an earlier attempt succeeded without a response

    def _event(self, fact: _Fact, name: str) -> dict[str, Any]:
        about, now = fact.about, self._time()
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(about)},
            "involvedObject": msgspec.to_builtins(about),
            "type": fact.type,
            "reason": fact.reason,
            "message": fact.message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
        }

    def _time(self) -> str:
        return timestamp(self._clock.now())


def _new_name(stem: str) -> str:
    """A name that no other Event has, and that the API server takes."""
    return f"{stem[:_LONGEST_STEM].rstrip('.-')}.{secrets.token_hex(8)}"


def _namespace(about: Reference) -> str:
    """Events on cluster-wide objects belong in `default`: the API server requires it."""
    return about.namespace or "default"
