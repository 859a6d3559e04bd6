"""Leads as long as the Lease allows, seeks leadership again after its loss, and runs what only a leader does.

A lost Lease need not end the process: most often the API server was down, no other process could lead either,
and a restart would only add a cold start and a crash loop to the outage. What must end at once is acting:
`is_leader` is false as soon as the Lease is no longer reliable (`kube.lease` has the promises). Every pass
checks it (`only_as_leader`), and so does every write (`shared.objects`) and every change of etcd's members.
"""

import threading
from collections.abc import Callable, Sequence

import structlog

from etcd_operator.controllers.etcd_cluster.observe.quorum_check import QUORUM_CHECK_SECONDS
from etcd_operator.controllers.shared.groups import Group
from etcd_operator.engine.controller import Reconcile, Result
from etcd_operator.engine.threads import Loop, OnCrash
from etcd_operator.keys import Key
from etcd_operator.kube.lease import Elector

NewElector = Callable[[Callable[[], None], Callable[[], None]], Elector]
"""Makes an elector from its two callbacks: leadership acquired, leadership lost."""

CACHE_CHECK_SECONDS = 0.5
"""At most so long until a starter notices that the process ends."""

NOT_LEADING_RECHECK = 1.0
"""Seconds until a key is tried again while another process may lead."""

log = structlog.get_logger()


def only_as_leader(reconcile: Reconcile, may_act: Callable[[], bool]) -> Reconcile:
    """The passes of a controller, each of which waits as long as another process may lead."""

    def gated(key: Key) -> Result:
        if not may_act():
            return Result(requeue_after=NOT_LEADING_RECHECK, is_done=False)
        return reconcile(key)

    return gated


class Leadership:
    """One elector after the other, all with the same identity.

    `on_first` is called once, when this process leads for the first time; `on_change` whenever leadership is
    acquired or lost. Neither may block.
    """

    def __init__(
        self, new_elector: NewElector, *, on_first: Callable[[], None], on_change: Callable[[bool], None]
    ) -> None:
        self._new_elector = new_elector
        self._on_first = on_first
        self._on_change = on_change
        self._lock = threading.Lock()
        self._is_stopping = False
        self._has_led = False
        self._losses = 0
        self._past: list[Elector] = []
        self._elector = self._new()

    def start(self) -> None:
        """Begin to seek the Lease."""
        self._elector.start()

    def is_leader(self) -> bool:
        """Whether this process leads now. Check right before each act."""
        return self._elector.is_leader()

    def leads_for(self, seconds: float) -> bool:
        """Whether this process leads, and no other can within `seconds`: for changes of etcd's members."""
        return self._elector.leads_for(seconds)

    def epoch(self) -> int:
        """Another number after leadership was lost, and again as soon as `is_leader` is true again.

        What was remembered under another number is outdated: another process may have led since. So is what a
        pass has remembered that began before, and went on for a moment.
        """
        with self._lock:
            return 2 * self._losses + self._elector.has_led

    def stop(self, timeout: float) -> bool:
        """Stop renewing, after the workers have been joined; whether all ended in `timeout` seconds."""
        with self._lock:
            self._is_stopping = True
            electors = [self._elector, *self._past]
        ended = [elector.stop(timeout) for elector in electors]
        return all(ended)

    def release(self) -> bool:
        """Give the Lease up, after `stop`; whether that was done."""
        return self._elector.release()

    def _new(self) -> Elector:
        return self._new_elector(self._began, self._lost)

    def _began(self) -> None:
        self._on_change(True)  # noqa: FBT003 -- the only value
        with self._lock:
            is_first, self._has_led = not self._has_led, True
        if is_first:
            self._on_first()

    def _lost(self) -> None:
        """Called by the old elector's last thread, which ends when this returns."""
        self._on_change(False)  # noqa: FBT003 -- the only value
        with self._lock:
            if self._is_stopping:
                return
            self._past = [elector for elector in self._past if not elector.stop(0.0)] + [self._elector]
            self._losses += 1
            self._elector = self._new()
            elector = self._elector
        elector.start()
        log.info("seeking_leadership_again")


class LeaderThreads:
    """One starter for each group, and the thread of the quorum checks.

    `defined` is set once the definitions were applied, `ended` when the process is to end.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        *,
        defined: threading.Event,
        ended: threading.Event,
        may_act: Callable[[], bool],
        on_crash: OnCrash,
    ) -> None:
        self._groups = groups
        self._defined, self._ended = defined, ended
        self._may_act = may_act
        self._loops = [Loop(f"{group.name}-starter", self._starter(group), on_crash) for group in groups]
        self._loops.append(Loop("quorum-checks", self._check_quorums, on_crash))

    def start(self) -> None:
        """Called once, when this process leads for the first time."""
        for loop in self._loops:
            loop.start()

    def stop(self, left: Callable[[float], float]) -> list[str]:
        """Stop the controllers; what did not end in time. `left` limits each wait to what remains."""
        late = [c.name for group in self._groups for c in group.controllers if not c.stop(left(10.0))]
        return late + [loop.name for loop in self._loops if not loop.join(left(2.0))]

    def _starter(self, group: Group) -> Callable[[], None]:
        def start() -> None:
            """Start the controllers once the group's caches are complete and the others' clusters are known.

            Not before the definitions were applied: an older one would drop fields that we write.
            """
            while not self._ended.is_set():
                if self._defined.is_set() and group.has_synced and group.awaited is None:
                    for controller in group.controllers:
                        controller.start()
                    unknown = [str(other.resource) for other in group.others if not other.has_synced]
                    log.info("group_started", group=group.name, unknown=unknown)
                    return
                waiting = next((i for i in (*group.informers, *group.others) if not i.has_synced), None)
                if waiting is not None:
                    waiting.wait_synced(CACHE_CHECK_SECONDS)
                else:
                    self._defined.wait(CACHE_CHECK_SECONDS)

        return start

    def _check_quorums(self) -> None:
        """Check the quorum of all clusters until the end, whenever this process leads."""
        while not self._ended.wait(QUORUM_CHECK_SECONDS):
            if self._may_act():
                for group in self._groups:
                    for check in group.checks:
                        check()
