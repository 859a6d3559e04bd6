"""A controller whose passes are scripted, and all that can be seen of it."""

from collections.abc import Callable

from etcd_operator.engine.backoff import Backoff
from etcd_operator.engine.controller import Controller, Result
from etcd_operator.engine.workqueue import WorkQueue
from etcd_operator.keys import Key
from unit.engine.support import Crashes
from unit.fakes.clock import FakeClock
from unit.waiting import eventually

A, B = Key("default", "a"), Key("default", "b")


class Recorder(list[tuple[str, str]]):
    """A `ControllerMetrics` that remembers what a controller (not its queue) reported."""

    gauges: WorkQueue[Key]

    def observe(self, queue: WorkQueue[Key]) -> None:
        self.gauges = queue

    def retried(self) -> None:
        self.append(("retried", ""))

    def reconciled(self, outcome: str, seconds: float) -> None:
        self.append(("reconciled", outcome))

    def added(self) -> None: ...
    def taken(self, waited: float) -> None: ...
    def finished(self, worked: float) -> None: ...

    def outcomes(self) -> list[str]:
        return [outcome for kind, outcome in self if kind == "reconciled"]


class World:
    """A controller with one worker whose passes are scripted, and all that can be seen of it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metrics = Recorder()
        self.crashes = Crashes()
        self.passes: list[tuple[Key, float]] = []
        self.script: Callable[[Key], Result] = lambda _: Result()
        self.backoff: Backoff[Key] = Backoff(self.clock, base=1, random=lambda: 0.0)
        self.controller = self.make()

    def make(self, **options: object) -> Controller:
        settings: dict[str, object] = {
            "workers": 1,
            "clock": self.clock,
            "backoff": self.backoff,
            "on_crash": self.crashes,
            "metrics": self.metrics,
        }
        return Controller("t", self._reconcile, **(settings | options))  # type: ignore[arg-type]

    def _reconcile(self, key: Key) -> Result:
        self.passes.append((key, self.clock.monotonic()))
        return self.script(key)

    def rest(self, passes: int) -> None:
        """Wait until that many passes have been made and nothing is left to do now."""
        eventually(lambda: self._is_at_rest() and len(self.metrics.outcomes()) == passes, clock=self.clock)

    def rest_after(self, *steps: tuple[float, int]) -> None:
        """For each `(seconds, passes)`: let time pass, then `rest` with that many passes in all."""
        for seconds, passes in steps:
            self.clock.advance(seconds)
            self.rest(passes)

    def idle(self) -> None:
        """Wait until nothing is left to do now."""
        eventually(self._is_at_rest, clock=self.clock)

    def run_until(self, moment: float) -> None:
        """Let time pass until then, a second at a time, with all that is to do in each."""
        while self.clock.monotonic() < moment:
            self.clock.advance(1)
            self.idle()

    def _is_at_rest(self) -> bool:
        """No key is due, waits for a worker or is in work: what time has brought has been done.

        Each is looked for in the order in which a key goes through them, so that none is missed between two.
        """
        delay, gauges, now = self.controller._delay, self.metrics.gauges, self.clock.monotonic()
        if any(when <= now for when, _ in list(delay._ticket_of.values())):
            return False
        is_asleep = delay._changed in list(self.clock._waiting)  # and hands over no key that was due
        return is_asleep and not gauges.depth and not gauges.in_flight

    def times(self, key: Key = A) -> list[float]:
        return [when for who, when in self.passes if who == key]


def raising(error: Exception) -> Callable[[Key], Result]:
    def script(_: Key) -> Result:
        raise error

    return script
