"""The Lease as a lock: when it may be acquired, and the reads and writes that acquire, renew and release it.

For one thread at a time. Raises what the client raises; a lost reply is not a lost Lease: the object is read
again before anything is concluded. `lease` has the rules of time, `holder_pod` what is known of the pod of
another holder.
"""

from dataclasses import dataclass

import structlog

from etcd_operator.clock import Clock
from etcd_operator.errors import AlreadyExists, Conflict, NotFound
from etcd_operator.keys import Key
from etcd_operator.kube import lease_record
from etcd_operator.kube.client import Client
from etcd_operator.kube.holder_pod import HolderPods
from etcd_operator.kube.lease_record import Lease, Spec
from etcd_operator.kube.own_pod import OwnPod
from etcd_operator.kube.resources import LEASES

log = structlog.get_logger()

_SOON = 0.2
"""Seconds until the next attempt after another write came first, perhaps the last one of a dead holder."""

_WATCHFUL = 0.5
"""Seconds between attempts while the holder's pod is terminating or deleted: it may release at any moment."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who seeks the Lease."""

    identity: str  # of this process alone
    pod: OwnPod | None = None  # claimed for it alone; without one the Lease is never taken early, nor from it


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A Lease and when (by our monotonic clock) this version of it was first observed here."""

    lease: Lease
    since: float

    def is_free(self, candidate: Candidate, now: float, default_seconds: float) -> bool:
        """Whether the Lease is ours, was released, belongs to our dead predecessor, or has expired."""
        if self.lease.spec.holder_identity in (None, "", candidate.identity):
            return True
        theirs, ours = self.lease.pod, candidate.pod
        if theirs is not None and ours is not None and theirs.uid == ours.uid:
            return True
        return now >= self.since + (self.lease.spec.lease_duration_seconds or default_seconds)


class LeaseLock:
    """The Lease at `key` for `candidate`, held for `duration` seconds from each renewal.

    A Lease whose holder's pod is deleted is acquired `early` seconds after its last change.
    """

    def __init__(
        self, client: Client, key: Key, candidate: Candidate, *, clock: Clock, duration: float, early: float
    ) -> None:
        self._client = client
        self._key = key
        self._candidate = candidate
        self._clock = clock
        self._duration, self._early = duration, early
        self._holder_pods = HolderPods(client, clock)
        self._observed: ObservedLease | None = None
        self.due: float | None = None
        """When (monotonic) another attempt is worthwhile, if that is before the usual time."""

    def acquire_or_renew(self) -> bool:
        """Try once; whether the Lease is ours now."""
        self.due = None
        if self._observed is not None and self._is_ours(self._observed.lease):
            try:
                return self._write(self._observed.lease)
            except (Conflict, NotFound):
                pass  # the write in between may be our own: read it
        try:
            lease = self._client.get(LEASES, self._key, Lease)
        except NotFound:
            # deleted under its holder, which cannot know yet and may lead until its time is over
            return self._create() if self._is_free() else False
        self._observe(lease)
        return self._write(lease) if self._is_free() or self._is_abandoned() else False

    def release(self) -> bool:
        """Give the Lease up so that the next leader need not wait; false if it is not ours."""
        lease = self._client.get(LEASES, self._key, Lease)
        if not self._is_ours(lease):
            return False
        self._put(lease, lease_record.released(lease.spec, self._clock.now()))
        return True

    def _create(self) -> bool:
        metadata = {"name": self._key.name, "namespace": self._key.namespace}
        body = lease_record.document(metadata, self._next_spec(None), self._candidate.pod)
        try:
            self._observe(self._client.create(LEASES, self._key.namespace, body, Lease))
        except AlreadyExists:
            return False
        return True

    def _write(self, lease: Lease) -> bool:
        """Replace exactly the version that was read; a `Conflict` means that it has changed since."""
        try:
            self._observe(self._put(lease, self._next_spec(lease)))
        except Conflict:
            if self._is_ours(lease):
                raise
            self.due = self._clock.monotonic() + _SOON
            return False
        return True

    def _put(self, lease: Lease, spec: Spec) -> Lease:
        body = lease_record.document(lease.metadata, spec, self._candidate.pod)
        return self._client.replace(LEASES, self._key, body, Lease)

    def _next_spec(self, old: Lease | None) -> Spec:
        seconds = int(self._duration)
        return lease_record.held(old, self._candidate.identity, seconds=seconds, now=self._clock.now())

    def _observe(self, lease: Lease) -> None:
        known = self._observed
        if known is None or known.lease.version != lease.version:
            self._observed = ObservedLease(lease, self._clock.monotonic())

    def _is_ours(self, lease: Lease) -> bool:
        return lease.spec.holder_identity == self._candidate.identity

    def _is_free(self) -> bool:
        """Whether the Lease last observed may be acquired, judging by the Lease alone."""
        now = self._clock.monotonic()
        return self._observed is None or self._observed.is_free(self._candidate, now, self._duration)

    def _is_abandoned(self) -> bool:
        """Whether the Lease has been unchanged, and its holder's pod deleted, for long enough."""
        observed = self._observed
        pod = observed.lease.pod if observed is not None else None
        if observed is None or pod is None:
            return False
        missing = self._holder_pods.missing_since(pod)
        now = self._clock.monotonic()
        if missing is not None or self._holder_pods.is_terminating(pod):
            self.due = now + _WATCHFUL
        if missing is None:
            return False
        moment = max(missing, observed.since) + self._early
        if now < moment:
            self.due = min(now + _WATCHFUL, moment)
            return False
        if not self._holder_pods.is_node_alive(pod.node):
            return False
        log.info("lease_holder_pod_deleted", lease=str(self._key), pod=pod.name, node=pod.node)
        return True
