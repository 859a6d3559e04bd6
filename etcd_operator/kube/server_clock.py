"""How far our clock is from that of the API server, as the `Date` headers of its answers show."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from etcd_operator.clock import Clock

RESOLUTION = timedelta(seconds=1)
"""The header names the second that has begun."""


@dataclass(frozen=True, slots=True)
class _Seen:
    date: datetime
    took: timedelta  # the answer: the header was written at some time in between
    at: float  # monotonic, when it had come


@dataclass(eq=False)
class ServerClock:
    """What the newest answer shows. Safe from any thread.

    The time since then is measured, so that a clock that is set wrong is noticed before the next answer.
    """

    clock: Clock
    _seen: _Seen | None = None

    def saw(self, headers: Mapping[str, str], took: float) -> None:
        """An answer has come, after so many seconds; one without the header shows nothing."""
        try:
            date = parsedate_to_datetime(headers.get("Date", ""))
        except ValueError:
            return
        if date.tzinfo is not None:
            self._seen = _Seen(date, timedelta(seconds=took), self.clock.monotonic())

    def offset(self) -> timedelta:
        """How far our clock is ahead, negative if it is behind: as little as the answer allows."""
        seen = self._seen
        if seen is None:
            return timedelta()
        since = timedelta(seconds=self.clock.monotonic() - seen.at)
        most = self.clock.now() - seen.date - since
        return max(most - RESOLUTION - seen.took, min(most, timedelta()))
