"""Which backup can be restored: the newest one of which every byte was read and checked.

A recovery asks this when members are lost, so it must not miss a backup that is being stored. Promises:
- nothing is reported while a backup is being stored, nor what was checked before another one was stored;
- reading happens on one thread at a time, and never on that of a request for longer than `PATIENCE`.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from etcd_operator.backup.errors import Damaged, NotABackup
from etcd_operator.backup.keys import KeyRing
from etcd_operator.backup.verify import verify
from etcd_operator.backup_tool.inventory import Inventory, StoredBackup
from etcd_operator.backup_tool.storing import Storing
from etcd_operator.clock import Clock
from etcd_operator.core.backup_tool.report import Stock, VerifiedBackup
from etcd_operator.errors import OperatorError
from etcd_operator.storage.protocol import Store
from etcd_operator.timestamps import timestamp

PATIENCE = 1.0
"""Seconds that a request waits for what is being read."""

VALID_SECONDS = 60.0
"""After so long everything is read again."""

Listed = tuple[tuple[str, str], ...]
"""Paths and hashes of what is stored, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    listed: Listed
    at: float
    whole: StoredBackup | None = None
    damaged: tuple[str, ...] = ()
    failure: OperatorError | None = None


class StockKeeper:
    """Checks what is stored when it is asked; for use from any thread."""

    def __init__(
        self,
        *,
        load: Callable[[str], Inventory],
        open_store: Callable[[], Store],
        storing: Storing,
        clock: Clock,
    ) -> None:
        self._load = load
        self._open_store = open_store
        self._storing = storing
        self._clock = clock
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._result: _Result | None = None

    def report(self, running: str = "") -> Stock:
        """What can be restored. Raises the errors of the store, the last check's among them.

        running: the ID of the etcd cluster whose backups come first; empty for the one that the tool knows.
        """
        if not self._storing.may_report():
            return Stock()
        found = self._load(running)
        listed = tuple((each.path, each.manifest.stored_sha256) for each in found.backups)
        result = self._valid(listed)
        if result is None:
            self._start(found, listed).join(PATIENCE)
            result = self._valid(listed)
        if result is None:
            return Stock(is_listed=True, candidate=self._described(found.newest))
        if result.failure is not None:
            self._result = None
            raise result.failure
        return Stock(
            is_listed=True,
            is_checked=True,
            candidate=self._described(found.newest),
            newest=self._described(result.whole),
            damaged=result.damaged,
        )

    def stop(self) -> None:
        """Wait for the thread; the store ends it if nothing moves."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _valid(self, listed: Listed) -> _Result | None:
        result = self._result
        if result is None or result.listed != listed:
            return None
        return result if self._clock.monotonic() - result.at < VALID_SECONDS else None

    def _start(self, found: Inventory, listed: Listed) -> threading.Thread:
        """The thread at work; it may be one that checks what was stored before."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._check, args=(found, listed), name="stock", daemon=True
                )
                self._thread.start()
            return self._thread

    def _check(self, found: Inventory, listed: Listed) -> None:
        damaged: list[str] = []
        whole, failure = None, None
        try:
            whole = self._first_whole(found, damaged)
        except OperatorError as error:
            failure = error
        self._result = _Result(
            listed=listed, at=self._clock.monotonic(), whole=whole, damaged=tuple(damaged), failure=failure
        )

    def _first_whole(self, found: Inventory, damaged: list[str]) -> StoredBackup | None:
        store = self._open_store()
        for backup in found.backups:
            try:
                verify(store, backup.path, KeyRing())
            except (Damaged, NotABackup):
                damaged.append(str(backup.name))
            else:
                return backup
        return None

    def _described(self, backup: StoredBackup | None) -> VerifiedBackup | None:
        if backup is None:
            return None
        manifest = backup.manifest
        return VerifiedBackup(
            name=str(backup.name),
            time=timestamp(manifest.time),
            age=max(0.0, (self._clock.now() - manifest.time).total_seconds()),
            revision=backup.name.revision,
            etcd_version=manifest.etcd_version,
            cluster_id=manifest.cluster_id,
            sha256=manifest.stored_sha256,
        )
