"""Leads as long as the Lease allows, and seeks leadership again after it was lost.

A lost Lease need not end the process: most often the API server was down, no other process could lead either,
and a restart would only add a cold start and a crash loop to the outage. What must end at once is acting:
`is_leader` is false as soon as the Lease is no longer reliable, and every pass and every act checks it
(`kube.lease` has the promises).
"""

import threading
from collections.abc import Callable

import structlog

from etcd_operator.kube.lease import Elector

NewElector = Callable[[Callable[[], None], Callable[[], None]], Elector]
"""Makes an elector from its two callbacks: leadership acquired, leadership lost."""

log = structlog.get_logger()


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
