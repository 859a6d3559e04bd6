"""Limits on times that are measured on a machine which does other things, too.

What the product itself costs is in every measurement. A machine that stalls adds to one or another of them.
So a limit is exceeded only if each of a few measurements exceeds it.
"""

from collections.abc import Callable

ATTEMPTS = 3


def assert_at_most(
    limit: float, measure: Callable[[], float], describe: str | Callable[[], str], *, attempts: int = ATTEMPTS
) -> float:
    """The first measurement that is at most `limit`; AssertionError if none of `attempts` is.

    measure: does again what is measured, each time. `describe` may be a function, for the figures at the end.
    """
    found: list[float] = []
    for _ in range(attempts):
        found.append(measure())
        if found[-1] <= limit:
            return found[-1]
        print(f"more than {limit:g}: {found[-1]:.2f}; {_text(describe)}")
    figures = ", ".join(f"{each:.2f}" for each in found)
    raise AssertionError(f"{figures}: more than {limit:g} each time: {_text(describe)}")


def _text(describe: str | Callable[[], str]) -> str:
    return describe() if callable(describe) else describe
