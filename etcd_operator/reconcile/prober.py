"""Looks at etcd without ever making a worker wait.

A pass asks for a look (`take`). If there is none, one is begun on a thread of the prober
and the pass ends; when the members have answered, or the deadline is over, the key is
queued again and that pass takes the result. So a cluster whose members are silent costs
a thread of this pool for the deadline, and no other cluster waits for it.

A look is used once, and soon: what a pass decides rests on answers that came after whatever woke it.

A member that answered the last time and is silent now is asked once more, with the whole
deadline: on a busy machine a short silence is common, and each one told is a status write.
One whose pod is being deleted is not: it falls silent for good, and the rest need not wait. One
that was just removed is not waited for at all: its process ends, or hangs for a second or two.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import structlog

from etcd_operator.clock import Clock
from etcd_operator.errors import Unavailable
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import OnCall
from etcd_operator.etcd.probe import Answer, NoAnswer, Probe, Refused, probe
from etcd_operator.etcd.vitals import Reading, read
from etcd_operator.keys import Key
from etcd_operator.reconcile.pulse import Settled
from etcd_operator.reconcile.readings import Wanted, nothing

THREADS = 16
"""Silent clusters that can be looked at at the same time."""

PATIENCE = 0.5
"""Seconds for members that are silent while others prove a quorum, at the first try."""

FRESH = 30.0
"""Seconds that a look may wait for its pass; where the Lease was lost it would be left lying.

Longer than any queue, or a busy operator would look again and again and never act.
"""

RECENT = 1.5
"""Seconds for which a look needs no confirmation."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Slot:
    endpoints: frozenset[str]
    channels: Channels
    is_under_way: bool = False
    is_outdated: bool = False
    look: Probe | None = None
    made_at: float = 0.0
    heard: frozenset[str] = frozenset()
    leaving: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    voters: tuple[str, ...] = ()
    wanted: Wanted = nothing
    read: frozenset[Reading] = frozenset()
    silent_since: dict[str, float] = field(default_factory=dict)

    def silent_for(self, look: Probe, now: float) -> dict[str, float]:
        """Seconds since each that is silent was heard, or first asked."""
        silent = [at for at, reply in look.answers.items() if isinstance(reply, NoAnswer)]
        self.silent_since = {at: self.silent_since.get(at, now) for at in silent}
        return {at: now - since for at, since in self.silent_since.items()}


class Prober:
    """One slot per cluster: at most one look under way, at most one result waiting."""

    def __init__(
        self, *, deadline: float, on_done: Callable[[Key], None], on_call: OnCall, clock: Clock
    ) -> None:
        self._deadline = deadline
        self._clock = clock
        self._on_done = on_done
        self._on_call = on_call
        self._lock = threading.Lock()
        self._slots: dict[Key, _Slot] = {}
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="prober")
        self._is_stopped = False

    def take(
        self,
        key: Key,
        endpoints: frozenset[str],
        leaving: frozenset[str] = frozenset(),
        wanted: Wanted = nothing,
    ) -> Probe | None:
        """A look at `endpoints` (`host:port`) made for this pass; None: one is under way.

        leaving: those of them that are expected to fall silent and not worth a second question.
        wanted: pages to be read as well; a look without them is not used.
        No endpoints need no look: the result is empty at once.
        """
        if not endpoints:
            return Probe(answers={}, quorum=None)
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot(endpoints, Channels())
            look, slot.look = slot.look, None
            is_fresh = self._clock.monotonic() - slot.made_at <= FRESH
            if look is not None and is_fresh and endpoints <= slot.endpoints and wanted(look) <= slot.read:
                return look
            if not slot.is_under_way and not self._is_stopped:
                slot.channels.retain(endpoints)
                slot.endpoints, slot.is_under_way, slot.is_outdated = endpoints, True, False
                slot.removed &= endpoints
                slot.leaving = leaving | slot.removed
                slot.wanted, slot.read = wanted, frozenset()
                self._pool.submit(self._run, key, slot)
            return None

    def invalidate(self, key: Key, *, removed: frozenset[str] = frozenset()) -> None:
        """etcd has just been changed: what was seen, or is being looked at, is of the world before.

        removed: endpoints of who is no member since.
        """
        with self._lock:
            slot = self._slots.get(key)
            if slot is not None:
                slot.look, slot.is_outdated = None, True
                slot.removed |= removed

    def channels(self, key: Key) -> Channels:
        """The open connections of a cluster, for calls that act."""
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot(frozenset(), Channels())
            return slot.channels

    def settled(self) -> list[Settled]:
        """The clusters that had a quorum when they were last looked at, unless that is now or just was."""
        recently = self._clock.monotonic() - RECENT
        with self._lock:
            return [
                Settled(key, slot.channels, slot.voters)
                for key, slot in self._slots.items()
                if slot.voters and not slot.is_under_way and slot.made_at <= recently
            ]

    def forget(self, key: Key) -> None:
        """The cluster is gone: close its connections."""
        with self._lock:
            slot = self._slots.pop(key, None)
        if slot is not None:
            slot.channels.close()

    def stop(self) -> None:
        """Close everything; looks under way end within their deadline."""
        with self._lock:
            self._is_stopped = True
            slots = list(self._slots.values())
        for slot in slots:
            slot.channels.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, key: Key, slot: _Slot) -> None:
        look = Probe(answers={}, quorum=None)
        try:
            look = self._look(slot, patience=PATIENCE)
            if look.quorum and slot.heard & slot.endpoints - slot.leaving - _answering(look):
                look = self._look(slot, patience=self._deadline)
            slot.read = slot.wanted(look)
            silent_for = slot.silent_for(look, self._clock.monotonic())
            look = replace(look, vitals=read(slot.read), silent_for=silent_for)
        except Unavailable:
            pass  # closed meanwhile: the cluster has been deleted, or the operator ends
        except Exception:
            log.exception("probe_crashed", cluster=str(key))
        with self._lock:
            slot.is_under_way = False
            slot.look, slot.made_at = None if slot.is_outdated else look, self._clock.monotonic()
            slot.heard, slot.voters = _answering(look), _voters(look)
            is_stopped = self._is_stopped
        if not is_stopped:
            self._on_done(key)

    def _look(self, slot: _Slot, *, patience: float) -> Probe:
        return probe(
            slot.channels,
            slot.endpoints,
            deadline=self._deadline,
            patience=min(patience, self._deadline),
            removed=slot.removed,
            on_call=self._on_call,
        )


def _voters(look: Probe) -> tuple[str, ...]:
    """Those that can prove the quorum that there is, in an order that stays; none without one."""
    answers = look.answers.items() if look.quorum else ()
    return tuple(sorted(at for at, said in answers if _may_prove(said)))


def _may_prove(said: Answer | Refused | NoAnswer) -> bool:
    match said:
        case Answer():
            return not said.status.is_learner
        case Refused():
            return said.is_serving
        case NoAnswer():
            return False


def _answering(look: Probe) -> frozenset[str]:
    """Those whose silence would be news; of those that want a user the proof is what is heard."""
    return frozenset(
        at
        for at, reply in look.answers.items()
        if isinstance(reply, Answer) or (isinstance(reply, Refused) and reply.is_serving)
    )
