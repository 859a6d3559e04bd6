"""Repeating one request of a transfer, within one time limit that only progress extends.

Nothing else repeats: the retries of the SDKs are switched off. What cannot succeed (no right, no bucket, a
name that is taken) is not repeated.
"""

import logging
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import tenacity

from etcd_operator.storage.errors import Transient

Result = TypeVar("Result")

# An SDK waits this part of the time limit for a silent connection, so that a request that hangs is repeated
# before the limit is reached.
_SILENCE = 1 / 3
_LONGEST_CONNECT = 10.0
_FIRST_DELAY = 0.2
_LONGEST_DELAY = 10.0


class Attempts:
    """Repeats requests while they fail with `Transient`, one after another.

    Each request has `stall` seconds from its start or from the last call of `moved`. The delay between two
    attempts is random, below a bound that doubles.
    """

    def __init__(
        self,
        stall: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.stall = stall
        self._clock = clock
        self._sleep = sleep
        self._until = 0.0

    @property
    def connect_timeout(self) -> float:
        """Seconds that one attempt to connect may take."""
        return min(self.stall * _SILENCE, _LONGEST_CONNECT)

    @property
    def read_timeout(self) -> float:
        """Seconds that one connection may be silent."""
        return self.stall * _SILENCE

    def moved(self) -> None:
        """Progress was made: the time limit starts anew."""
        self._until = self._clock() + self.stall

    def run(self, request: Callable[[], Result]) -> Result:
        """The result of the request; raises its `StoreError`, or `Transient.final` after the time limit."""
        self.moved()
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Transient),
            wait=tenacity.wait_random_exponential(_FIRST_DELAY, min(_LONGEST_DELAY, self.stall / 6)),
            stop=self._is_over,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(request)
        except Transient as failure:
            raise failure.final from None  # the exceptions of SDKs may contain signed URLs

    def _is_over(self, state: tenacity.RetryCallState) -> bool:
        return self._clock() + state.upcoming_sleep >= self._until


def reason(error: BaseException) -> str:
    """The innermost cause of an exception of an SDK, in a few words without a URL."""
    known = [text for text in map(_text, _chain(error)) if text]
    return known[-1] if known else type(error).__name__


def quiet(*loggers: str) -> None:
    """Let these loggers of SDKs report nothing but errors.

    Their debug lines have session tokens and signed URLs, their warnings repeat what our errors report.
    """
    for name in loggers:
        logging.getLogger(name).setLevel(logging.ERROR)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    rest: list[object] = [error]
    while rest:
        each = rest.pop()
        if isinstance(each, BaseException) and each not in seen:
            seen.append(each)
            yield each
            inner = [getattr(each, name, None) for name in ("reason", "inner_exception")]
            rest += [each.__context__, each.__cause__, *inner, *each.args]


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return error.strerror or "" if isinstance(error, OSError) and isinstance(error.strerror, str) else ""
