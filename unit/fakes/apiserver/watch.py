"""One open watch: which changes a client gets, as which events, and how a test can delay or lose them.

Promises: events in order of their revisions, each once, from the position asked for; an object that starts
or stops matching the selector is ADDED or DELETED; a position older than the last compaction ends in one
ERROR event with code 410. `Stream.next` gives what is due and never blocks longer than asked.
"""

import threading
from collections.abc import Callable
from typing import Any

from unit.fakes.apiserver.kinds import Json, Kind
from unit.fakes.apiserver.refusals import Refusal
from unit.fakes.apiserver.selectors import check_selector, matches_labels
from unit.fakes.apiserver.store import Change, Store


class Stream:
    """The server's end of a watch. Methods may be called from any thread."""

    def __init__(self, store: Store, kind: Kind, namespace: str, query: dict[str, str]) -> None:
        self.kind, self.namespace = kind, namespace
        self._labels = query.get("labelSelector", "")
        check_selector(self._labels)
        self._store = store
        self._closed = threading.Event()
        self._stalled = False
        self._coalescing = False
        self._due: list[Json] = []
        asked = query.get("resourceVersion", "")
        self.position = int(asked or 0)
        if self.position == 0:  # "any version": begin with what is there
            self.position = store.revision
            present = store.view(kind, namespace, store.revision)
            self._due = [_event("ADDED", obj) for obj in present if self._matches(obj)]

    @property
    def is_open(self) -> bool:
        """Whether the stream still sends anything."""
        return not self._closed.is_set()

    def drop(self) -> None:
        """End the stream: the client sees the connection end in good order."""
        with self._store.changed:
            self._closed.set()
            self._store.changed.notify_all()

    def stall(self) -> None:
        """Send nothing until `resume`, with the connection left open."""
        with self._store.changed:
            self._stalled = True

    def resume(self, *, coalesce: bool = False) -> None:
        """Send what was held back; with `coalesce` one event per object, a re-creation as an update."""
        with self._store.changed:
            self._stalled, self._coalescing = False, coalesce
            self._store.changed.notify_all()

    def skip(self) -> None:
        """Lose every event up to now, those held back included."""
        with self._store.changed:
            self._due, self.position = [], self._store.revision

    def next(self, seconds: float, newest: Callable[[], int | None]) -> list[Json]:
        """The events that are due, waiting up to `seconds` for one; none is later than `newest` then."""
        with self._store.changed:
            if not self._ready(newest()):
                self._store.changed.wait(seconds)
            if self._stalled or not self.is_open:
                return []
            limit = newest()
            self._catch_up(self._store.revision if limit is None else limit)
            due, self._due = self._due, []
            return due

    def _ready(self, newest: int | None) -> bool:
        limit = self._store.revision if newest is None else newest
        return not self.is_open or (not self._stalled and (bool(self._due) or self.position < limit))

    def _catch_up(self, limit: int) -> None:
        try:
            changes = self._store.after(self.position)
        except Refusal as refusal:
            self._due.append(_event("ERROR", refusal.body()))
            self._closed.set()
            return
        mine = [change for change in changes if self._concerns(change) and change.revision <= limit]
        if self._coalescing:
            mine, self._coalescing = _coalesced(mine), False
        self._due.extend(event for change in mine if (event := self._event_for(change)) is not None)
        self.position = max(self.position, limit)

    def _concerns(self, change: Change) -> bool:
        place = change.place
        same_kind = (place.group, place.plural) == (self.kind.group, self.kind.plural)
        return same_kind and self.namespace in ("", place.namespace)

    def _event_for(self, change: Change) -> Json | None:
        matched = change.before is not None and self._matches(change.before)
        matches = change.after is not None and self._matches(change.after)
        if not matched and not matches:
            return None
        if matches:
            return _event("MODIFIED" if matched else "ADDED", change.after)
        last = change.before if change.after is None else change.after
        return _event("DELETED", _at(last, change.revision))

    def _matches(self, obj: Json) -> bool:
        return matches_labels(self._labels, obj)


def _event(kind: str, obj: Any) -> Json:
    return {"type": kind, "object": obj}


def _at(obj: Any, revision: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}


def _coalesced(changes: list[Change]) -> list[Change]:
    """One change per object: from what was there first to what is there last."""
    first: dict[object, Change] = {}
    last: dict[object, Change] = {}
    for change in changes:
        first.setdefault(change.place, change)
        last[change.place] = change
    return [
        Change(revision=change.revision, place=change.place, before=first[place].before, after=change.after)
        for place, change in last.items()
    ]
