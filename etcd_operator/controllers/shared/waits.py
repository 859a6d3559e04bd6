"""For how long passes have waited for something. It is in memory: a restart costs some waiting.

So does a lost Lease: what has come while another process led, and is missing again, was not seen here.
Not from the times in objects: the clocks of machines differ, and jump.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.keys import Key

Epoch = Callable[[], int]
"""A number that is another one once leadership was lost: what was remembered under another one is outdated.

See `Leadership.epoch`, and decision 004.
"""


@dataclass(eq=False, kw_only=True)
class Waits:
    """Since when each key has waited for each thing, by name; only passes over that key ask."""

    clock: Clock
    epoch: Epoch
    _since: dict[Key, dict[str, tuple[int, float]]] = field(default_factory=dict)

    def seconds(self, key: Key, what: str) -> float:
        """Seconds since this was first asked in this epoch."""
        epoch, now = self.epoch(), self.clock.monotonic()
        waits = self._since.setdefault(key, {})
        since = waits.get(what)
        if since is None or since[0] != epoch:
            since = waits[what] = epoch, now
        return now - since[1]

    def end(self, key: Key, what: str) -> None:
        """This has come; it may have to be waited for again."""
        self._since.get(key, {}).pop(what, None)

    def forget(self, key: Key) -> None:
        """There is nothing left to wait for."""
        self._since.pop(key, None)
