"""Numbers as people read them."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def bytes_of(count: float) -> str:
    """A number of bytes: 512 B, 1.5 MiB."""
    size = float(count)
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def counted(count: int, what: str) -> str:
    """A number of things: 1 key, 2 keys."""
    return f"{count} {what}{'s' * (count != 1)}"
