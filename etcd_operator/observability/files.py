"""How many files this process may open, and how many it has open.

Each etcd member costs a connection, and each connection a file descriptor. The usual soft limit of
1024 ends at about 300 clusters of three, while the hard one is usually far higher.
"""

import errno
import math
import resource
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import structlog

NEAR = 0.8
"""The part of the limit from which on a warning is logged."""

CLEAR = 0.7
"""The part below which the warning is over and may be logged again."""

_OPEN = next((path for path in (Path("/proc/self/fd"), Path("/dev/fd")) if path.exists()), None)

_NONE_LEFT = (errno.EMFILE, errno.ENFILE)

log = structlog.get_logger()


class Limits(NamedTuple):
    """The soft limit is enforced and can be raised up to the hard one. Infinite where there is none."""

    soft: float
    hard: float


def limits() -> Limits:
    """The current limits of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Limits(_number(soft), _number(hard))


def raise_limit() -> Limits:
    """Raise the soft limit to the hard one if the system allows; the limits after that."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        log.warning("open_files_limit_not_raised", error=str(error), **limits()._asdict())
    return limits()


def open_files() -> int:
    """How many descriptors this process has open; 0 where the system does not report it.

    Counting needs one itself: if none is left, the limit is returned.
    """
    try:
        return sum(1 for _ in _OPEN.iterdir()) if _OPEN is not None else 0
    except OSError as error:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0] if error.errno in _NONE_LEFT else 0


class LimitCheck:
    """Logs one warning when the limit comes near, and one line when that has passed."""

    def __init__(
        self, *, count: Callable[[], int] = open_files, limits: Callable[[], Limits] = limits
    ) -> None:
        self._count = count
        self._limits = limits
        self._is_near = False

    def check(self) -> None:
        """Compare the open files with their limit; call it periodically."""
        soft, hard = self._limits()
        count = self._count()
        if count >= NEAR * soft and not self._is_near:
            log.warning("open_files_near_limit", open=count, soft=soft, hard=hard)
            self._is_near = True
        elif count < CLEAR * soft and self._is_near:
            log.info("open_files_below_limit", open=count, soft=soft, hard=hard)
            self._is_near = False


def _number(limit: int) -> float:
    return math.inf if limit == resource.RLIM_INFINITY else limit
