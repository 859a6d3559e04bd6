"""Quantities of storage, as Kubernetes writes those that the operator requested."""

import re

MIB = 1 << 20

_UNITS = {"": 1, **{f"{letter}i": 1 << 10 * power for power, letter in enumerate("KMGTPE", start=1)}}
_UNITS |= {letter: 10 ** (3 * power) for power, letter in enumerate("kMGTPE", start=1)}
_QUANTITY = re.compile(r"([0-9]+)([a-zA-Z]{0,2})")


def bytes_of(quantity: str) -> int | None:
    """The bytes of a whole quantity, like 512Mi or 1Gi; None for another form, like 1.5Gi or 1e9."""
    found = _QUANTITY.fullmatch(quantity)
    if found is None or found[2] not in _UNITS:
        return None
    return int(found[1]) * _UNITS[found[2]]
