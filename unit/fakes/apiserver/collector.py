"""The garbage collector: objects whose owners are gone, and owners that wait for their dependents.

Promises, when it runs: a dependent goes when all its owners (by UID) are gone; an owner deleted with `Orphan`
goes first and its dependents lose the reference; one deleted with `Foreground` goes after its dependents;
a namespace goes when it is empty. It runs after every write.
"""

from collections.abc import Callable

from unit.fakes.apiserver.kinds import Json, Kind, Kinds
from unit.fakes.apiserver.store import Place, Store, copied


class Collector:
    """Brings the objects of one store to rest, on the thread of the write that needs it."""

    def __init__(
        self,
        store: Store,
        served: Kinds,
        delete: Callable[..., Json],
        settle: Callable[[Kind, Json, Json], Json],
    ) -> None:
        self._store = store
        self._kinds = served
        self._delete = delete
        self._settle = settle
        self._running = False

    def run(self) -> None:
        """Collect until nothing changes; does nothing while already at it."""
        if self._running:
            return
        self._running = True
        try:
            while self._pass():
                pass
        finally:
            self._running = False

    def _pass(self) -> bool:
        before = self._store.revision
        objects = dict(self._store.everything())
        alive = {obj["metadata"]["uid"] for obj in objects.values()}
        for place, obj in objects.items():
            meta = obj["metadata"]
            if not meta.get("deletionTimestamp"):
                self._follow_owners(place, obj, alive)
            elif place.plural == "namespaces":
                self._empty_namespace(place, objects)
            elif held := {"orphan", "foregroundDeletion"} & set(meta.get("finalizers") or ()):
                self._release(place, obj, held, objects)
        return self._store.revision != before

    def _follow_owners(self, place: Place, obj: Json, alive: set[str]) -> None:
        owners = obj["metadata"].get("ownerReferences") or []
        left = [owner for owner in owners if owner["uid"] in alive]
        if owners and not left:
            self._remove(place, obj)
        elif len(left) < len(owners):
            self._change(place, obj, {"ownerReferences": left})

    def _release(self, place: Place, obj: Json, held: set[str], objects: dict[Place, Json]) -> None:
        """Deal with the dependents of a deleted owner, then let it go."""
        meta = obj["metadata"]
        dependents = _dependents(meta["uid"], objects)
        for below, dependent in dependents:
            owners = dependent["metadata"]["ownerReferences"]
            if "orphan" in held:
                self._change(
                    below, dependent, {"ownerReferences": [o for o in owners if o["uid"] != meta["uid"]]}
                )
            elif not dependent["metadata"].get("deletionTimestamp"):
                # in the foreground, too: the first owner waits for all that is below it
                has_own = bool(_dependents(dependent["metadata"]["uid"], objects))
                self._remove(below, dependent, propagation="Foreground" if has_own else "Background")
        if "orphan" in held or not dependents:
            self._change(place, obj, {"finalizers": [f for f in meta["finalizers"] if f not in held]})

    def _empty_namespace(self, place: Place, objects: dict[Place, Json]) -> None:
        inside = [(below, obj) for below, obj in objects.items() if below.namespace == place.name]
        for below, obj in inside:
            if not obj["metadata"].get("deletionTimestamp"):
                self._remove(below, obj)
        if not inside:
            self._store.remove(place)

    def _remove(self, place: Place, obj: Json, propagation: str = "Background") -> None:
        kind, uid = self._kind(place), obj["metadata"]["uid"]
        if self._store.find(kind, place.namespace, place.name) is not None:
            self._delete(kind, place.namespace, place.name, uid=uid, propagation=propagation)

    def _change(self, place: Place, obj: Json, fields: Json) -> None:
        new = copied(obj)
        new["metadata"].update(fields)
        self._settle(self._kind(place), obj, new)

    def _kind(self, place: Place) -> Kind:
        return next(k for k in self._kinds.all() if (k.group, k.plural) == (place.group, place.plural))


def _dependents(uid: str, objects: dict[Place, Json]) -> list[tuple[Place, Json]]:
    return [
        (place, obj)
        for place, obj in objects.items()
        if any(owner["uid"] == uid for owner in obj["metadata"].get("ownerReferences") or [])
    ]
