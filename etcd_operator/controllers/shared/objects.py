"""Writes of one cluster's (or peer's) objects; each can be interrupted after any write and run again.

A create that finds an object of its name checks whose it is: ours means that an earlier
reply was lost, anybody else's is `NameConflict` and is not changed. Each write is reported to
`wrote`, so that the next pass waits until the caches show it.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec
import structlog

from etcd_operator.api.meta import HasMetadata, ObjectMeta, RawObject, Value
from etcd_operator.controllers.shared.name_conflicts import NameConflict, is_ours, name_conflict
from etcd_operator.decoding import convert
from etcd_operator.errors import AlreadyExists, NotFound, RetryableError
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.views import Written

log = structlog.get_logger()

Wrote = Callable[[Resource, Key, str], None]
"""Called after every write but deletions: resource, key, the new resourceVersion."""

RecordEvent = Callable[[str, str], None]
"""`(reason, message)` of an operation done, for an Event on the cluster."""


class Overridden(RetryableError):
    """The API server took a write and stored something else in a field that the operator relies on."""


CHANGED = "an admission policy or webhook changes it back"
"""Why a write is accepted and has no effect."""

Existing = TypeVar("Existing", bound=HasMetadata)

Labels = Mapping[str, str | None]
"""Labels or annotations to set; None removes one."""


class Seen(Protocol):
    """The object that a decision rests on, by name and UID: metadata as read, or facts made of it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""


@dataclass(frozen=True, kw_only=True)
class Objects:
    """The objects of one namespace, as far as one cluster or peer writes them.

    All methods raise the errors of `Client`; those that write raise NotLeading if this process may not.
    """

    client: Client
    namespace: str
    wrote: Wrote
    require_leadership: Callable[[], None] = lambda: None
    # Changes are checked by the API server, with all webhooks, and not stored; creations and deletions are.
    is_dry_run: bool = False

    def create(self, resource: Resource, body: RawObject) -> bool:
        """Make the object; false if an earlier attempt already had. Raises NameConflict."""
        metadata = convert(body["metadata"], ObjectMeta)
        self.require_leadership()
        try:
            written = self.client.create(resource, self.namespace, body, Written)
        except AlreadyExists:
            self._note(resource, metadata.name, self._ours(resource, metadata))
            return False
        self._note(resource, metadata.name, written)
        return True

    def merge(
        self,
        resource: Resource,
        seen: Seen,
        change: RawObject,
        *,
        kind: PatchKind = PatchKind.MERGE,
        version: str = "",
        subresource: str = "",
    ) -> Written:
        """Change some fields of the object that was seen. Raises Conflict if another one has its name.

        version: raises Conflict if the object has another one. Raises Overridden if labels or annotations of
        the change are not stored.
        """
        metadata = {**change.get("metadata", {}), "uid": seen.uid}
        if version:
            metadata["resourceVersion"] = version
        patch = {**change, "metadata": metadata}
        written = self._patch(resource, seen, patch, Written, kind=kind, subresource=subresource)
        lost = _not_stored(metadata, written.metadata)
        if lost:
            raise Overridden(f"{resource.kind} {seen.name} is stored without {', '.join(lost)}: {CHANGED}")
        return written

    def label(self, resource: Resource, seen: Seen, labels: Labels) -> None:
        """Set labels of the object that was seen, as `merge`."""
        self.merge(resource, seen, {"metadata": {"labels": labels}})

    def annotate(self, resource: Resource, seen: Seen, annotations: Labels) -> None:
        """Set annotations of the object that was seen, as `merge`."""
        self.merge(resource, seen, {"metadata": {"annotations": annotations}})

    def own(self, resource: Resource, seen: Seen, owner: list[RawObject], *, version: str) -> None:
        """Give an object without an owner one. Raises Conflict if it has changed since it was seen."""
        change = {"op": "add", "path": "/metadata/ownerReferences", "value": owner}
        self.change(resource, seen, change, kind=Written, version=version)

    def change(
        self,
        resource: Resource,
        seen: Seen,
        *changes: RawObject,
        kind: type[Existing],
        version: str = "",
        subresource: str = "",
    ) -> Existing:
        """Apply operations of a JSON patch to the object that was seen; what is stored then.

        Raises Invalid if another one has its name. version: raises Conflict if the object has another one.
        """
        patch: list[RawObject] = [{"op": "test", "path": "/metadata/uid", "value": seen.uid}]
        if version:
            patch.append({"op": "replace", "path": "/metadata/resourceVersion", "value": version})
        operations = [*patch, *changes]
        return self._patch(resource, seen, operations, kind, kind=PatchKind.JSON, subresource=subresource)

    def _patch(
        self,
        resource: Resource,
        seen: Seen,
        patch: RawObject | list[RawObject],
        stored: type[Existing],
        *,
        kind: PatchKind,
        subresource: str,
    ) -> Existing:
        """Send a patch; what is stored then, or would be."""
        self.require_leadership()
        key, is_dry_run = self.key(seen.name), self.is_dry_run
        written = self.client.patch(
            resource, key, patch, stored, kind=kind, subresource=subresource, is_dry_run=is_dry_run
        )
        if not is_dry_run:
            self._note(resource, seen.name, written)
        return written

    def change_template(
        self, resource: Resource, found: ObjectMeta, body: RawObject, *more: RawObject
    ) -> None:
        """Give a ReplicaSet as it was read the template of `body` and its annotations; others are kept."""
        # An object without any annotations has nothing to add a single one to.
        annotations = {**found.annotations, **body["metadata"]["annotations"]}
        changes = (
            {"op": "add", "path": "/metadata/annotations", "value": annotations},
            {"op": "replace", "path": "/spec/template", "value": body["spec"]["template"]},
            *more,
        )
        with suppress(NotFound):  # deleted meanwhile: the watch will report it
            self.change(resource, found, *changes, kind=Written, version=found.resource_version)

    def write_status(
        self, resource: Resource, read: ObjectMeta, status: Value | RawObject, kind: type[Existing]
    ) -> Existing | None:
        """Replace the status of an object as it was read; what is stored then, None if it was deleted.

        Raises Conflict if it has changed since.
        """
        change = {"op": "add", "path": "/status", "value": msgspec.to_builtins(status)}
        version = read.resource_version
        try:
            return self.change(resource, read, change, kind=kind, version=version, subresource="status")
        except NotFound:
            return None

    def write_finalizers(self, resource: Resource, read: ObjectMeta, finalizers: Iterable[str]) -> None:
        """Replace the finalizers of an object as it was read. Raises Conflict if it has changed since."""
        change: RawObject = {"op": "add", "path": "/metadata/finalizers", "value": list(finalizers)}
        self.change(resource, read, change, kind=Written, version=read.resource_version)

    def remove(
        self, resource: Resource, seen: Seen, *, version: str = "", propagation: str = "Background"
    ) -> bool:
        """Delete the object that was seen; whether it was still there. Conflict if another has its name.

        version: raises Conflict if the object has another one.
        """
        key = self.key(seen.name)
        self.require_leadership()
        try:
            self.client.delete(resource, key, uid=seen.uid, resource_version=version, propagation=propagation)
        except NotFound:
            return False
        return True

    def remove_of(
        self, owner: str, resource: Resource, name: str, *, propagation: str = "Background"
    ) -> bool:
        """Delete the object of that name, as it is now, if the object with the UID `owner` controls it.

        Whether there was one. Raises as `find` and `remove`.
        """
        found = self.find(resource, name, Written)
        if found is None or found.metadata.controller_uid != owner:
            return False
        return self.remove(resource, found.metadata, propagation=propagation)

    def key(self, name: str) -> Key:
        """The key of an object of that name."""
        return Key(self.namespace, name)

    def _note(self, resource: Resource, name: str, written: HasMetadata) -> None:
        self.wrote(resource, self.key(name), written.metadata.resource_version)

    def find(self, resource: Resource, name: str, kind: type[Existing]) -> Existing | None:
        """The object, read live; None if it does not exist."""
        try:
            return self.client.get(resource, self.key(name), kind)
        except NotFound:
            return None

    def find_own(self, resource: Resource, body: RawObject) -> bool:
        """Whether the object exists, live, and is not being deleted; labels that it lost are restored."""
        wanted = convert(body["metadata"], ObjectMeta)
        found = self.find(resource, wanted.name, Written)
        if found is None:
            return False
        if found.metadata.is_deleting or not is_ours(found.metadata, wanted):
            return False
        self._note(resource, wanted.name, self._labelled(resource, found, wanted))
        return True

    def _labelled(self, resource: Resource, found: Written, wanted: ObjectMeta) -> Written:
        have = found.metadata.labels
        lost = {label: value for label, value in wanted.labels.items() if have.get(label) != value}
        if not lost:
            return found
        log.warning("labels_restored", kind=resource.kind, name=wanted.name, labels=sorted(lost))
        return self.merge(resource, found.metadata, {"metadata": {"labels": lost}})

    def _ours(self, resource: Resource, wanted: ObjectMeta) -> Written:
        name = f"{resource.kind} {wanted.name}"
        found = self.find(resource, wanted.name, Written)
        if found is None:
            raise NameConflict(f"{name} is being deleted", is_passing=True)
        if not found.metadata.is_deleting and is_ours(found.metadata, wanted):
            return self._labelled(resource, found, wanted)
        raise name_conflict(name, found.metadata, wanted)


def _not_stored(asked: RawObject, stored: ObjectMeta) -> list[str]:
    """The labels and annotations of a patch that an object does not have; one name may be both."""
    pairs = ((asked.get("labels", {}), stored.labels), (asked.get("annotations", {}), stored.annotations))
    return sorted(
        name
        for wanted, found in pairs
        for name, value in wanted.items()
        if value is not None and found.get(name) != value
    )
