"""The members' addresses, as writers know them while members are replaced."""

import time
from collections.abc import Callable

from etcd_operator.errors import OperatorError

LookUp = Callable[[], list[str]]
"""The addresses now, of members that may have been replaced."""

LOOKUP_SECONDS = 0.25
"""A writer whose puts all fail, many in a second, would spend the machine on lists of pods."""


class Addresses:
    """The addresses that `look_up` returned last; after a failure it is called again, not all the time."""

    def __init__(self, look_up: LookUp) -> None:
        self._look_up = look_up
        self._next = 0.0
        self.known: list[str] = look_up()

    def refresh(self) -> None:
        """Look them up again; if the API server is away, what is known remains."""
        if time.monotonic() < self._next:
            return
        try:
            self.known = self._look_up()
        except OperatorError:
            return
        finally:
            self._next = time.monotonic() + LOOKUP_SECONDS

    def of(self, number: int) -> str | None:
        """One address for each number, in turn; None while there is none: then they are looked up again."""
        if not self.known:
            self.refresh()
        return self.known[number % len(self.known)] if self.known else None
