"""The verbs of the API server, without HTTP: what happens to objects when someone writes.

Promises: optimistic concurrency on resourceVersion and uid; a write that changes nothing moves nothing;
an object with finalizers (or a pod with grace left) outlives its deletion until they are gone; every
refusal is the one that a real server gives. Tests and the world model use it directly, clients over HTTP;
both see the same objects. Each verb is atomic.
"""

import random
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

from etcd_operator.clock import Clock
from unit.fakes.apiserver import kinds, patches, rules
from unit.fakes.apiserver.collector import Collector
from unit.fakes.apiserver.kinds import Json, Kind, Kinds, custom_kind
from unit.fakes.apiserver.refusals import Refusal, already_exists, bad_request, conflict, invalid, not_found
from unit.fakes.apiserver.selectors import matches_labels
from unit.fakes.apiserver.store import Store, copied, place_of

PatchFormat = Literal["json", "merge", "strategic", "apply"]
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


Mutate = Callable[[Kind, Json], None]
"""A mutating admission policy: changes what is about to be stored, in place."""


def change_nothing(_kind: Kind, _obj: Json) -> None:
    """No policy."""


class Objects:
    """Creates, changes and deletes objects in a `Store` by the rules of their kinds."""

    def __init__(self, store: Store, served: Kinds, clock: Clock) -> None:
        self.store = store
        self.kinds = served
        self.collector = Collector(store, served, self.delete, self._settle)
        self.mutate: Mutate = change_nothing
        self._clock = clock
        self._made = 0
        self._suffixes = random.Random(0)
        self._applied: dict[tuple[str, str], Json] = {}

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """The object (read only); 404 when it is not there."""
        with self.store.changed:
            return self._existing(kind, namespace, name)

    def select(self, kind: Kind, namespace: str = "", labels: str = "") -> list[Json]:
        """All objects of `kind` (read only), by namespace and name."""
        with self.store.changed:
            found = self.store.view(kind, namespace, self.store.revision)
        return [obj for obj in found if matches_labels(labels, obj)]

    def create(self, kind: Kind, namespace: str, body: Any) -> Json:
        """Store a new object: uid, creation time, defaults and first status are the server's."""
        with self.store.changed:
            obj = rules.check_envelope(kind, namespace, "", body)
            meta = obj["metadata"]
            if meta.pop("resourceVersion", ""):
                raise Refusal(500, "", "resourceVersion should not be set on objects to be created")
            if not meta.get("name") and meta.get("generateName"):
                meta["name"] = meta["generateName"] + "".join(self._suffixes.choices(_SUFFIX_LETTERS, k=5))
            if not meta.get("name"):
                raise invalid(kind, "", "metadata.name: Required value: name or generateName is required")
            rules.check_name(kind, meta["name"])
            if kind.namespaced:
                rules.namespace_is_open(self.store.find(kinds.NAMESPACES, "", namespace), namespace)
            if self.store.find(kind, namespace, meta["name"]) is not None:
                raise already_exists(kind, meta["name"])
            return self._admit(kind, obj)

    def _admit(self, kind: Kind, obj: Json) -> Json:
        meta = obj["metadata"]
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            meta.pop(field, None)
        self._made += 1
        meta["uid"] = str(uuid.UUID(int=self._made, version=4))
        meta["creationTimestamp"] = self.stamp()
        if kind.has_generation:
            meta["generation"] = 1
        if kind.has_status:
            obj.pop("status", None)
            status = rules.new_status(kind)
            obj.update({} if status is None else {"status": status})
        if kind == kinds.CLAIMS:
            meta["finalizers"] = [*(meta.get("finalizers") or ()), rules.CLAIM_PROTECTION]
        rules.add_defaults(kind, obj, self._allocate_ip)
        self.mutate(kind, obj)
        rules.check_new(kind, obj)
        stored = self.store.put(kind, obj)
        if kind == kinds.CRDS:
            self._serve_custom_kind(stored)
        self.collector.run()
        return stored

    def replace(self, kind: Kind, namespace: str, name: str, body: Any, *, subresource: str = "") -> Json:
        """Put `body` in place of the object (of its status alone with `subresource="status"`)."""
        with self.store.changed:
            wanted = rules.check_envelope(kind, namespace, name, body)
            current = self.store.find(kind, namespace, name)
            if current is None and kind.put_creates and not subresource:
                wanted["metadata"].pop("resourceVersion", None)
                return self.create(kind, namespace, wanted)
            if current is None:
                raise not_found(kind, name)
            if kind.put_needs_version and not wanted["metadata"].get("resourceVersion"):
                why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
                raise invalid(kind, name, why)
            return self._write(kind, current, wanted, status_only=subresource == "status")

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Any, form: PatchFormat, *,
        subresource: str = "", manager: str = "", is_dry: bool = False,
    ) -> Json:  # fmt: skip
        """Change the object as `patch` requests; an apply creates it when it is not there.

        is_dry: an apply is not supported.
        """
        with self.store.changed:
            if form == "apply":
                return self._apply(kind, namespace, name, patch, subresource, manager)
            current = self._existing(kind, namespace, name)
            wanted = rules.check_envelope(kind, namespace, name, _PATCHERS[form](current, patch))
            if wanted["metadata"].get("uid", "") != current["metadata"]["uid"]:
                raise invalid(kind, name, "metadata.uid: Invalid value: field is immutable")
            if subresource == kinds.EPHEMERAL_CONTAINERS:
                wanted = rules.with_ephemeral_containers(current, wanted)
            return self._write(kind, current, wanted, status_only=subresource == "status", is_dry=is_dry)

    def _apply(
        self, kind: Kind, namespace: str, name: str, body: Any, subresource: str, manager: str
    ) -> Json:
        if not manager:
            raise bad_request("PatchOptions.meta.k8s.io is invalid: fieldManager: Required value")
        body = rules.check_envelope(kind, namespace, name, body)
        current = self.store.find(kind, namespace, name)
        if current is None:
            stored = self.create(kind, namespace, body)
        else:
            before = self._applied.get((current["metadata"]["uid"], manager))
            wanted = patches.apply_patch(current, before, body)
            stored = self._write(kind, current, wanted, status_only=subresource == "status")
        self._applied[stored["metadata"]["uid"], manager] = body
        return stored

    def delete(
        self, kind: Kind, namespace: str, name: str, *,
        uid: str = "", resource_version: str = "", propagation: str = "Background", grace: int | None = None,
    ) -> Json:  # fmt: skip
        """Delete the object, or mark it as being deleted while something still holds it."""
        with self.store.changed:
            current = self._existing(kind, namespace, name)
            _check_preconditions(kind, current["metadata"], uid, resource_version)
            obj = copied(current)
            meta = obj["metadata"]
            hold = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}.get(propagation)
            if hold and not meta.get("deletionTimestamp") and hold not in (meta.get("finalizers") or ()):
                meta["finalizers"] = [*(meta.get("finalizers") or ()), hold]
            seconds = rules.grace_of(kind, obj, grace)
            if "deletionTimestamp" not in meta:
                meta["deletionTimestamp"] = self.stamp(seconds)
                meta["deletionGracePeriodSeconds"] = seconds
                if kind.has_generation:
                    meta["generation"] += 1
            meta["deletionGracePeriodSeconds"] = min(seconds, meta["deletionGracePeriodSeconds"])
            if kind == kinds.NAMESPACES:
                obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
            return self._settle(kind, current, obj)

    def _write(
        self, kind: Kind, current: Json, wanted: Json, *, status_only: bool, is_dry: bool = False
    ) -> Json:
        name = current["metadata"]["name"]
        meta = wanted["metadata"]
        version = meta.get("resourceVersion") or current["metadata"]["resourceVersion"]
        if version != current["metadata"]["resourceVersion"]:
            why = (
                "the object has been modified; please apply your changes to the latest version and try again"
            )
            raise conflict(kind, name, why)
        if (meta.get("uid") or current["metadata"]["uid"]) != current["metadata"]["uid"]:
            raise conflict(kind, name, f"Precondition failed: UID in precondition: {meta['uid']}")
        new = rules.carry_over(kind, current, wanted, status_only=status_only)
        rules.add_defaults(kind, new, self._allocate_ip)
        self.mutate(kind, new)
        rules.check_change(kind, current, new)
        if kind.has_generation and rules.moves_generation(current, new):
            new["metadata"]["generation"] += 1
        return new if is_dry else self._settle(kind, current, new)

    def _settle(self, kind: Kind, current: Json, new: Json) -> Json:
        """Store `new`, or let the object go when it is being deleted and nothing holds it any more."""
        meta = new["metadata"]
        held = bool(meta.get("finalizers")) or bool(meta.get("deletionGracePeriodSeconds"))
        if meta.get("deletionTimestamp") and not held and kind != kinds.NAMESPACES:
            gone = self._remove(kind, meta.get("namespace", ""), meta["name"])
            self.collector.run()
            return gone
        if rules.means_the_same(current, new):
            return current
        stored = self.store.put(kind, new)
        self.collector.run()
        return stored

    def _remove(self, kind: Kind, namespace: str, name: str) -> Json:
        gone = self.store.remove(place_of(kind, namespace, name))
        if kind == kinds.CRDS:
            self._withdraw_custom_kind(gone)
        return gone

    def _serve_custom_kind(self, crd: Json) -> None:
        spec = crd["spec"]
        for version in spec["versions"]:
            has_status = "status" in (version.get("subresources") or {})
            plural, kind = spec["names"]["plural"], spec["names"]["kind"]
            self.kinds.register(
                custom_kind(spec["group"], version["name"], plural, kind, has_status=has_status)
            )

    def _withdraw_custom_kind(self, crd: Json) -> None:
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        for place, _ in self.store.everything():
            if (place.group, place.plural) == (group, plural):
                self.store.remove(place)
        for kind in self.kinds.of_group(group):
            if kind.plural == plural:
                self.kinds.withdraw(kind)

    def _existing(self, kind: Kind, namespace: str, name: str) -> Json:
        found = self.store.find(kind, namespace, name)
        if found is None:
            raise not_found(kind, name)
        return found

    def stamp(self, later: int = 0) -> str:
        return (self._clock.now() + timedelta(seconds=later)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _allocate_ip(self) -> str:
        self._made += 1
        return f"10.96.{self._made // 250 % 250}.{self._made % 250 + 1}"


def _check_preconditions(kind: Kind, meta: Json, uid: str, version: str) -> None:
    if uid and uid != meta["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
        raise conflict(kind, meta["name"], why)
    if version and version != meta["resourceVersion"]:
        raise conflict(kind, meta["name"], f"Precondition failed: ResourceVersion in precondition: {version}")


_PATCHERS: dict[str, Callable[[Any, Any], Any]] = {
    "json": patches.json_patch,
    "merge": patches.merge_patch,
    "strategic": patches.strategic_patch,
}
