"""Probes etcd without ever making a worker wait.

A pass collects the result of a probe (`collect`). If there is none, a probe is begun on a thread of the
prober and the pass ends; when the members have replied, or the deadline is over, the key is queued
again and that pass uses the result.

A result is used once, and soon: what a pass decides rests on replies that came after whatever woke it.

Silence costs time, so it is waited for where it holds up no other cluster (`Lane`): the first request has
`PATIENCE` only. A cluster that proved no quorum in that time, or of which one more member is silent,
is asked again with the whole deadline, on other threads. A cluster that has had no quorum for
`LASTING_SILENCE`, with the same pods, is probed on threads of its own, which many such clusters fill without
delaying the others; members that were silent before are waited for no longer than `PATIENCE` there, except
in one probe every `FULL_PROBE_SECONDS`. A cluster whose quorum check was not answered (`distrust`) has had
its `PATIENCE`: it is asked with the whole deadline at once.

A member that answered the last time and is silent now is asked once more, with the whole
deadline: on a busy machine a short silence is common, and each one reported is a status write.
One whose pod is being deleted is not: it falls silent for good, and the rest need not wait. One
that was just removed is not waited for at all: its process ends, or hangs for a second or two. Neither is one
whose pod goes during a probe: what is left may be too few for a quorum, and then the probe ends at once.

Metrics pages of members are read here, too, after the replies: a page may hang like its process.

What goes wrong in this process (no thread, no file descriptor, a bug) is never shown as silence of
members: the next `collect` raises it, so that the pass fails and is tried again with back-off.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

import structlog

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.observe.lanes import Lane
from etcd_operator.controllers.etcd_cluster.observe.quorum_check import Settled
from etcd_operator.controllers.etcd_cluster.observe.slots import (
    EMPTY,
    OPEN,
    Access,
    PagesNeeded,
    Slot,
    answering,
    no_pages,
    voters,
)
from etcd_operator.controllers.shared.waits import Epoch
from etcd_operator.errors import Unavailable
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import OnCall
from etcd_operator.etcd.errors import NotProbed
from etcd_operator.etcd.metrics_page import read
from etcd_operator.etcd.probe import Known, Probe, probe
from etcd_operator.keys import Key

PATIENCE = 0.5
"""Seconds that silent members are waited for at the first request."""

PROOF_PATIENCE = 0.5
"""Seconds for the proof of a quorum by too few voters: a recovery waits, and a quorum needs milliseconds."""

FULL_PROBE_SECONDS = 30.0
"""Between two probes with the whole deadline of a cluster that has had no quorum for long."""

LASTING_SILENCE = 10.0
"""Seconds without a quorum and without a change of the pods: longer than members need to start."""

FRESH = 30.0
"""Seconds that a result may wait for its pass; where the Lease was lost nobody collects it.

Longer than any queue, or a busy operator would probe again and again and never act.
"""

RECENT = 1.5
"""Seconds for which a result needs no quorum check."""

_Step = Callable[[Key, Slot], None]

log = structlog.get_logger()


class Prober:
    """One slot per cluster: at most one probe under way, at most one result waiting."""

    def __init__(
        self, *, deadline: float, on_done: Callable[[Key], None], on_call: OnCall, clock: Clock, epoch: Epoch
    ) -> None:
        self._deadline = deadline
        self._clock, self._epoch = clock, epoch
        self._on_done, self._on_call = on_done, on_call
        self._lock = threading.Lock()
        self._slots: dict[Key, Slot] = {}
        self._lanes = {lane: lane.threads() for lane in Lane}
        self._is_stopped = False

    def collect(
        self,
        key: Key,
        endpoints: frozenset[str],
        leaving: frozenset[str] = frozenset(),
        pages_needed: PagesNeeded = no_pages,
        access: Access = OPEN,
    ) -> Probe | None:
        """The result of a probe of `endpoints` (`host:port`) for this pass; None: one is under way.

        leaving: those of them that are expected to fall silent and not worth a second request.
        access: a change of credentials closes the connections.
        pages_needed: metrics pages to be read as well; a result without them is not used.
        No endpoints need no probe: the result is empty at once.
        Raises NotProbed when the last probe failed in this process, or none can be begun.
        """
        with self._lock:
            slot = self._slots.get(key)
            if not endpoints:
                if slot is not None:
                    slot.voters = ()  # those that had a quorum are gone: there is none to be checked
                return EMPTY
            if slot is None:
                slot = self._slots[key] = Slot(endpoints, Channels(access.credentials))
            slot.identify(access)
            if slot.failure:
                failure, slot.failure = slot.failure, ""
                raise NotProbed(failure)
            result, slot.result = slot.result, None
            is_recent = self._clock.monotonic() - slot.made_at <= FRESH
            is_fresh = is_recent and slot.epoch == self._epoch()
            is_complete = endpoints <= slot.endpoints
            if result is not None and is_fresh and is_complete and pages_needed(result) <= slot.pages_read:
                return result
            if slot.is_under_way:
                slot.gone = slot.endpoints - endpoints
            elif not self._is_stopped:
                lane, step = self._lane_for(slot, endpoints)
                slot.endpoints, slot.is_under_way, slot.is_outdated = endpoints, True, False
                slot.removed &= endpoints
                slot.gone = frozenset()
                slot.leaving = leaving | slot.removed
                slot.pages_needed, slot.pages_read = pages_needed, frozenset()
                self._begin(lane, step, key, slot)
            return None

    def invalidate(self, key: Key, *, removed: frozenset[str] = frozenset()) -> None:
        """etcd has just been changed: a result, or a probe under way, shows the state before.

        removed: endpoints of the member that was removed by it.
        """
        with self._lock:
            slot = self._slots.get(key)
            if slot is not None:
                slot.result, slot.is_outdated = None, True
                slot.removed |= removed

    def distrust(self, key: Key) -> None:
        """A quorum check of this cluster was not answered: the next probe waits for the whole deadline."""
        with self._lock:
            slot = self._slots.get(key)
            if slot is not None:
                slot.is_distrusted = True

    def channels(self, key: Key) -> Channels:
        """The open connections of a cluster, for calls that act."""
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = Slot(frozenset(), Channels())
            return slot.channels

    def settled(self) -> list[Settled]:
        """The clusters that had a quorum at their last probe, unless that is now or just was."""
        recently = self._clock.monotonic() - RECENT
        with self._lock:
            return [
                Settled(key, slot.channels, slot.voters)
                for key, slot in self._slots.items()
                if slot.voters and not slot.is_under_way and slot.made_at <= recently
            ]

    def forget(self, key: Key) -> None:
        """The cluster is deleted: close its connections."""
        with self._lock:
            slot = self._slots.pop(key, None)
        if slot is not None:
            slot.channels.close()

    def stop(self) -> None:
        """Close everything; probes under way end within their deadline."""
        with self._lock:
            self._is_stopped = True
            slots = list(self._slots.values())
        for slot in slots:
            slot.channels.close()
        for lane in self._lanes.values():
            lane.shutdown(wait=True, cancel_futures=True)

    def _lane_for(self, slot: Slot, endpoints: frozenset[str]) -> tuple[Lane, _Step]:
        now = self._clock.monotonic()
        is_distrusted, slot.is_distrusted = slot.is_distrusted, False
        if not slot.has_no_quorum or endpoints != slot.endpoints:
            slot.unproven_since = now
            return (Lane.CONFIRM, self._ask_fully) if is_distrusted else (Lane.QUICK, self._ask)
        if now - slot.unproven_since < LASTING_SILENCE:
            return Lane.CONFIRM, self._ask_fully
        return Lane.SILENT, self._ask_silent

    def _begin(self, lane: Lane, step: _Step, key: Key, slot: Slot) -> None:
        try:
            self._submit(lane, step, key, slot)
        except RuntimeError as error:
            slot.is_under_way = False
            raise NotProbed(f"members were not asked: {error}") from error

    def _submit(self, lane: Lane, step: _Step, key: Key, slot: Slot) -> None:
        """Raises RuntimeError if no thread can be started; what is queued is void then."""
        slot.turn += 1
        try:
            self._lanes[lane].submit(self._guarded, step, key, slot, slot.turn)
        except RuntimeError:
            slot.turn += 1
            if not self._is_stopped:
                raise

    def _guarded(self, step: _Step, key: Key, slot: Slot, turn: int) -> None:
        if turn != slot.turn:
            return
        try:
            step(key, slot)
        except Unavailable:  # closed meanwhile: the cluster has been deleted, or the operator ends
            self._finish(key, slot, EMPTY)
        except NotProbed as error:
            self._fail(key, slot, str(error))
        except Exception as error:
            log.exception("probe_crashed", cluster=str(key))
            self._fail(key, slot, f"members were not asked: {type(error).__name__}: {error}")

    def _ask(self, key: Key, slot: Slot) -> None:
        result = self._probe(slot, deadline=PATIENCE, patience=PATIENCE)
        if self._is_final(slot, result):
            self._finish(key, slot, result)
        else:
            self._submit(Lane.CONFIRM, self._ask_fully, key, slot)

    def _ask_fully(self, key: Key, slot: Slot) -> None:
        result = self._probe(slot, deadline=self._deadline, patience=self._deadline)
        slot.fully_probed_at = self._clock.monotonic()
        self._finish(key, slot, result)

    def _ask_silent(self, key: Key, slot: Slot) -> None:
        result = self._probe(slot, deadline=PATIENCE, patience=PATIENCE)
        is_recent = self._clock.monotonic() - slot.fully_probed_at < FULL_PROBE_SECONDS
        if self._is_final(slot, result) or (is_recent and answering(result) == slot.answered):
            self._finish(key, slot, result)
        elif is_recent:  # something has changed: it may be on its way back
            self._submit(Lane.CONFIRM, self._ask_fully, key, slot)
        else:
            self._ask_fully(key, slot)

    def _is_final(self, slot: Slot, result: Probe) -> bool:
        if result.quorum:
            return not slot.answered & slot.endpoints - slot.leaving - answering(result)
        return not result.is_cut_short or self._deadline <= PATIENCE

    def _finish(self, key: Key, slot: Slot, result: Probe) -> None:
        silent_for = slot.silent_for(result, self._clock.monotonic(), self._epoch())
        if result is not EMPTY:
            slot.pages_read = slot.pages_needed(result)
            result = replace(result, pages=read(slot.pages_read), silent_for=silent_for)
        with self._lock:
            slot.is_under_way = False
            slot.result, slot.made_at = None if slot.is_outdated else result, self._clock.monotonic()
            slot.answered, slot.voters = answering(result), voters(result)
            slot.has_no_quorum = not result.quorum
            is_stopped = self._is_stopped
        if not is_stopped:
            self._on_done(key)

    def _fail(self, key: Key, slot: Slot, failure: str) -> None:
        with self._lock:
            slot.is_under_way, slot.result, slot.failure = False, None, failure
        self._on_done(key)

    def _probe(self, slot: Slot, *, deadline: float, patience: float) -> Probe:
        within = min(deadline, self._deadline)
        slot.channels.retain(slot.endpoints)
        return probe(
            slot.channels,
            slot.endpoints,
            deadline=within,
            patience=min(patience, within),
            known=Known(gone=lambda: slot.removed | slot.gone, proof_patience=PROOF_PATIENCE),
            on_call=self._on_call,
        )
