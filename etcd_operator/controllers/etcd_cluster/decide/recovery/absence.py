"""For how long members have been missed, as far as this process has observed it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """For how long a quorum, and every voter that does not answer, have been missed without interruption.

    seconds: by a clock that never jumps. since: the same as a time for people (RFC 3339); empty while
    nothing is counted.
    """

    seconds: float = 0.0
    since: str = ""


NO_ABSENCE = Absence()
