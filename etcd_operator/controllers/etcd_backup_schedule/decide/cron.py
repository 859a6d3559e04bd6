"""The times of a schedule, all of them in UTC.

`cronsim` decides, as the cron of Debian would. Where the clocks of a time zone change, a schedule with a
fixed minute and hour runs once: a time that is skipped is due right after the change, a time that is
repeated is due at its first occurrence. A schedule whose minute or hour begins with `*` follows the hours
that pass.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from etcd_operator.api.definitions.schedule_validations import CRON, MACROS, TIME_ZONE
from etcd_operator.errors import InvalidSpec

FINEST = timedelta(minutes=1)
"""The shortest time between two times of a schedule."""

_ANY = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """A valid schedule in a time zone. Moments are aware; results are in UTC."""

    fields: str
    zone: tzinfo

    def next_after(self, moment: datetime) -> datetime:
        """The first time after `moment`."""
        found = (due.astimezone(UTC) for due in CronSim(self.fields, moment.astimezone(self.zone)))
        # In an hour that is repeated, cronsim returns times that were due in its first occurrence.
        return next(due for due in found if due > moment)

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last time after `after` that is not after `until`; None if there is none.

        By bisection: it takes about as long for a million missed times as for one.
        """
        known = self._within(after, until)
        if known is None:
            return None
        end = until  # `known` is due, and nothing is after `end`
        while end - known > FINEST:
            middle = known + (end - known) / 2
            later = self._within(middle, until)
            known, end = (known, middle) if later is None else (later, end)
        return self._within(known, until) or known

    def _within(self, after: datetime, until: datetime) -> datetime | None:
        found = self.next_after(after)
        return found if found <= until else None


def cron(schedule: str, time_zone: str) -> Cron:
    """The schedule of a spec. Raises `InvalidSpec` with one sentence."""
    if not CRON.fits(schedule):
        raise InvalidSpec(f'spec.schedule: "{schedule}" {CRON.message}')
    fields = MACROS.get(schedule.strip(), schedule)
    try:
        is_ever = next(CronSim(fields, _ANY), None) is not None
    except CronSimError as error:
        why = f"{error}: check the order of ranges, and that there is such a day"
        raise InvalidSpec(f'spec.schedule: "{schedule}" is not a valid schedule: {why}') from error
    if not is_ever:
        raise InvalidSpec(f'spec.schedule: "{schedule}" matches no date of the next 50 years')
    return Cron(fields, _zone(time_zone))


def _zone(name: str) -> tzinfo:
    if not name:
        return UTC
    try:
        if TIME_ZONE.fits(name):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; not a time zone; a folder of them
        pass
    raise InvalidSpec(f'spec.timeZone: "{name}" {TIME_ZONE.message}')
