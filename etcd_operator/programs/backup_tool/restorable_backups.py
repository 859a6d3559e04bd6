"""Which backup can be restored: the newest one of which every byte was read and checked.

A recovery asks this when members are lost, so it must not miss a backup that is being stored. Promises:
- what was checked before another backup was stored is not reported;
- nothing is reported from the moment that a turn has proven by a linearizable read that its member has every
  acknowledged write, until its backup is stored. A proof that began before the last report is not accepted:
  the turn asks etcd again, in vain without a quorum. So waiting for lost members delays no recovery;
- a request waits for no longer than `PATIENCE`: some hundred manifests are read in seconds, a large backup in
  minutes. That happens on a thread of its own, one at a time.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from etcd_operator.archive.errors import Damaged, NotABackup
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.source import Source
from etcd_operator.archive.verify import verify
from etcd_operator.clock import Clock
from etcd_operator.errors import OperatorError
from etcd_operator.pods.reports import BackupReport, RestorableBackups
from etcd_operator.programs.backup_tool.inventory import NOTHING, Inventory, ToolBackup
from etcd_operator.storage.protocol import Store

PATIENCE = 1.0
"""Seconds that a request waits for what is being read."""

VALID_SECONDS = 60.0
"""After so long everything is listed and read again."""


class Storing:
    """Keeps apart a backup being stored, and a report of what is stored; for use from any thread."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is stored, listed for a request with the ID `running` after so many changes."""

    running: str
    changes: int
    at: float  # when that was complete
    inventory: Inventory = NOTHING
    is_checked: bool = False  # whether everything is read: only then the rest is known
    whole: ToolBackup | None = None
    damaged: tuple[str, ...] = ()
    failure: OperatorError | None = None


class BackupChecker:
    """Checks what is stored when it is asked; for use from any thread."""

    def __init__(
        self,
        *,
        load: Callable[[str], Inventory],
        open_store: Callable[[], Store],
        keys: Callable[[], KeyRing],
        storing: Storing,
        clock: Clock,
    ) -> None:
        self._load = load
        self._open_store = open_store
        self._keys = keys
        self._storing = storing
        self._clock = clock
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._found: _Found | None = None

    def report(self, running: str = "") -> RestorableBackups:
        """What can be restored. Raises the errors of the store, the last check's among them.

        running: the ID of the etcd cluster whose backups come first; empty for the one that the tool knows.
        """
        if not self._storing.may_report():
            return RestorableBackups()
        found = self._valid(running)
        if found is None or not found.is_checked:
            self._start(running).join(PATIENCE)
            found = self._valid(running)
        if found is None:
            return RestorableBackups()
        if found.failure is not None:
            self._found = None
            raise found.failure
        return RestorableBackups(
            is_listed=True,
            is_checked=found.is_checked,
            candidate=self._described(found.inventory.newest),
            newest=self._described(found.whole),
            damaged=found.damaged,
        )

    def stop(self) -> None:
        """Wait for the thread; the store ends it if nothing moves."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _valid(self, running: str) -> _Found | None:
        found = self._found
        if found is None or (found.running, found.changes) != (running, self._storing.changes):
            return None
        return found if self._clock.monotonic() - found.at < VALID_SECONDS else None

    def _start(self, running: str) -> threading.Thread:
        """The thread at work; it may be one for another request, or that lists what was stored before."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._check, args=(running,), name="backup-checker", daemon=True
                )
                self._thread.start()
            return self._thread

    def _check(self, running: str) -> None:
        """List, then read until a backup is whole."""
        changes, damaged = self._storing.changes, list[str]()
        found = _Found(running=running, changes=changes, at=self._clock.monotonic())
        try:
            listed = replace(found, inventory=self._load(running), at=self._clock.monotonic())
            self._found = listed
            whole = self._first_whole(listed.inventory, damaged)
        except OperatorError as error:
            self._found = replace(found, at=self._clock.monotonic(), is_checked=True, failure=error)
            return
        self._found = replace(
            listed, at=self._clock.monotonic(), is_checked=True, whole=whole, damaged=tuple(damaged)
        )

    def _first_whole(self, found: Inventory, damaged: list[str]) -> ToolBackup | None:
        store, keys = self._open_store(), self._keys()
        for backup in found.backups:
            if backup.refusal:
                return backup  # nothing that is authentic is whole: a person has to know what there is
            try:
                verify(store, backup.path, keys)
            except (Damaged, NotABackup):
                damaged.append(str(backup.name))
            else:
                return backup
        return None

    def _described(self, backup: ToolBackup | None) -> BackupReport | None:
        if backup is None:
            return None
        return backup.report(age=max(0.0, (self._clock.now() - backup.manifest.time).total_seconds()))
