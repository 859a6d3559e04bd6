"""What goes wrong at a write: faults counted without Events, and the death of the operator."""

import itertools
from collections.abc import Callable

from unit.fakes.apiserver.faults import Fault, Request
from unit.reconcile.bench import Bench
from unit.reconcile.harness import Died


class OnNthWrite:
    """A hook that gives `fault` once, at the k-th write from now on, Events apart."""

    def __init__(self, number: int, fault: Fault, plural: str = "") -> None:
        self._left = itertools.count(number - 1, -1)
        self._fault = fault
        self._plural = plural
        self.has_fired = False

    def __call__(self, request: Request) -> Fault | None:
        if not request.is_write or request.plural == "events" or self._plural not in ("", request.plural):
            return None
        if next(self._left) == 0:
            self.has_fired = True
            return self._fault
        return None


def run_or_die(made: Bench, claim: Callable[[], None]) -> bool:
    """Run `claim`; false if the operator died of it, and a new one is needed."""
    try:
        claim()
    except Died:
        made.kill()
        return False
    return True
