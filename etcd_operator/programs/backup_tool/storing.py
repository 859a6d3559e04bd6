"""Keeps apart: a backup being stored, and a report of what is stored.

A recovery acts on such a report when members are lost, so no backup may follow it that has more. A turn
proves with a linearizable read that its member has every acknowledged write. Promises:
- nothing is reported from the moment that proof is accepted until the backup is stored;
- a proof that began before the last report is not accepted, so the turn asks etcd again, in vain without a
  quorum.

So a turn that waits for lost members, for many seconds, delays no recovery.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from etcd_operator.archive.source import Source


class Storing:
    """For use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports = 0
        self._is_under_way = False
        self._changes = 0

    @property
    def changes(self) -> int:
        """Another number whenever a backup may have been stored: what was listed before is outdated then."""
        return self._changes

    def may_report(self) -> bool:
        """Whether what is stored can be reported now. If so, no turn accepts a proof that it has begun."""
        with self._lock:
            if not self._is_under_way:
                self._reports += 1
            return not self._is_under_way

    @contextmanager
    def of(self, choose: Callable[[], Source]) -> Iterator[Source]:
        """The member to read a backup from. choose: ends with an error without a quorum; may be repeated."""
        chosen = None
        while chosen is None:
            chosen = self._accepted(choose)
        try:
            yield chosen
        finally:
            with self._lock:
                self._is_under_way = False
                self._changes += 1

    def _accepted(self, choose: Callable[[], Source]) -> Source | None:
        reports = self._reports
        chosen = choose()
        with self._lock:
            if reports != self._reports:
                return None
            self._is_under_way = True
            self._changes += 1
        return chosen
