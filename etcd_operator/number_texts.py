"""Numbers as people read them."""

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
    return f"{count} {what}{'s' * (count != 1)}"
