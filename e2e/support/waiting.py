"""Waiting for a condition, with a deadline and a description of what did not come."""

import time
from collections.abc import Callable
from typing import TypeVar

from etcd_operator.errors import OperatorError, RetryableError
from localcluster.commands import CommandError

T = TypeVar("T")

INTERVAL = 0.2
"""Seconds between two checks; short against anything that is waited for. Checks cost CPU time."""

LONG = 240.0
"""Seconds for a state that is certain to come.

Only a failure takes so long: machines that are busy with other tests, or stall, reach it late. What users are
promised within a time has a limit of its own, see `measuring`.
"""

NOT_YET = (AssertionError, OSError, OperatorError, CommandError)
"""What a condition may raise while it does not hold yet: an API server or a member may be slow to answer."""


class NotInTimeError(AssertionError):
    """The condition did not hold before the deadline."""


def wait_until(
    condition: Callable[[], T | None],
    describe: str | Callable[[], str],
    *,
    within: float = LONG,
    every: float = INTERVAL,
) -> T:
    """The first true value of `condition`; NotInTimeError after `within` seconds.

    One of `NOT_YET` that the condition raises counts as "not yet" and is named at the end.
    `describe` may be a function, for the state at the end.
    """
    end = time.monotonic() + within
    while True:
        error: Exception | None = None
        try:
            value = condition()
            if value:
                return value
        except NOT_YET as caught:
            error = caught
        if time.monotonic() > end:
            why = f" ({error})" if error is not None else ""
            raise NotInTimeError(f"not within {within:g} s: {_described(describe)}{why}") from error
        time.sleep(every)


def answered(read: Callable[[], T], describe: str | Callable[[], str], *, within: float = LONG) -> T:
    """The first value of `read`, true or not, that it returns without one of `NOT_YET`."""
    found: list[T] = []

    def is_read() -> bool:
        found.append(read())
        return True

    wait_until(is_read, describe, within=within)
    return found[0]


def hold_for(seconds: float, claim: Callable[[], bool], describe: str, *, every: float = INTERVAL) -> None:
    """Assert that `claim` remains true for all of `seconds`: for "nothing happens".

    A RetryableError of the claim shows nothing, but at least one check must have succeeded.
    """
    end = time.monotonic() + seconds
    checks = 0
    while time.monotonic() < end or not checks:
        try:
            assert claim(), f"did not hold for {seconds:g} s: {describe}"
            checks += 1
        except RetryableError:
            assert time.monotonic() < end + LONG, f"could not be checked in {LONG:g} s: {describe}"
        time.sleep(every)


def _described(describe: str | Callable[[], str]) -> str:
    """The description; it may read what cannot be read, either."""
    try:
        return describe() if callable(describe) else describe
    except NOT_YET as error:
        return f"(its state is unknown: {error})"
