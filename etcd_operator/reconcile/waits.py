"""For how long passes have waited for something. It is in memory: a restart costs some waiting.

Not from the times in objects: the clocks of machines differ, and jump.
"""

from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.keys import Key


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Since when each key has waited for each thing, by name; only passes over that key ask."""

    clock: Clock
    _since: dict[Key, dict[str, float]] = field(default_factory=dict)

    def seconds(self, key: Key, what: str) -> float:
        """Seconds since this was first asked."""
        now = self.clock.monotonic()
        return now - self._since.setdefault(key, {}).setdefault(what, now)

    def end(self, key: Key, what: str) -> None:
        """This has come; it may have to be waited for again."""
        self._since.get(key, {}).pop(what, None)

    def forget(self, key: Key) -> None:
        """There is nothing left to wait for."""
        self._since.pop(key, None)
