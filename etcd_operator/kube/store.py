"""The cached objects of one kind: a thread-safe map with indexes.

Promises
- A change is stored before it is reported (`on_change`), so a handler that reads the store sees it or
  something newer. It is reported outside the lock, in order: one thread writes, all may read.
- An older version never overwrites or removes a newer one.
- The same name with another uid is another object: reported as a deletion, then an addition.
- `replace` reports the differences, including deletions. It applies even where its versions are lower than
  the known ones: a list is a consistent read, so this can only be an etcd that was restored from a backup.
- `version` is the version that the store has reached. Within one resource the API server sends changes in the
  order of their versions, so a write of version v is visible once `version >= v`, whatever the object; this
  includes deletions.
- An object that exists and cannot be read is never an absent one: it is in `unreadable` until it is read
  again or gone. Its last known value remains, and may be outdated; a change to that is reported as
  `(old, old)`, and so is the end of it where the value is the same. For one without a known value
  `on_unreadable` is called, when it turns so and when it is gone.
- Values are returned without a copy: they must be immutable (frozen structs).

Versions are compared as integers if both are (documented as comparable since Kubernetes 1.35, true of every
release before it); a version that is no integer counts as newer.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from etcd_operator.api.meta import HasMetadata
from etcd_operator.keys import Key
from etcd_operator.kube.decode import Unreadable

T = TypeVar("T", bound=HasMetadata)

Index = Callable[[T], Iterable[str]]
"""The values under which an object is indexed; none: not in this index."""

OnChange = Callable[[T | None, T | None], None]
"""`(old, new)`: None for an object that did not exist before or no longer exists."""

OnUnreadable = Callable[[Key], None]
"""An object that was never read exists now, or not any more."""


def is_older(version: str, than: str) -> bool:
    """Whether a resourceVersion is known to precede another one."""
    if version.isdecimal() and than.isdecimal():
        return int(version) < int(than)
    return False


class Store(Generic[T]):
    """The objects by key, and by the values of each index. One writer, any number of readers."""

    def __init__(
        self,
        *,
        indexes: Mapping[str, Index[T]] | None = None,
        on_change: OnChange[T] = lambda *_: None,
        on_unreadable: OnUnreadable = lambda _: None,
    ) -> None:
        self._indexes = dict(indexes or {})
        self._on_change = on_change
        self._on_unreadable = on_unreadable
        self._lock = threading.Lock()
        self._values: dict[Key, T] = {}
        self._found: dict[str, dict[str, set[Key]]] = {name: {} for name in self._indexes}
        self._unreadable: dict[Key, Unreadable] = {}
        self._version = ""

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The objects that exist and cannot be read, ordered by key."""
        with self._lock:
            return tuple(self._unreadable[key] for key in sorted(self._unreadable))

    def unreadable_at(self, key: Key) -> Unreadable | None:
        """What is known of the object if it exists and cannot be read."""
        with self._lock:
            return self._unreadable.get(key)

    @property
    def version(self) -> str:
        """The newest version seen; empty before the first list."""
        with self._lock:
            return self._version

    def get(self, key: Key) -> T | None:
        """The object, if there is one."""
        with self._lock:
            return self._values.get(key)

    def values(self) -> tuple[T, ...]:
        """All objects, ordered by key."""
        with self._lock:
            return tuple(self._values[key] for key in sorted(self._values))

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """The objects that an index files under `value`, ordered by key."""
        with self._lock:
            return tuple(self._values[key] for key in sorted(self._found[index].get(value, ())))

    def reached(self, version: int) -> bool:
        """Whether everything up to `version` has been seen."""
        known = self.version
        return known.isdecimal() and int(known) >= version

    def replace(self, items: Iterable[T], version: str, *, unreadable: Iterable[Unreadable] = ()) -> None:
        """Become exactly `items`, seen at `version`; known values of those that cannot be read are kept."""
        fresh = {item.metadata.key: item for item in items}
        odd = {each.key: each for each in unreadable}
        with self._lock:
            before, self._unreadable = self._unreadable, odd
            turned = [self._values[key] for key in sorted((odd.keys() - before) & self._values.keys())]
            never_read = sorted((odd.keys() ^ before.keys()) - self._values.keys() - fresh.keys())
            deleted = self._values.keys() - fresh.keys() - odd.keys()
            changes: list[tuple[T | None, T | None]] = [(self._drop(key), None) for key in sorted(deleted)]
            for key, item in fresh.items():
                changed = self._set(key, item)
                changes += changed or ([(item, item)] if key in before else [])
            self._version = version
        self._report([*changes, *((value, value) for value in turned)])
        for key in never_read:
            self._on_unreadable(key)

    def put(self, value: T) -> None:
        """Store an added or changed object, unless a newer one is known."""
        key, version = value.metadata.key, value.metadata.resource_version
        with self._lock:
            old = self._values.get(key)
            stale = old is not None and is_older(version, old.metadata.resource_version)
            changes = [] if stale else self._set(key, value)
            self._unreadable.pop(key, None)
            self._advance(version)
        self._report(changes)

    def turned_unreadable(self, found: Unreadable, version: str) -> None:
        """An object was added or changed at `version`, and cannot be read now."""
        with self._lock:
            self._unreadable[found.key] = found
            old = self._values.get(found.key)
            self._advance(version)
        if old is not None:
            self._on_change(old, old)
        else:
            self._on_unreadable(found.key)

    def remove(self, key: Key, version: str) -> None:
        """Forget an object that was deleted at `version`, unless a newer one is known."""
        with self._lock:
            was_unreadable = self._unreadable.pop(key, None) is not None
            old = self._values.get(key)
            never_read = old is None and was_unreadable
            if old is not None and not is_older(version, old.metadata.resource_version):
                self._drop(key)
            else:
                old = None
            self._advance(version)
        if old is not None:
            self._on_change(old, None)
        elif never_read:
            self._on_unreadable(key)

    def advance(self, version: str) -> None:
        """Record that nothing else has happened up to `version` (a bookmark)."""
        with self._lock:
            self._advance(version)

    def _advance(self, version: str) -> None:
        if not is_older(version, self._version):
            self._version = version

    def _set(self, key: Key, value: T) -> list[tuple[T | None, T | None]]:
        """Store; the changes to report: none if the value is already known."""
        old = self._values.get(key)
        if old is not None:
            if _identity(old) == _identity(value):
                return []
            self._drop(key)
        self._values[key] = value
        for name, index in self._indexes.items():
            for found in index(value):
                self._found[name].setdefault(found, set()).add(key)
        if old is not None and old.metadata.uid != value.metadata.uid:
            return [(old, None), (None, value)]
        return [(old, value)]

    def _drop(self, key: Key) -> T:
        value = self._values.pop(key)
        for name, index in self._indexes.items():
            for found in index(value):
                keys = self._found[name][found]
                keys.discard(key)
                if not keys:
                    del self._found[name][found]
        return value

    def _report(self, changes: Iterable[tuple[T | None, T | None]]) -> None:
        for old, new in changes:
            self._on_change(old, new)


def _identity(value: HasMetadata) -> tuple[str, str]:
    return value.metadata.uid, value.metadata.resource_version
