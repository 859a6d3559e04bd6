"""Workers that bring one kind of object to its desired state, key by key.

A controller owns a work queue of keys, the delays before keys return, and N worker threads that call
`reconcile(key)`. What it promises:

- A key is never reconciled by two workers at once; an event during a pass causes another pass.
- One place (`_settle`) decides what the end of a pass means for the key:

      Result()                    forget its failures
      Result(requeue_after=s)     forget its failures, run again in s seconds
      Result(is_done=False)       it waits for something (etcd, caches): neither success nor failure
      Throttled                   retry with back-off, not before the server's retry_after (at most a minute)
      TerminalError               wait for a new event: a retry cannot help
      any other OperatorError     retry with back-off
      any other exception         a bug ("panic"): counted separately, logged with its traceback,
                                  retried with back-off

  So one key's failure never stops the others, nor its worker.
- A key that keeps failing reaches the longest wait, whatever its passes write and wake; keys that fail, or
  whose passes hang, leave workers to the others (`workqueue`, `worker_pool`).
- Keys may be enqueued before `start`: they wait for the workers. Leader election calls `start`.
- `stop` lets running passes end and begins no other. A controller is used once: after `stop` it refuses keys.

Not promised: a limit on how long a pass takes. A pass that hangs keeps its worker and its key; the queue's
`longest_running_seconds` and `stalled_seconds` show it, and `problem` reports it.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import structlog

from etcd_operator.clock import Clock
from etcd_operator.engine.backoff import Backoff
from etcd_operator.engine.delay import DelayQueue
from etcd_operator.engine.threads import OnCrash, join_all
from etcd_operator.engine.worker_pool import WorkerPool
from etcd_operator.engine.workqueue import QueueMetrics, ShutDown, WorkQueue
from etcd_operator.errors import Conflict, OperatorError, TerminalError, Throttled
from etcd_operator.keys import Key

LONGEST_RETRY_AFTER = 60.0
"""Seconds; a server, or a proxy whose clock is wrong, may send days, and nothing would end that wait."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A pass that succeeded."""

    requeue_after: float | None = None  # seconds until the next one; None: at the next event
    is_done: bool = True  # false: it ended before it could do anything, because it waits for something


Reconcile = Callable[[Key], Result]
Around = Callable[[Key], AbstractContextManager[object]]
"""Entered in the worker for the length of a pass: binds the context of its log lines."""


class ControllerMetrics(QueueMetrics, Protocol):
    """What a controller reports as it happens."""

    def observe(self, queue: WorkQueue[Key]) -> None:
        """Called once, with the controller's queue, which has gauges."""

    def retried(self) -> None:
        """A key was requeued with a delay."""

    def reconciled(self, outcome: str, seconds: float) -> None:
        """A pass ended: "success", "requeue_after", "error", "terminal" or "panic"."""


@dataclass(eq=False)
class Controller:
    """The queue, its delays and its workers, from `start` to `stop`."""

    name: str
    reconcile: Reconcile
    _: KW_ONLY
    workers: int
    clock: Clock
    backoff: Backoff[Key]
    on_crash: OnCrash
    around: Around = nullcontext
    metrics: ControllerMetrics | None = None

    def __post_init__(self) -> None:
        self._is_started = self._is_stopping = False
        self._queue: WorkQueue[Key] = WorkQueue(self.clock, self.metrics)
        self._delay = DelayQueue(f"{self.name}-delay", self.resume, clock=self.clock, on_crash=self.on_crash)
        self._pool = WorkerPool(
            self.name, self._queue, self._work, workers=self.workers, on_crash=self.on_crash
        )
        if self.metrics is not None:
            self.metrics.observe(self._queue)

    def enqueue(self, key: Key) -> None:
        """Reconcile `key` as soon as a worker is free: something about it has changed."""
        self._run_in(self.backoff.bring_forward(key), key)

    def restart(self, key: Key) -> None:
        """Reconcile `key` as soon as a worker is free: its desired state has changed."""
        self.backoff.forget(key)
        self._run_in(0.0, key)

    def resume(self, key: Key) -> None:
        """Reconcile `key` now unless it waits for a retry: its last pass waited for this."""
        self._run_in(self.backoff.left(key), key)

    def start(self) -> None:
        """Start the workers; a second time is a `RuntimeError`."""
        self._is_started = True
        self._delay.start()
        self._pool.start()

    def problem(self, limit: float) -> str:
        """What has made no progress for more than `limit` seconds and should have; empty if nothing.

        A controller that was not started, or that is stopping, has nothing to do.
        """
        if not self._is_started or self._is_stopping:
            return ""
        if (seconds := self._queue.longest_running_seconds()) > limit:
            return f"{self.name}: a worker has been in one pass for {seconds:.0f} s"
        if (seconds := self._queue.stalled_seconds()) > limit:
            waiting = f"{self.name}: {self._queue.depth} keys are waiting"
            return f"{waiting}, and no worker has taken one for {seconds:.0f} s"
        if (seconds := self._delay.overdue_seconds()) > limit:
            return f"{self.name}: a key has been due for a retry for {seconds:.0f} s"
        return ""

    def stop(self, deadline: float) -> bool:
        """End the workers after their current passes, within `deadline` seconds; false if one still runs.

        Other keys are dropped: the next process starts from a list of all objects.
        """
        self._is_stopping = True
        self._delay.stop()
        self._queue.shut_down()
        late = join_all((*self._pool.threads, self._delay.loop), deadline)
        if late:
            log.error("controller_not_stopped", controller=self.name, threads=late)
        return not late

    def _run_in(self, seconds: float, key: Key) -> None:
        if seconds > 0:
            self._delay.add_after(key, seconds)
        else:
            self._queue.add(key, is_late=self.backoff.failures(key) > 0)

    def _work(self, timeout: float | None) -> bool:
        """Take one key and run its pass; false if there was none in time, or the queue is shut down."""
        try:
            key = self._queue.get(timeout)
        except (ShutDown, TimeoutError):
            return False
        try:
            if not self._is_stopping:
                self._process(key)
        finally:
            self._queue.done(key)
        return True

    def _process(self, key: Key) -> None:
        started = self.clock.monotonic()
        self.backoff.begin(key)
        try:
            with self.around(key):
                outcome = self._settle(key, self._attempt(key))
        except Exception as error:  # noqa: BLE001 - the hook failed: a bug like any other
            outcome = self._settle(key, error)
        if self.metrics is not None:
            self.metrics.reconciled(outcome, self.clock.monotonic() - started)

    def _attempt(self, key: Key) -> Result | Exception:
        try:
            return self.reconcile(key)
        except Exception as error:  # noqa: BLE001 - the worker's edge: no pass may stop the others
            return error

    def _settle(self, key: Key, ending: Result | Exception) -> str:
        """Decide what the end of a pass means for `key`; returns the outcome's name in the metrics."""
        match ending:
            case Result(requeue_after=seconds, is_done=is_done):
                if is_done:
                    self.backoff.forget(key)
                if seconds is None:
                    return "success"
                self._again(key, seconds)
                return "requeue_after"
            case TerminalError():
                self._failed(key)
                log.error("reconcile_gave_up", **_about(key, ending))
                return "terminal"
            case Throttled():
                self._retry(key, ending, at_least=min(ending.retry_after, LONGEST_RETRY_AFTER))
                return "error"
            case OperatorError():
                self._retry(key, ending)
                return "error"
            case _:
                log.error("reconcile_panicked", exc_info=ending, **_about(key, ending))
                self._again(key, self._failed(key))
                return "panic"

    def _retry(self, key: Key, error: OperatorError, *, at_least: float = 0.0) -> None:
        delay = self._failed(key, at_least=at_least)
        failures = self.backoff.failures(key)
        # A first conflict is how two writers of one object find out about each other: nothing is wrong.
        write = log.info if isinstance(error, Conflict) and failures == 1 else log.warning
        write("reconcile_failed", **_about(key, error), retry_in=round(delay, 3), failures=failures)
        self._again(key, delay)

    def _failed(self, key: Key, *, at_least: float = 0.0) -> float:
        """Count the failure; an event during the pass must not run the key at once."""
        delay = self.backoff.failed(key, at_least=at_least)
        if self._queue.retract(key):
            self.enqueue(key)
        return delay

    def _again(self, key: Key, seconds: float) -> None:
        self._delay.add_after(key, seconds)
        if self.metrics is not None:
            self.metrics.retried()


def _about(key: Key, error: Exception) -> dict[str, str]:
    return {"key": str(key), "error": f"{type(error).__name__}: {error}"}
