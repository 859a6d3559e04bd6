"""Objects and their history: what etcd and the watch cache are to a real API server.

Promises: one revision counter for all kinds, moved by every change and by nothing else; a stored object is
never altered in place (every write puts a new one); the history holds every change since the last
compaction, so any later view can be rebuilt. Callers hold `changed`, which is notified on each change.
"""

import threading
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import msgspec

from unit.fakes.apiserver.kinds import Json, Kind
from unit.fakes.apiserver.refusals import expired

_FIRST_REVISION = 100


class Place(NamedTuple):
    """Where an object lies; the version of its kind does not matter."""

    group: str
    plural: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write: what was there and what is there now (None: nothing)."""

    revision: int
    place: Place
    before: Json | None
    after: Json | None


def copied(value: Json) -> Json:
    """A deep copy of plain JSON."""
    copy: Json = msgspec.json.decode(msgspec.json.encode(value))
    return copy


def place_of(kind: Kind, namespace: str, name: str) -> Place:
    """Where an object of `kind` lies."""
    return Place(kind.group, kind.plural, namespace, name)


class Store:
    """The newest objects and the changes that led to them."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.revision = _FIRST_REVISION
        self.oldest = _FIRST_REVISION
        self._objects: dict[Place, Json] = {}
        self._history: list[Change] = []

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """The object, to be read only."""
        return self._objects.get(place_of(kind, namespace, name))

    def everything(self) -> Iterator[tuple[Place, Json]]:
        """All objects with their places, as of now."""
        with self.changed:  # a collection of garbage lets other threads in, even while a list is made
            return iter(list(self._objects.items()))

    def put(self, kind: Kind, obj: Json) -> Json:
        """Store `obj` (which the store keeps) under the next revision."""
        place = place_of(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        self._record(place, obj)
        self._objects[place] = obj
        return obj

    def remove(self, place: Place) -> Json:
        """Take the object away; the result is its last state at the revision of the removal."""
        last = copied(self._objects[place])
        self._record(place, None)
        del self._objects[place]
        last["metadata"]["resourceVersion"] = str(self.revision)
        return last

    def _record(self, place: Place, after: Json | None) -> None:
        self.revision += 1
        if after is not None:
            after["metadata"]["resourceVersion"] = str(self.revision)
        before = self._objects.get(place)
        self._history.append(Change(revision=self.revision, place=place, before=before, after=after))
        self.changed.notify_all()

    def view(self, kind: Kind, namespace: str, revision: int) -> list[Json]:
        """The objects of `kind` as they were at `revision`, by namespace and name.

        Raises the 410 refusal for a revision older than the last compaction.
        """
        objects = {
            place: obj
            for place, obj in self._objects.items()
            if (place.group, place.plural) == (kind.group, kind.plural)
        }
        for change in reversed(self.after(revision)):
            if (change.place.group, change.place.plural) != (kind.group, kind.plural):
                continue
            if change.before is None:
                objects.pop(change.place, None)
            else:
                objects[change.place] = change.before
        return [objects[place] for place in sorted(objects) if namespace in ("", place.namespace)]

    def after(self, revision: int) -> list[Change]:
        """The changes later than `revision`, oldest first; raises the 410 refusal when some are gone."""
        if revision < self.oldest:
            raise expired(revision, self.oldest)
        return self._history[bisect_right(self._history, revision, key=attrgetter("revision")) :]

    def compact(self) -> None:
        """Forget the history: every position before this one has expired."""
        self.revision += 1  # so that "now" before the call is a position that has expired
        self.oldest = self.revision
        self._history.clear()
        self.changed.notify_all()
