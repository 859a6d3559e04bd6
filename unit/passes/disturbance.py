"""What goes wrong at a write: faults counted without Events, and the death of the operator."""

import itertools
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import grpc

from unit.fakes.apiserver.faults import Answer, Cut, Fault, Request
from unit.fakes.etcd.refusals import Refusal
from unit.passes.bench import Bench
from unit.passes.mortality import Died

STEP = int(os.environ.get("ETCD_OPERATOR_WRITE_STEP", "1"))
"""Of a scenario's writes, disturb each one, or every n-th: all of them take an hour (docs/development.md)."""


class EachWrite:
    """The numbers of the writes to disturb, a run for each, until `goes_on` is false.

    The last run has no such write. With a `STEP`, similar tests begin at different writes, and the runs
    before the last one are made as well, so that the number of writes is known.
    """

    def __init__(self) -> None:
        self.goes_on = True  # whether the last run had such a write
        self.runs = 0  # in the end the number of the first one that had none

    def __iter__(self) -> Iterator[int]:
        first = 1 + zlib.crc32(os.environ["PYTEST_CURRENT_TEST"].encode()) % STEP
        for self.runs in itertools.count(first, STEP):
            yield self.runs
            if not self.goes_on:
                break
        end = self.runs
        for self.runs in range(max(1, end - STEP + 1), end):
            yield self.runs
            if not self.goes_on:
                return
        self.runs = end


class OnNthWrite:
    """A hook that gives `fault` once, at the k-th write from now on, before or after it is applied.

    Writes to the API server, Events apart, and to etcd count alike; etcd's fault is a lost connection.
    """

    def __init__(self, number: int, fault: Fault | None) -> None:
        self._left = itertools.count(number - 1, -1)
        self._fault = fault
        self.has_fired = False

    def install(self, made: Bench, *, after: bool) -> None:
        """Take hold of the API server and of the etcd that runs now."""
        if after:
            made.api.after = self
        else:
            made.api.before = self
        for process in made.etcds.by_token.values():
            process.etcd.on_write = lambda _method, applied: self._on_etcd(applied is after)

    def __call__(self, request: Request) -> Fault | None:
        if request.is_write and request.plural != "events" and self._is_its_turn():
            return self._fault
        return None

    def _on_etcd(self, is_meant: bool) -> None:
        if is_meant and self._is_its_turn() and self._fault is not None:
            raise Refusal(grpc.StatusCode.UNAVAILABLE, "connection reset by peer")

    def _is_its_turn(self) -> bool:
        is_turn = next(self._left) == 0
        self.has_fired = self.has_fired or is_turn
        return is_turn


def run_or_die(made: Bench, claim: Callable[[], None]) -> bool:
    """Run `claim`; false if the operator died of it, and a new one is needed."""
    try:
        claim()
    except Died:
        made.kill()
        return False
    return True


@dataclass(frozen=True)
class Disturbance:
    """What happens at the k-th write: a fault before or after it is applied, and whether it kills."""

    before: Fault | None = None
    after: Fault | None = None
    kills: bool = False
    world_goes_on: bool = False

    def arrange(self, made: Bench, write: int) -> Callable[[], bool]:
        """Set it up and start the operator; the result shows whether the write has come."""
        begin = made.count_writes()
        fault = self.before or self.after
        if fault is not None:
            OnNthWrite(write, fault).install(made, after=self.before is None)
        made.start(dies_at=write if self.kills else 0)
        return lambda: made.count_writes() - begin >= write


DISTURBANCES = {
    "it dies after the reply": Disturbance(kills=True, world_goes_on=True),
    "it dies after the reply and the world stands still": Disturbance(kills=True),
    "the reply is lost and it dies": Disturbance(after=Cut(), kills=True, world_goes_on=True),
    "the reply is lost and it lives on": Disturbance(after=Cut()),
    "the reply is a timeout though it was applied": Disturbance(after=Answer(code=504, reason="Timeout")),
    "the connection ends before it is applied": Disturbance(before=Cut()),
    "it is answered with 500": Disturbance(before=Answer(code=500, reason="InternalError")),
    "it is answered with 429": Disturbance(before=Answer(code=429, reason="TooManyRequests", retry_after=1)),
    "it is answered with 409": Disturbance(before=Answer(code=409, reason="Conflict")),
}


def survives(made: Bench, disturbance: Disturbance, write: int, workflow: Callable[[], object]) -> bool:
    """Go through `workflow` with disturbance at one write; false when it has no such write."""
    has_come = disturbance.arrange(made, write)
    workflow()
    if not run_or_die(made, made.settle):
        if disturbance.world_goes_on:
            while made.step():
                pass
        made.start()
        made.settle()
    return has_come()


LAG_SECONDS = 0.5
"""Some passes on a view that stands still: a step is a tenth of a second."""


class Lag(OnNthWrite):
    """From just before the k-th write on, lists and watches show nothing new."""

    def __init__(self, made: Bench, number: int) -> None:
        super().__init__(number, None)
        self._api = made.api

    def _is_its_turn(self) -> bool:
        is_turn = super()._is_its_turn()
        if is_turn:
            self._api.freeze_views()
        return is_turn


def survives_lag(made: Bench, write: int, is_done: Callable[[], bool], *, skips: bool) -> bool:
    """Run on a view that stands still from the k-th write on for a while; false when there is no such write.

    skips: what happened in between is never sent, the watches have to list anew.
    """
    lag = Lag(made, write)
    lag.install(made, after=False)
    made.start()
    made.run_until(lambda: lag.has_fired or is_done())
    if lag.has_fired:
        made.wait(LAG_SECONDS)
        if skips:
            made.api.compact()
        made.api.thaw_views()
    made.settle()
    return lag.has_fired


class AtNthWrite(OnNthWrite):
    """Calls `then` right after the k-th write, while the pass that made it goes on."""

    def __init__(self, number: int, then: Callable[[], object]) -> None:
        super().__init__(number, None)
        self._then = then

    def _is_its_turn(self) -> bool:
        is_turn = super()._is_its_turn()
        if is_turn:
            self._then()
        return is_turn
