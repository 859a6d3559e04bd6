"""Reads of Secrets: where they fail, or hang, while all else works (no KMS), little waits for them."""

import math
import threading
from collections.abc import Callable
from typing import TypeVar

from etcd_operator.clock import Clock
from etcd_operator.errors import RetryableError, Unavailable

AGAIN_SECONDS = 5.0
"""After so long one more read finds out whether they succeed again."""

SLOW_SECONDS = 5.0
"""A read that takes longer is as bad as one that fails: a pass has a dozen of them."""

KEPT_SECONDS = 300.0
"""After so long a Secret is read again, whether it still exists, and what it has."""

Found = TypeVar("Found")


class Reads:
    """Those of all clusters. After one that fails, one at a time tries again; the others fail at once.

    So no more than one thread of the many that serve clusters waits for an API server that does not answer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._again = (
            0.0  # when the next one may be tried; infinite while one is, 0 if the last one succeeded
        )

    def read(self, get: Callable[[], Found]) -> Found:
        """What `get` returns. Raises its errors, and Unavailable if reads have just failed."""
        began, is_good = self._clock.monotonic(), False
        with self._lock:
            if began < self._again:
                raise Unavailable("Secrets could not be read in time a moment ago: trying again")
            if self._again:
                self._again = math.inf
        try:
            found = get()
            is_good = self._clock.monotonic() - began <= SLOW_SECONDS
        except RetryableError:
            raise
        except Exception:
            is_good = True  # an answer
            raise
        finally:
            with self._lock:
                self._again = 0.0 if is_good else self._clock.monotonic() + AGAIN_SECONDS
        return found
