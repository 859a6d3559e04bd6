"""The thread that takes backups at its times, and removes all of them when the cluster is deleted.

Promises:
- one turn at a time: a request to remove all backups waits for the backup that is being taken;
- the first turn comes an interval after the newest backup of the etcd cluster that runs, so that a restart
  neither adds a backup nor delays one; at once if that time has passed, or if there is none, or etcd does not
  answer: a cluster that is created again has no backup, although those of the deleted one are stored;
- after a failure the next try comes after `RETRY_SECONDS`, or after the interval if that is shorter;
- whatever a turn raises, the thread goes on: what failed is in the report.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from etcd_operator.clock import Clock
from etcd_operator.errors import OperatorError
from etcd_operator.formats import timestamp
from etcd_operator.pods.reports import LastFailure, ToolReport
from etcd_operator.programs.backup_tool.inventory import Inventory
from etcd_operator.programs.backup_tool.runner import Runner

RETRY_SECONDS = 30.0

log = structlog.get_logger()


@dataclass(eq=False)
class _Cleanup:
    """One request to remove all backups."""

    has_ended: threading.Event = field(default_factory=threading.Event)
    failure: str = ""
    """Set before `has_ended`, empty after a success."""


class Worker:
    """Takes backups until `stop`; `run` is the body of its thread."""

    def __init__(self, runner: Runner, *, interval: float, clock: Clock) -> None:
        self._runner = runner
        self._interval = interval
        self._clock = clock
        self._changed = threading.Condition()
        self._cleanups: list[_Cleanup] = []
        self._due = clock.monotonic()
        self._is_stopping = False
        self._is_backing_up = False
        self._has_tried = False
        self._inventory: Inventory | None = None
        self._took: dict[str, float] = {}
        self._success: float | None = None
        self._failure: LastFailure | None = None
        self._failures = 0

    def run(self) -> None:
        """Take turns until `stop` is called."""
        self._first()
        while (cleanups := self._next()) is not None:
            failure = self._attempt(self._clean if cleanups else self._turn)
            self._has_tried = True
            _end(cleanups, failure)

    def stop(self) -> None:
        """End `run` after the turn under way; waiting requests fail."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._dismiss()

    def clean_up(self) -> None:
        """Remove all backups, after which none is taken. Raises `OperatorError` with the reason of a failure.

        Waits for the turn under way: that ends by itself once nothing moves.
        """
        cleanup = _Cleanup()
        with self._changed:
            self._cleanups.append(cleanup)
            self._changed.notify_all()
        if self._is_stopping:
            self._dismiss()
        cleanup.has_ended.wait()
        if cleanup.failure:
            raise OperatorError(cleanup.failure)

    def report(self) -> ToolReport:
        """What is stored, and how the last turn went; asks neither etcd nor the store."""
        with self._changed:
            found = self._inventory or Inventory()
            newest, unknown = found.newest, found.unknown
            since = None if self._success is None else max(0.0, self._clock.monotonic() - self._success)
            return ToolReport(
                newest=newest.report(took=self._took.get(newest.path, 0.0)) if newest is not None else None,
                count=len(found.backups),
                total_size=found.total_size,
                foreign_owner=found.foreign_owner,
                unknown=unknown.report() if unknown is not None else None,
                since_success=since,
                failure=self._failure,
                failures=self._failures,
                is_backing_up=self._is_backing_up,
                is_starting=not self._has_tried,
            )

    @property
    def cluster_id(self) -> str:
        """The etcd cluster of the newest backup that is known; empty if there is none."""
        found = self._inventory
        return found.newest.manifest.cluster_id if found is not None and found.newest is not None else ""

    def _first(self) -> None:
        """Read what is stored, until that succeeds. What the cluster has decides when the first turn is."""
        while self._attempt(self._load) and not self._is_stopping:
            with self._changed:
                self._clock.wait(self._changed, self._retry)

    def _load(self) -> None:
        running = self._runner.running()
        found = self._runner.load(running)
        newest = found.newest_of(running)
        with self._changed:
            self._inventory = found
            now = self._clock.monotonic()
            if newest is None:
                self._due = now
                return
            age = max(0.0, (self._clock.now() - newest.manifest.time).total_seconds())
            self._success = now - age
            self._due = now + max(0.0, self._interval - age)

    def _turn(self) -> None:
        with self._changed:
            self._is_backing_up = True
        try:
            done = self._runner.turn()
        finally:
            with self._changed:
                self._is_backing_up = False
        with self._changed:
            self._inventory, self._failure = done.inventory, None
            self._success = self._clock.monotonic()
            if done.is_new and done.inventory.newest is not None:
                self._took = {done.inventory.newest.path: done.took}

    def _clean(self) -> None:
        """Remove all; the cluster is deleted, so that nothing more is to be stored."""
        with self._changed:
            self._interval = math.inf
        found = self._runner.clean()
        with self._changed:
            self._inventory, self._success = found, None
            self._due = math.inf

    def _attempt(self, work: Callable[[], None]) -> str:
        """Do it; why it failed, empty after a success. The time of the next turn follows."""
        try:
            work()
        except Exception as error:
            if not isinstance(error, OperatorError):
                log.error("turn_crashed", exc_info=error)
            message = " ".join(str(error).split()) or type(error).__name__
            self._failed(type(error).__name__, message)
            return message
        with self._changed:
            self._failure = None
            if work == self._turn:
                self._due = self._clock.monotonic() + self._interval
        return ""

    def _failed(self, reason: str, message: str) -> None:
        log.warning("backup_failed", reason=reason, error=message)
        with self._changed:
            now = timestamp(self._clock.now())
            self._failure = LastFailure(time=now, reason=reason, message=message)
            self._failures += 1
            is_over = self._interval == math.inf
            self._due = math.inf if is_over else self._clock.monotonic() + self._retry

    @property
    def _retry(self) -> float:
        return min(RETRY_SECONDS, self._interval)

    def _next(self) -> list[_Cleanup] | None:
        """Wait for the time of the next backup (empty), or for requests to remove all. None: stop."""
        with self._changed:
            while not self._is_stopping:
                left: float | None = self._due - self._clock.monotonic()
                if left == math.inf:
                    left = None
                if self._cleanups or (left is not None and left <= 0):
                    cleanups, self._cleanups = self._cleanups, []
                    return cleanups
                self._clock.wait(self._changed, left)
            return None

    def _dismiss(self) -> None:
        """Fail all waiting requests: no turn will come."""
        with self._changed:
            cleanups, self._cleanups = self._cleanups, []
        _end(cleanups, "the backup tool is being stopped")


def _end(cleanups: list[_Cleanup], failure: str) -> None:
    for cleanup in cleanups:
        cleanup.failure = failure
        cleanup.has_ended.set()
