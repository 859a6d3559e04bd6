"""Waiting for a condition, with a deadline and a description of what did not come."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

INTERVAL = 0.1
"""Seconds between two checks; short against anything that is waited for."""


class NotInTimeError(AssertionError):
    """The condition did not hold before the deadline."""


def wait_until(
    condition: Callable[[], T], deadline: float, describe: str | Callable[[], str], *, every: float = INTERVAL
) -> T:
    """The first true value of `condition`; NotInTimeError after `deadline` seconds.

    An AssertionError or OSError of the condition counts as "not yet" and is named at the end.
    `describe` may be a function, for the state at the end.
    """
    end = time.monotonic() + deadline
    while True:
        error: Exception | None = None
        try:
            value = condition()
            if value:
                return value
        except (AssertionError, OSError) as caught:
            error = caught
        if time.monotonic() > end:
            description = describe() if callable(describe) else describe
            why = f" ({error})" if error is not None else ""
            raise NotInTimeError(f"not within {deadline:g} s: {description}{why}") from error
        time.sleep(every)


def hold_for(seconds: float, claim: Callable[[], bool], describe: str, *, every: float = INTERVAL) -> None:
    """Assert that `claim` remains true for all of `seconds`: for "nothing happens"."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert claim(), f"did not hold for {seconds:g} s: {describe}"
        time.sleep(every)
