"""One leader at a time, by a Lease: the semantics of client-go's leader election, with Python threads.

Promises
- `is_leader()` is true for at most one elector at any moment. It is a statement about time: it turns false
  `renew_deadline` seconds after the *start* of the last renewal that passed, whatever the renewing thread
  does.
- Another elector takes the lease only after it has seen it unchanged for `lease_duration` seconds of its own
  monotonic clock. Time stamps in the lease are for people: wall clocks may differ and jump.
- Between the two lie `lease_duration - renew_deadline` seconds (5 by default) for workers to notice.
- A lost reply is not a lost lease: the record is read again before anything is concluded.
- `on_started_leading`, then `on_stopped_leading` when the lease could not be renewed in time, are called at
  most once each, in this order, from one thread. They must not block. Leadership once lost is not sought
  again: the process is expected to end.
- The lease is given up early only by `release`, which the caller calls after the workers have been joined.

Not promised: protection while the machine is suspended (a monotonic clock may stand still then), and from a
lease deleted by hand while a process that has never seen it starts. Writes with a resourceVersion or uid
precondition are what protects there.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import structlog

from etcd_operator.clock import Clock
from etcd_operator.errors import AlreadyExists, Conflict, NotFound, OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.resources import LEASES

log = structlog.get_logger()

_JITTER = 0.2


class _Spec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: dict[str, Any]  # written back as it was read: labels and owners are not ours
    spec: _Spec = _Spec()

    @property
    def version(self) -> str:
        return str(self.metadata["resourceVersion"])


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A lease and when (by our monotonic clock) this version of it was first seen here."""

    lease: _Lease
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """In seconds. Each must leave room for the next: duration > deadline > retry."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period * (1 + _JITTER) > 0:
            msg = f"leases need duration > renew deadline > {1 + _JITTER} x retry period > 0, not {self}"
            raise ValueError(msg)
        if self.lease_duration != int(self.lease_duration):
            msg = f"a lease lasts whole seconds, not {self.lease_duration}"
            raise ValueError(msg)


class Elector:
    """Seeks and keeps the lease at `key` for `identity`, which must be of this process alone.

    `client` should be one of its own, with deadlines well below `renew_deadline`, so that one hanging
    connection does not use up the time for another try.
    """

    def __init__(
        self,
        client: Client,
        key: Key,
        identity: str,
        *,
        clock: Clock,
        on_started_leading: Callable[[], None],
        on_stopped_leading: Callable[[], None],
        timing: Timing | None = None,
    ) -> None:
        self._client = client
        self._key = key
        self._identity = identity
        self._clock = clock
        self._timing = timing or Timing()
        self._on_started, self._on_stopped = on_started_leading, on_stopped_leading
        self._random = Random()  # noqa: S311 - spreads retries, keeps no secret
        self._changed = threading.Condition()
        self._leads_until: float | None = None
        self._lost = self._stopping = False
        self._sighting: _Sighting | None = None  # of the renewing thread alone
        self._threads = [
            threading.Thread(target=self._seek, name="lease-renew"),
            threading.Thread(target=self._announce, name="lease-deadline"),
        ]

    def start(self) -> None:
        """Begin to seek the lease."""
        for thread in self._threads:
            thread.start()

    def is_leader(self) -> bool:
        """Whether this process leads now. Ask right before each act that cannot be undone."""
        with self._changed:
            return self._holds(self._clock.monotonic())

    def stop(self, timeout: float) -> bool:
        """Stop renewing (after the workers have been joined); whether both threads ended in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(timeout)
        return not any(thread.is_alive() for thread in self._threads)

    def release(self) -> bool:
        """Give the lease up, so that the next leader need not wait; whether that was done.

        To be called after `stop`. Does nothing while a renewal is still in flight, nor when the lease is
        another's. Raises nothing: a lease that is not released expires.
        """
        with self._changed:
            self._leads_until = None
            self._lost = True
        if any(thread.is_alive() for thread in self._threads):
            return False
        try:
            return self._give_up()
        except OperatorError as error:
            log.warning("lease_not_released", lease=str(self._key), error=str(error))
            return False

    # the renewing thread

    def _seek(self) -> None:
        while self._attempt():
            with self._changed:
                pause = self._timing.retry_period * (1 + _JITTER * self._random.random())
                self._wait_until(self._clock.monotonic() + pause, self._is_over)
                if self._is_over():
                    return

    def _is_over(self) -> bool:
        return self._stopping or self._lost

    def _attempt(self) -> bool:
        """Try once to take or renew the lease; false when there is no point in another try."""
        started = self._clock.monotonic()
        try:
            held = self._take_or_renew()
        except OperatorError as error:
            log.warning("lease_attempt_failed", lease=str(self._key), error=str(error))
            return True
        with self._changed:
            if held and not self._lost:
                # counted from before the request: the others count from after it
                self._leads_until = started + self._timing.renew_deadline
                self._changed.notify_all()
            elif self._leads_until is not None:
                self._leads_until = started  # another holds it: do not wait for the deadline
                self._changed.notify_all()
            return not self._lost

    def _take_or_renew(self) -> bool:
        if self._sighting is not None and self._is_ours(self._sighting.lease):
            try:
                return self._write(self._sighting.lease)
            except (Conflict, NotFound):
                pass  # ours may be the write that was in between: look
        try:
            lease = self._client.get(LEASES, self._key, _Lease)
        except NotFound:
            # deleted under its holder: who holds it cannot know yet, and may lead until its time is over
            return self._create() if self._is_free() else False
        self._see(lease)
        return self._write(lease) if self._is_free() else False

    def _create(self) -> bool:
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._key.name, "namespace": self._key.namespace},
            "spec": msgspec.to_builtins(self._next_spec(None)),
        }
        try:
            self._see(self._client.create(LEASES, self._key.namespace, body, _Lease))
        except AlreadyExists:
            return False
        return True

    def _write(self, lease: _Lease) -> bool:
        """Write our claim over exactly the version that was seen; a `Conflict` says that it has changed."""
        try:
            self._see(self._put(lease, self._next_spec(lease.spec)))
        except Conflict:
            if self._is_ours(lease):
                raise
            return False
        return True

    def _put(self, lease: _Lease, spec: _Spec) -> _Lease:
        body: dict[str, Any] = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": lease.metadata,
            "spec": msgspec.to_builtins(spec),
        }
        return self._client.replace(LEASES, self._key, body, _Lease)

    def _next_spec(self, old: _Spec | None) -> _Spec:
        now = _micro_time(self._clock.now())
        renews = old is not None and old.holder_identity == self._identity
        transitions = 0 if old is None else (old.lease_transitions or 0) + (0 if renews else 1)
        return _Spec(
            holder_identity=self._identity,
            lease_duration_seconds=int(self._timing.lease_duration),
            acquire_time=old.acquire_time if old is not None and renews else now,
            renew_time=now,
            lease_transitions=transitions,
        )

    def _see(self, lease: _Lease) -> None:
        known = self._sighting
        if known is None or known.lease.version != lease.version:
            self._sighting = _Sighting(lease, self._clock.monotonic())

    def _is_ours(self, lease: _Lease) -> bool:
        return lease.spec.holder_identity == self._identity

    def _is_free(self) -> bool:
        """Whether the lease last seen is ours, or was released, or has expired without a change."""
        if self._sighting is None or self._sighting.lease.spec.holder_identity in (None, "", self._identity):
            return True
        seconds = self._sighting.lease.spec.lease_duration_seconds or self._timing.lease_duration
        return self._clock.monotonic() >= self._sighting.since + seconds

    def _give_up(self) -> bool:
        lease = self._client.get(LEASES, self._key, _Lease)
        if not self._is_ours(lease):
            return False
        # a duration of 1 tells those who count by the record alone that nothing is left to wait for
        spec = msgspec.structs.replace(
            lease.spec,
            holder_identity="",
            lease_duration_seconds=1,
            renew_time=_micro_time(self._clock.now()),
        )
        self._put(lease, spec)
        return True

    # the thread of the deadline, which makes no requests and so cannot hang

    def _announce(self) -> None:
        with self._changed:
            self._wait_until(None, lambda: self._stopping or self._holds(self._clock.monotonic()))
            started = not self._stopping
        if started:
            log.info("leading", lease=str(self._key), identity=self._identity)
            self._on_started()
            self._await_the_end()

    def _await_the_end(self) -> None:
        with self._changed:
            while not self._stopping and self._holds(self._clock.monotonic()):
                self._clock.wait(self._changed, (self._leads_until or 0.0) - self._clock.monotonic())
            self._lost = not self._stopping
            lost = self._lost
            self._changed.notify_all()
        if lost:
            log.error("leadership_lost", lease=str(self._key), identity=self._identity)
            self._on_stopped()

    def _holds(self, now: float) -> bool:
        return not self._lost and self._leads_until is not None and now < self._leads_until

    def _wait_until(self, moment: float | None, claim: Callable[[], bool]) -> None:
        while not claim():
            left = None if moment is None else moment - self._clock.monotonic()
            if left is not None and left <= 0:
                return
            self._clock.wait(self._changed, left)


def _micro_time(moment: datetime) -> str:
    """As `metav1.MicroTime` is written: UTC with six digits of a second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
