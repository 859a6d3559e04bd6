"""One leader at a time, by a Lease: the semantics of client-go's leader election, with Python threads.

Promises
- `is_leader()` is a statement about time: it turns false `renew_deadline` seconds after the *start* of the
  last renewal that passed, whatever the renewing thread does.
- Another elector takes the lease after it has seen it unchanged for `lease_duration` seconds of its own
  monotonic clock. Time stamps in the lease are for people: wall clocks may differ and jump. So `is_leader()`
  is true for at most one elector, and `lease_duration - renew_deadline` seconds (5 by default) are left for
  workers to notice.
- It is taken earlier in two cases, for which holders write down their pod (`own_pod`). At once, if the holder
  ran in our own pod: that process has ended. After `early` seconds, unchanged, if the holder's pod has been
  gone for that long from a node that works (`witness`). A process that outlives its pod may then believe in
  its leadership until its next try to renew, or its deadline; what it may still write, and why that does no
  harm, is in decision 011. What it must not do is change etcd's members:
- `leads_for(seconds)` is true for at most one elector, in both cases, too, for the whole of these seconds.
- A lost reply is not a lost lease: the record is read again before anything is concluded.
- `on_started_leading`, then `on_stopped_leading` when the lease could not be renewed in time, are called at
  most once each, in this order, from one thread. They must not block. Leadership once lost is not sought
  again by this elector.
- The lease is given up early only by `release`, which the caller calls after the workers have been joined.

Not promised: protection while the machine is suspended (a monotonic clock may stand still then), and from a
lease deleted by hand while a process that has never seen it starts. Writes with a resourceVersion or uid
precondition are what protects there.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import structlog

from etcd_operator.clock import Clock
from etcd_operator.errors import AlreadyExists, Conflict, NotFound, OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import lease_record
from etcd_operator.kube.client import Client
from etcd_operator.kube.holder_pod import HolderPods
from etcd_operator.kube.lease_record import Lease, Spec
from etcd_operator.kube.own_pod import OwnPod
from etcd_operator.kube.resources import LEASES

log = structlog.get_logger()

_JITTER = 0.2

_SOON = 0.2
"""Seconds until the next try after somebody else wrote first: that may be the last word of a dead holder."""

_WATCHFUL = 0.5
"""Seconds between tries while the holder's pod is going or gone: it may release the lease at any moment."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who seeks the lease: `identity` is of this process alone, `pod` is claimed for it alone.

    Without a pod the lease is never taken early, neither by this candidate nor from it.
    """

    identity: str
    pod: OwnPod | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """A lease and when (by our monotonic clock) this version of it was first seen here."""

    lease: Lease
    since: float

    def is_free(self, candidate: Candidate, now: float, default_seconds: float) -> bool:
        """Whether the lease is ours, or was released, or is that of our dead predecessor, or has expired."""
        if self.lease.spec.holder_identity in (None, "", candidate.identity):
            return True
        theirs, ours = self.lease.pod, candidate.pod
        if theirs is not None and ours is not None and theirs.uid == ours.uid:
            return True
        return now >= self.since + (self.lease.spec.lease_duration_seconds or default_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """In seconds. Each must leave room for the next: duration > deadline > retry; duration > early > retry.

    early: how long a lease must be unchanged, and the pod of its holder gone, to be taken early.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    early: float = 3.0

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period * (1 + _JITTER) > 0:
            msg = f"leases need duration > renew deadline > {1 + _JITTER} x retry period > 0, not {self}"
            raise ValueError(msg)
        if not self.lease_duration > self.early > self.retry_period * (1 + _JITTER):
            msg = f"a lease that is renewed may not be taken early: duration > early > retry, not {self}"
            raise ValueError(msg)
        if self.lease_duration != int(self.lease_duration):
            msg = f"a lease lasts whole seconds, not {self.lease_duration}"
            raise ValueError(msg)


class Elector:
    """Seeks and keeps the lease at `key` for `candidate`.

    `client` should be one of its own, with deadlines well below `renew_deadline`, so that one hanging
    connection does not use up the time for another try.
    """

    def __init__(
        self,
        client: Client,
        key: Key,
        candidate: Candidate,
        *,
        clock: Clock,
        on_started_leading: Callable[[], None],
        on_stopped_leading: Callable[[], None],
        timing: Timing | None = None,
    ) -> None:
        self._client = client
        self._key = key
        self._candidate = candidate
        self._clock = clock
        self._holder_pods = HolderPods(client, clock)
        self._timing = timing or Timing()
        self._on_started, self._on_stopped = on_started_leading, on_stopped_leading
        self._random = Random()  # noqa: S311 - spreads retries, keeps no secret
        self._changed = threading.Condition()
        self._leads_until: float | None = None
        self._lost = self._stopping = self._is_asked = False
        self._sighting: Sighting | None = None  # of the renewing thread alone, as is the next
        self._due: float | None = None
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

    def leads_for(self, seconds: float) -> bool:
        """Whether this process leads and no other one can within `seconds`, which must be less than `early`.

        Renews the lease if the last time was too long ago for that, and waits for it until it is too late.
        """
        if self._candidate.pod is None:  # nobody can find out that our pod is gone
            return self.is_leader()
        with self._changed:
            limit = self._clock.monotonic() + self._timing.early - seconds
            while self._holds(now := self._clock.monotonic()):
                if now + seconds <= self._safe_until():
                    return True
                if now >= limit:
                    return False
                self._is_asked = True
                self._changed.notify_all()
                self._clock.wait(self._changed, limit - now)
            return False

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
        while not self._is_over() and self._attempt():
            with self._changed:
                self._wait_until(self._next_try(), lambda: self._is_over() or self._is_asked)
                self._is_asked = False
                if self._is_over():
                    return

    def _next_try(self) -> float:
        pause = self._timing.retry_period * (1 + _JITTER * self._random.random())
        usual = self._clock.monotonic() + pause
        return usual if self._due is None else min(usual, self._due)

    def _is_over(self) -> bool:
        return self._stopping or self._lost

    def _attempt(self) -> bool:
        """Try once to take or renew the lease; false when there is no point in another try."""
        started = self._clock.monotonic()
        self._due = None
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
            lease = self._client.get(LEASES, self._key, Lease)
        except NotFound:
            # deleted under its holder: who holds it cannot know yet, and may lead until its time is over
            return self._create() if self._is_free() else False
        self._see(lease)
        return self._write(lease) if self._is_free() or self._is_left() else False

    def _create(self) -> bool:
        metadata = {"name": self._key.name, "namespace": self._key.namespace}
        body = lease_record.document(metadata, self._next_spec(None), self._candidate.pod)
        try:
            self._see(self._client.create(LEASES, self._key.namespace, body, Lease))
        except AlreadyExists:
            return False
        return True

    def _write(self, lease: Lease) -> bool:
        """Write our claim over exactly the version that was seen; a `Conflict` says that it has changed."""
        try:
            self._see(self._put(lease, self._next_spec(lease)))
        except Conflict:
            if self._is_ours(lease):
                raise
            self._due = self._clock.monotonic() + _SOON
            return False
        return True

    def _put(self, lease: Lease, spec: Spec) -> Lease:
        body = lease_record.document(lease.metadata, spec, self._candidate.pod)
        return self._client.replace(LEASES, self._key, body, Lease)

    def _next_spec(self, old: Lease | None) -> Spec:
        seconds = int(self._timing.lease_duration)
        return lease_record.held(old, self._candidate.identity, seconds=seconds, now=self._clock.now())

    def _see(self, lease: Lease) -> None:
        known = self._sighting
        if known is None or known.lease.version != lease.version:
            self._sighting = Sighting(lease, self._clock.monotonic())

    def _is_ours(self, lease: Lease) -> bool:
        return lease.spec.holder_identity == self._candidate.identity

    def _is_free(self) -> bool:
        """Whether the lease last seen may be taken, as far as the lease itself tells."""
        now, seconds = self._clock.monotonic(), self._timing.lease_duration
        return self._sighting is None or self._sighting.is_free(self._candidate, now, seconds)

    def _is_left(self) -> bool:
        """Whether its holder will not come back: unchanged, and without a pod, for long enough."""
        sighting = self._sighting
        pod = sighting.lease.pod if sighting is not None else None
        if sighting is None or pod is None:
            return False
        gone = self._holder_pods.gone_since(pod)
        now = self._clock.monotonic()
        if gone is not None or self._holder_pods.is_leaving(pod):
            self._due = now + _WATCHFUL
        if gone is None:
            return False
        moment = max(gone, sighting.since) + self._timing.early
        if now < moment:
            self._due = min(now + _WATCHFUL, moment)
            return False
        if not self._holder_pods.node_works(pod.node):
            return False
        log.info("holder_is_gone", lease=str(self._key), pod=pod.name, node=pod.node)
        return True

    def _give_up(self) -> bool:
        lease = self._client.get(LEASES, self._key, Lease)
        if not self._is_ours(lease):
            return False
        self._put(lease, lease_record.released(lease.spec, self._clock.now()))
        return True

    # the thread of the deadline, which makes no requests and so cannot hang

    def _announce(self) -> None:
        with self._changed:
            self._wait_until(None, lambda: self._stopping or self._holds(self._clock.monotonic()))
            started = not self._stopping
        if started:
            log.info("leading", lease=str(self._key), identity=self._candidate.identity)
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
            log.error("leadership_lost", lease=str(self._key), identity=self._candidate.identity)
            self._on_stopped()

    def _safe_until(self) -> float:
        """Until when nobody can have taken the lease early: the others count from after our renewal began."""
        return (self._leads_until or 0.0) - self._timing.renew_deadline + self._timing.early

    def _holds(self, now: float) -> bool:
        return not self._lost and self._leads_until is not None and now < self._leads_until

    def _wait_until(self, moment: float | None, claim: Callable[[], bool]) -> None:
        while not claim():
            left = None if moment is None else moment - self._clock.monotonic()
            if left is not None and left <= 0:
                return
            self._clock.wait(self._changed, left)
