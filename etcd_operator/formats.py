"""How numbers, durations, times and the IDs of etcd are written, and read back."""

import re
from datetime import UTC, datetime

CORRUPT_ALARM = "taken while etcd reported corrupt data (alarm CORRUPT), so its data may be wrong"
"""What is said of a backup that is marked as such."""

UNKNOWN_BACKUP = (
    "was not stored by this cluster's backup tool, or before the token in its Secret was replaced"
)
"""What is said of a backup that the backup tool lists and does not recognize."""

# Numbers and durations for people

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_UNITS_OF_TIME = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def bytes_text(count: float) -> str:
    """A number of bytes: 512 B, 1.5 MiB."""
    size = float(count)
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def duration_text(seconds: int) -> str:
    """A duration by its two largest units: 1 h 5 min."""
    parts = []
    for unit, size in _UNITS_OF_TIME:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def counted(count: int, what: str) -> str:
    """A number of things: 1 key, 2 keys."""
    return f"{count} {what}{'' if count == 1 else 's'}"


# Durations in flags and specs

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


# Times of Kubernetes


def timestamp(moment: datetime) -> str:
    """As `metav1.Time` is written: RFC 3339, UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(text: str) -> datetime:
    """The moment of such a timestamp; the epoch for an empty one."""
    return datetime.fromisoformat(text) if text else datetime.fromtimestamp(0, UTC)


def moment(text: str) -> datetime | None:
    """The moment of a timestamp that somebody may have changed; None if it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    is_usable = found.tzinfo is not None and 2000 <= found.year <= 9000  # sums with durations are dates, too
    return found if is_usable else None


# IDs of etcd


def hex_id(number: int) -> str:
    """The ID of this number."""
    return f"{number:x}"


def without_padding(text: str) -> str:
    """An ID that somebody may have stored with leading zeros."""
    return text.lstrip("0") or "0"


# Quantities of storage, as Kubernetes writes those that the operator requested

MIB = 1 << 20

_UNITS_OF_QUANTITIES = {
    "": 1,
    **{f"{letter}i": 1 << 10 * power for power, letter in enumerate("KMGTPE", start=1)},
}
_UNITS_OF_QUANTITIES |= {letter: 10 ** (3 * power) for power, letter in enumerate("kMGTPE", start=1)}
_QUANTITY = re.compile(r"([0-9]+)([a-zA-Z]{0,2})")


def bytes_of(quantity: str) -> int | None:
    """The bytes of a whole quantity of Kubernetes, like 512Mi or 1Gi; None for another form, like 1.5Gi."""
    found = _QUANTITY.fullmatch(quantity)
    if found is None or found[2] not in _UNITS_OF_QUANTITIES:
        return None
    return int(found[1]) * _UNITS_OF_QUANTITIES[found[2]]
