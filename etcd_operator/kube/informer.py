"""A cache of one kind of object, kept up to date by a thread that reports each change.

Promises
- Handlers `(old, new)` are called one after another, in the informer's own thread, after the store has the
  change. They should put a key on a queue and return. So are those for objects that were never read.
- An exception in a handler is logged and affects only that one call.
- `caught_up` answers "has the cache seen my own write?" without waiting; deletions, bookmarks and lists
  count, since they also show which version the cache has reached.
- The thread is named, is no daemon, and ends soon after `stop`. If its loop fails for a reason that is not an
  API error, `on_crash` is called: a cache that silently goes stale is worse than a process that ends.
"""

import threading
from collections.abc import Callable, Mapping
from random import random
from typing import Generic, TypeVar

import structlog

from etcd_operator.api.meta import HasMetadata
from etcd_operator.clock import Clock
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.reflector import Reflector
from etcd_operator.kube.resources import Selection
from etcd_operator.kube.store import Index, OnChange, OnUnreadable, Store

T = TypeVar("T", bound=HasMetadata)

OnCrash = Callable[[str, Exception], None]
"""`(thread name, the exception that ended it)`."""

log = structlog.get_logger()


class Informer(Generic[T]):
    """One thread, one store. Add handlers, then start once and stop once."""

    def __init__(
        self,
        client: Client,
        selection: Selection,
        decode: type[T],
        *,
        on_crash: OnCrash,
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> None:
        self.resource = selection.resource
        self.name = f"informer-{self.resource}"
        self._handlers: list[OnChange[T]] = []
        self._unreadable_handlers: list[OnUnreadable] = []
        self._synced = threading.Event()
        self._on_crash = on_crash
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=False)
        self.store: Store[T] = Store(
            indexes=indexes, on_change=self._report, on_unreadable=self._report_unreadable
        )
        self.reflector = Reflector(
            client, selection, decode, self.store, clock=Clock(), random=random, on_synced=self._synced.set
        )

    @property
    def has_synced(self) -> bool:
        """Whether the first list is stored and was reported to every handler; it remains true."""
        return self._synced.is_set()

    @property
    def is_listing(self) -> bool:
        """Whether it was started, and the first list is not stored yet."""
        return self._thread.ident is not None and not self.has_synced

    @property
    def has_ended(self) -> bool:
        """Whether the thread was started and has ended, for whatever reason."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def add_handler(self, handler: OnChange[T]) -> None:
        """Call `handler` for every change. Only before `start`: later it would miss the first list."""
        self._assert_not_started()
        self._handlers.append(handler)

    def add_unreadable_handler(self, handler: OnUnreadable) -> None:
        """Call `handler` with the key of an object that was never read, and exists now or not any more."""
        self._assert_not_started()
        self._unreadable_handlers.append(handler)

    def start(self) -> None:
        """Begin to list and watch in the informer's thread."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> bool:
        """End the thread; whether it ended within `timeout` seconds."""
        self.reflector.stop()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def wait_synced(self, timeout: float) -> bool:
        """Wait for `has_synced`; whether it turned true within `timeout` seconds."""
        return self._synced.wait(timeout)

    def has_listed_since(self, begun: int) -> bool:
        """Whether the store has a list that was begun after the first `begun` ones."""
        return self.reflector.lists_stored > begun

    def caught_up(self, key: Key, resource_version: int) -> bool:
        """Whether the store shows the write of `resource_version` to `key`, or a later state."""
        if self.store.reached(resource_version):
            return True
        value = self.store.get(key)
        known = value.metadata.resource_version if value is not None else ""
        return known.isdecimal() and int(known) >= resource_version

    def _assert_not_started(self) -> None:
        if self._thread.ident is not None:
            raise RuntimeError(f"{self.name} has started: a new handler would miss the first list")

    def _report(self, old: T | None, new: T | None) -> None:
        for handler in self._handlers:
            self._guarded(handler, old, new)

    def _report_unreadable(self, key: Key) -> None:
        for handler in self._unreadable_handlers:
            self._guarded(handler, key)

    def _guarded(self, handler: Callable[..., None], *args: object) -> None:
        try:
            handler(*args)
        except Exception:
            log.exception("handler_crashed", informer=self.name)

    def _run(self) -> None:
        try:
            self.reflector.run()
        except Exception as error:
            log.exception("informer_crashed", informer=self.name)
            self._on_crash(self.name, error)
