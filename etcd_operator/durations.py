"""Durations as people write them: 90m, 12h, 1d12h, 30d."""

import re

UNITS = {"w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
"""Seconds of each unit."""

# Matches a whole text; Python's `re` and RE2 read it alike.
DURATION_PATTERN = "([0-9]{1,6}[wdhms])*[0-9]{0,5}[1-9][0-9]{0,5}[wdhms]([0-9]{1,6}[wdhms])*"

DURATION_HELP = "numbers with the units w, d, h, m and s, like 30d or 1d12h"


def seconds_of(text: str) -> float:
    """The seconds of a duration; the order of units does not matter. Raises `ValueError`."""
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"{text!r} is not a duration: write {DURATION_HELP}")
    parts = re.findall("([0-9]+)([wdhms])", text)
    return float(sum(int(number) * UNITS[unit] for number, unit in parts))
