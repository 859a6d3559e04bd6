"""Watches one cluster: whether it is whole, and how long it took to become so again after a fault."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from e2e.support.clusters import Document, size_of
from e2e.support.members import Members
from e2e.support.space import Space
from e2e.support.status import is_settled
from etcd_operator.errors import OperatorError

from .targets import Member, Sight

OBSERVE_SECONDS = 0.3
"""Seconds between two observations of a cluster that is recovering: the resolution of `recoveries`."""
OBSERVE_AT_REST_SECONDS = 2.0


@dataclass(slots=True)
class Recoveries:
    """When a cluster had a fault and when it was whole again; moments are of one monotonic clock.

    Between `begin` and `end` of a fault no observation counts: a process that is about to be
    killed still answers.
    After it only an observation that began later than the fault's end does.
    """

    seconds: list[float] = field(default_factory=list)
    _open: int = 0
    _since: float | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether the cluster had a fault and was not seen whole since."""
        return self._since is not None

    def begin(self, now: float) -> None:
        """A fault begins."""
        self._open += 1
        self._since = now

    def end(self, now: float) -> None:
        """A fault has been injected, or mended if it lasts: a recovery is counted from here."""
        self._open -= 1
        self._since = now

    def observe(self, began: float, now: float, *, is_whole: bool) -> None:
        """An observation of the cluster has ended."""
        if is_whole and not self._open and self._since is not None and began >= self._since:
            self.seconds.append(now - self._since)
            self._since = None

    def awaited_for(self, now: float) -> float:
        """Seconds since the last fault began or ended; 0 if no recovery is awaited."""
        return 0.0 if self._since is None else now - self._since


class Watch:
    """Observes a cluster from `with` to its end.

    Whole means: as many pods as declared, each a healthy voter as etcd reports, one cluster ID, one leader,
    a linearizable read at each, and a status that reports that nothing is left to do.
    """

    def __init__(self, space: Space, document: Document) -> None:
        self.document = document
        self.name = str(document["metadata"]["name"])
        self.faults = 0
        self._space = space
        self._size = size_of(document)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{self.name}")
        self._members: tuple[Member, ...] = ()
        self._is_whole = False
        self._recoveries = Recoveries()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._wake.set()
        self._thread.join(60)

    @property
    def is_watching(self) -> bool:
        """Whether nothing has ended the watch before its time."""
        return self._thread.is_alive()

    @property
    def recoveries(self) -> list[float]:
        """Seconds from the end of a fault, or of a row of them, until the cluster was whole."""
        with self._lock:
            return list(self._recoveries.seconds)

    @property
    def sight(self) -> Sight:
        """The cluster as it was seen last."""
        with self._lock:
            is_whole = self._is_whole and not self._recoveries.is_awaited
            return Sight(name=self.name, size=self._size, members=self._members, is_whole=is_whole)

    @property
    def broken_for(self) -> float:
        """Seconds since the last fault, if the cluster has not been seen whole since; else 0."""
        with self._lock:
            return self._recoveries.awaited_for(time.monotonic())

    def begin_fault(self, targets: int) -> None:
        """Call right before members get a fault; `end_fault` must follow."""
        with self._lock:
            self.faults += targets
            self._recoveries.begin(time.monotonic())
        self._wake.set()

    def end_fault(self) -> None:
        """Call when a fault has been injected, or mended if it lasts."""
        with self._lock:
            self._recoveries.end(time.monotonic())
        self._wake.set()

    def _run(self) -> None:
        with Members(deadline=1.0) as members:
            while not self._stop.is_set():
                self._wake.clear()
                try:
                    self._observe(members)
                except OperatorError:
                    self._note(time.monotonic(), is_whole=False)  # the API server is away
                self._wake.wait(OBSERVE_AT_REST_SECONDS if self.sight.is_whole else OBSERVE_SECONDS)

    def _observe(self, members: Members) -> None:
        began = time.monotonic()
        pods = self._space.pods(self.document)
        found = tuple(
            Member(pod=pod["metadata"]["name"], node=pod["spec"].get("nodeName", "")) for pod in pods
        )
        with self._lock:
            self._members = found
        self._note(
            began,
            is_whole=is_settled(self._space.stored(self.document)) and members.all_serve(pods, self._size),
        )

    def _note(self, began: float, *, is_whole: bool) -> None:
        with self._lock:
            self._is_whole = is_whole
            self._recoveries.observe(began, time.monotonic(), is_whole=is_whole)
