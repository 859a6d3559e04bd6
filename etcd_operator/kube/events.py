"""Kubernetes Events: what the operator did or will not do, told on the object that it concerns.

Promises
- `Recorder.tell` never blocks and never raises: it puts a copy of the facts on a bounded queue, which one
  thread of its own drains. What does not fit is dropped and counted.
- The same fact (object, type, reason, message) told again counts up one Event instead of making another.
- One object cannot flood the API server: `burst` at once, then one every `refill_seconds`. client-go: 25
  and one in five minutes; here a cluster of seven members makes some 50 different Events while it is created
  and upgraded, and each is a step that someone may have to account for: 60, and one in 30 s.
- A post that fails is tried again a few times, unless trying cannot help; then it is dropped, counted, and
  logged once. Others are posted meanwhile.
- `stop` sends what is queued for as long as its deadline allows and says whether everything was sent.

Not promised: delivery. Nothing may be decided by an Event.
"""

import heapq
import secrets
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, Literal

import structlog

from etcd_operator.clock import Clock
from etcd_operator.errors import AlreadyExists, NotFound, OperatorError, RetryableError
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.resources import EVENTS
from etcd_operator.pacing import Exponential, TokenBuckets

log = structlog.get_logger()

EventType = Literal["Normal", "Warning"]

COMPONENT = "etcd-operator"
_MAX_MESSAGE = 1024  # characters; the API server refuses longer notes in events.k8s.io
_REMEMBERED = 4096  # objects and facts; the oldest are forgotten first
_TRIES = 4
_PAUSES = Exponential(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class _Fact:
    about: Reference
    type: EventType
    reason: str
    message: str


@dataclass(slots=True, order=True, kw_only=True)
class _Post:
    """A fact that is to be posted when it is `due` (monotonic); `name` is of its Event, for all tries."""

    due: float = 0.0
    fact: _Fact = field(compare=False)
    name: str = field(default="", compare=False)
    tries: int = field(default=0, compare=False)


@dataclass(slots=True)
class _Told:
    """The Event that already says a fact."""

    name: str
    count: int


class Recorder:
    """Takes facts from any thread; its own thread posts them. `instance` names this process."""

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
        self._dropped: Counter[str] = Counter()
        self._stopping = False
        self._gives_up_at: float | None = None
        self._told: OrderedDict[_Fact, _Told] = OrderedDict()  # of the posting thread alone
        self._thread = threading.Thread(target=self._drain, name="events")

    def start(self) -> None:
        """Begin to post."""
        self._thread.start()

    def tell(self, about: Reference, event_type: EventType, reason: str, message: str) -> None:
        """Tell a fact about an object: `reason` is one CamelCase word, `message` a sentence."""
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
        """How many facts were not told, by cause: full, limited, failed, stopped."""
        with self._changed:
            return dict(self._dropped)

    def stop(self, timeout: float) -> bool:
        """Take no more facts, post the queued ones for up to `timeout` seconds; whether all were sent."""
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

    # the posting thread

    def _drain(self) -> None:
        while (post := self._next()) is not None:
            self._deliver(post)

    def _next(self) -> _Post | None:
        """What is to be posted now, waiting for it; None at the end."""
        with self._changed:
            while not self._has_given_up():
                now = self._clock.monotonic()
                is_due = bool(self._again) and self._again[0].due <= now
                if self._queue and not is_due:
                    return self._queue.popleft()
                if self._again and (is_due or self._stopping):  # a stop waits for no other try
                    return heapq.heappop(self._again)
                if self._stopping:
                    return None
                self._clock.wait(self._changed, self._again[0].due - now if self._again else None)
        return None

    def _has_given_up(self) -> bool:
        return self._gives_up_at is not None and self._clock.monotonic() >= self._gives_up_at

    def _deliver(self, post: _Post) -> None:
        post.name = post.name or self._new_name(post.fact)
        post.tries += 1
        try:
            self._post(post.fact, post.name)
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

    def _post(self, fact: _Fact, name: str) -> None:
        told = self._told.get(fact)
        if told is None or not self._count_up(fact, told):
            self._create(fact, name)
            self._told[fact] = _Told(name, 1)
        self._told.move_to_end(fact)
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    def _count_up(self, fact: _Fact, told: _Told) -> bool:
        """Count up the Event that says so already; false when it has expired. Repeating is harmless."""
        patch = {"count": told.count + 1, "lastTimestamp": self._time()}
        key = Key(_namespace(fact.about), told.name)
        try:
            self._client.patch(EVENTS, key, patch, dict[str, Any], kind=PatchKind.MERGE)
        except NotFound:
            return False
        told.count += 1
        return True

    def _create(self, fact: _Fact, name: str) -> None:
        body = self._event(fact, name)
        try:
            self._client.create(EVENTS, _namespace(fact.about), body, dict[str, Any])
        except AlreadyExists:
            return  # the name is ours alone: an earlier try arrived and its answer did not

    def _event(self, fact: _Fact, name: str) -> dict[str, Any]:
        about, now = fact.about, self._time()
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(about)},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
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

    def _new_name(self, fact: _Fact) -> str:
        return f"{fact.about.name}.{secrets.token_hex(8)}"

    def _time(self) -> str:
        return self._clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _namespace(about: Reference) -> str:
    """Events on cluster-wide objects lie in `default`: the API server wants it so."""
    return about.namespace or "default"
