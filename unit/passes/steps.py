"""Controllers without threads: their passes run when a test calls them."""

import threading
from typing import Any

from etcd_operator.controllers.wiring import new_backoff
from etcd_operator.engine.controller import Controller, Reconcile
from etcd_operator.keys import Key
from unit.fakes.clock import FakeClock

DEADLINE = 60.0


class Schedule:
    """Keys that are due, and keys that come later, of all controllers of one operator."""

    def __init__(self, clock: FakeClock) -> None:
        self.changed = threading.Condition()
        self.due: dict[tuple[Passes, Key], None] = {}
        self.later: dict[tuple[Passes, Key], float] = {}
        self._clock = clock

    def now(self, controller: "Passes", key: Key) -> None:
        with self.changed:
            self.due[controller, key] = None
            self.changed.notify_all()

    def after(self, controller: "Passes", key: Key, seconds: float) -> None:
        moment = self._clock.monotonic() + seconds
        with self.changed:
            self.later[controller, key] = min(moment, self.later.get((controller, key), moment))
            self.changed.notify_all()

    def pop(self) -> tuple["Passes", Key] | None:
        with self.changed:
            item = next(iter(self.due), None)
            if item is not None:
                del self.due[item]
            return item

    def advance(self, seconds: float | None = None) -> None:
        """Move time to the next key that comes later, or by `seconds`; not while one is due."""
        if seconds is None:
            with self.changed:  # other threads schedule, too: a watch event, a probe that has ended
                assert self.changed.wait_for(lambda: self.later or self.due, DEADLINE), (
                    "nothing is scheduled: nothing will ever happen again"
                )
                if self.due:
                    return
                seconds = max(0.0, min(self.later.values()) - self._clock.monotonic())
        self._clock.advance(seconds)
        with self.changed:
            now = self._clock.monotonic() + 1e-9
            for item in [item for item, moment in self.later.items() if moment <= now]:
                del self.later[item]
                self.due[item] = None


class Passes(Controller):
    """A controller without workers: its keys go to the schedule."""

    def __init__(self, name: str, reconcile: Reconcile, clock: FakeClock, schedule: Schedule) -> None:
        super().__init__(
            name, reconcile, workers=0, clock=clock, backoff=new_backoff(clock), on_crash=never, metrics=None
        )
        self._schedule = schedule
        self.passes = 0

    def _run_in(self, seconds: float, key: Key) -> None:
        if seconds > 0:
            self._schedule.after(self, key, seconds)
        else:
            self._schedule.now(self, key)

    def run(self, key: Key) -> None:
        """One pass, unless the key waits for its retry and was only due for another reason."""
        if left := self.backoff.left(key):
            self._schedule.after(self, key, left)
            return
        self.passes += 1
        self._process(key)

    def _again(self, key: Key, seconds: float) -> None:
        self._schedule.after(self, key, seconds)

    def _settle(self, key: Key, ending: Any) -> str:
        outcome = super()._settle(key, ending)
        if outcome == "panic":
            raise AssertionError(f"{self.name} {key} panicked") from ending
        return outcome


def never(name: str, error: BaseException) -> None:
    """For threads that must not crash."""
    raise AssertionError(f"thread {name} crashed") from error
