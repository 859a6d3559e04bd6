"""One leader at a time, by a Lease: the semantics of client-go's leader election, with Python threads.

Promises
- `is_leader()` is a statement about time: it turns false `renew_deadline` seconds after the *start* of the
  last successful renewal, whatever the renewing thread does.
- Another elector acquires the Lease after it has observed it unchanged for `lease_duration` seconds of its
  own monotonic clock. Time stamps in the Lease are for people: wall clocks may differ and jump. So
  `is_leader()` is true for at most one elector, and `lease_duration - renew_deadline` seconds (5 by default)
  are left for workers to notice.
- The Lease is acquired earlier in two cases, for which holders record their pod (`own_pod`). At once, if the
  holder ran in our own pod: that process has ended. After `early` seconds without a change, if the holder's
  pod has been deleted for as long and its node is alive (`holder_pod`). A process that outlives its pod may
  then believe that it leads until its next renewal or its deadline; what it may still write, and why that
  does no harm, is in decision 011. What it must not do is change etcd's members:
- `leads_for(seconds)` is true for at most one elector, also in both of these cases, for all of these seconds.
- A lost reply is not a lost Lease: the object is read again before anything is concluded (`lease_lock`).
- `on_started_leading`, then `on_stopped_leading` if the Lease could not be renewed in time, are called at
  most once each, in this order, from one thread. They must not block. This elector does not seek a lost
  leadership again.
- The Lease is given up early only by `release`, which the caller calls after the workers have been joined.

Not promised: protection while the machine is suspended (a monotonic clock may stand still then), and against
a Lease that is deleted by hand while a process that has never seen it starts. Preconditions on
resourceVersion or uid protect writes there.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import structlog

from etcd_operator.clock import Clock
from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.lease_lock import Candidate, LeaseLock

log = structlog.get_logger()

_JITTER = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """In seconds. Each leaves room for the next: duration > deadline > retry; duration > early > retry."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    early: float = 3.0  # how long unchanged, and the holder's pod deleted, to be acquired early

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period * (1 + _JITTER) > 0:
            msg = f"a lease needs duration > renew deadline > {1 + _JITTER} x retry period > 0, not {self}"
            raise ValueError(msg)
        if not self.lease_duration > self.early > self.retry_period * (1 + _JITTER):
            msg = f"a lease must not be acquired between two renewals: duration > early > retry, not {self}"
            raise ValueError(msg)
        if self.lease_duration != int(self.lease_duration):
            msg = f"the duration of a lease is whole seconds, not {self.lease_duration}"
            raise ValueError(msg)


class Elector:
    """Acquires and renews the Lease at `key` for `candidate`.

    `client` should be one of its own, with deadlines well below `renew_deadline`, so that one hanging
    connection leaves time for another attempt.
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
        self._key = key
        self._candidate = candidate
        self._clock = clock
        self._timing = timing or Timing()
        self._lock = LeaseLock(
            client,
            key,
            candidate,
            clock=clock,
            duration=self._timing.lease_duration,
            early=self._timing.early,
        )  # of the renewing thread alone, until that has ended
        self._on_started, self._on_stopped = on_started_leading, on_stopped_leading
        self._random = Random()  # noqa: S311 - spreads retries, keeps no secret
        self._changed = threading.Condition()
        self._leads_until: float | None = None
        self._lost = self._stopping = self._is_renewal_due = False
        self._threads = [
            threading.Thread(target=self._seek, name="lease-renew"),
            threading.Thread(target=self._announce, name="lease-deadline"),
        ]

    def start(self) -> None:
        """Begin to seek the Lease."""
        for thread in self._threads:
            thread.start()

    def is_leader(self) -> bool:
        """Whether this process leads now. Check right before each act that cannot be undone."""
        with self._changed:
            return self._holds(self._clock.monotonic())

    @property
    def has_led(self) -> bool:
        """Whether this process leads or has led, until `release`; never later than `is_leader`."""
        with self._changed:
            return self._leads_until is not None

    def leads_for(self, seconds: float) -> bool:
        """Whether this process leads and no other one can within `seconds`, which must be less than `early`.

        If the last renewal is too long ago for that, waits for another one until that would be too late.
        """
        if self._candidate.pod is None:  # nobody acquires the Lease early
            return self.is_leader()
        with self._changed:
            limit = self._clock.monotonic() + self._timing.early - seconds
            while self._holds(now := self._clock.monotonic()):
                if now + seconds <= self._safe_until():
                    return True
                if now >= limit:
                    return False
                self._is_renewal_due = True
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
        """Give the Lease up so that the next leader need not wait; whether that was done.

        Call it after `stop`. Does nothing while a renewal is still in flight, or if the Lease belongs to
        another. Raises nothing: a Lease that is not released expires.
        """
        with self._changed:
            self._leads_until = None
            self._lost = True
        if any(thread.is_alive() for thread in self._threads):
            return False
        try:
            return self._lock.release()
        except OperatorError as error:
            log.warning("lease_not_released", lease=str(self._key), error=str(error))
            return False

    # the renewing thread

    def _seek(self) -> None:
        while not self._is_over() and self._attempt():
            with self._changed:
                self._wait_until(self._next_try(), lambda: self._is_over() or self._is_renewal_due)
                self._is_renewal_due = False
                if self._is_over():
                    return

    def _next_try(self) -> float:
        pause = self._timing.retry_period * (1 + _JITTER * self._random.random())
        usual = self._clock.monotonic() + pause
        return usual if self._lock.due is None else min(usual, self._lock.due)

    def _is_over(self) -> bool:
        return self._stopping or self._lost

    def _attempt(self) -> bool:
        """Try once to acquire or renew the Lease; false when another attempt is pointless."""
        started = self._clock.monotonic()
        try:
            held = self._lock.acquire_or_renew()
        except OperatorError as error:
            log.warning("lease_attempt_failed", lease=str(self._key), error=str(error))
            return True
        with self._changed:
            if held and not self._lost:
                # counted from before the request; the others count from after it
                self._leads_until = started + self._timing.renew_deadline
                self._changed.notify_all()
            elif self._leads_until is not None:
                self._leads_until = started  # another holds it: do not wait for the deadline
                self._changed.notify_all()
            return not self._lost

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
        """Until when nobody can acquire the Lease early: the others count from after our renewal began."""
        return (self._leads_until or 0.0) - self._timing.renew_deadline + self._timing.early

    def _holds(self, now: float) -> bool:
        return not self._lost and self._leads_until is not None and now < self._leads_until

    def _wait_until(self, moment: float | None, claim: Callable[[], bool]) -> None:
        while not claim():
            left = None if moment is None else moment - self._clock.monotonic()
            if left is not None and left <= 0:
                return
            self._clock.wait(self._changed, left)
