"""What is stored below a prefix: backups, and what only looks like one.

An object is a backup if its manifest exists, can be read, and names the size that the object has. Nothing is
concluded from names or times.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from etcd_operator.archive.errors import DamagedManifest, NotABackup, UnknownFormat
from etcd_operator.archive.manifest import SUFFIX, Manifest, decode, manifest_name
from etcd_operator.storage.errors import AccessDenied, InvalidURL, ObjectMissing
from etcd_operator.storage.protocol import Store, Stored

MANIFEST_LIMIT = 64 * 1024
"""Bytes; nothing larger is read as a manifest."""


class State(StrEnum):
    """What an entry is."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"  # an object without a manifest
    OBJECT_MISSING = "object missing"
    WRONG_SIZE = "wrong size"
    DAMAGED_MANIFEST = "damaged manifest"
    UNKNOWN_FORMAT = "unknown format"
    UNREADABLE = "unreadable"  # a manifest that the store does not give out, such as an archived one


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name. `problem` describes what is wrong; it is empty for a complete backup."""

    name: str
    state: State
    stored: Stored | None
    manifest: Manifest | None = None
    problem: str = ""

    @property
    def time(self) -> datetime | None:
        """When the snapshot began, or when the object was written if that is unknown."""
        if self.manifest is not None:
            return self.manifest.time
        return self.stored.modified if self.stored is not None else None


def entries(
    store: Store, prefix: str, is_wanted: Callable[[str], bool] = lambda _name: True
) -> Iterator[Entry]:
    """Everything below `prefix` ("" for all), by name, one entry for each object and its manifest.

    Reads one manifest at a time. is_wanted: by name; of others, nothing is read. Raises the store's errors;
    a manifest that may not be read is an entry.
    """
    listed = store.list(prefix)
    found = {stored.name: stored for stored in listed if is_wanted(stored.name.removesuffix(SUFFIX))}
    names = {name.removesuffix(SUFFIX) for name in found}
    for name in sorted(names):
        yield _entry(store, name, found.get(name), has_manifest=manifest_name(name) in found)


def load(store: Store, name: str) -> Manifest:
    """The manifest of the backup `name`.

    Raises `NotABackup` if there is none, `DamagedManifest`, `UnknownFormat`, and the store's errors.
    """
    try:
        return decode(_read_small(store, manifest_name(name)))
    except ObjectMissing as error:
        if store.stat(name) is None:
            raise NotABackup(f"there is no backup named {name}: see `etcd-operator list`") from error
        raise NotABackup(
            f"{name} has no manifest: it is a backup that was interrupted or is still being written, or not "
            "a backup"
        ) from error


def _entry(store: Store, name: str, stored: Stored | None, *, has_manifest: bool) -> Entry:
    if not has_manifest:
        problem = "no manifest: interrupted, still being written, or not a backup"
        return Entry(name=name, state=State.INCOMPLETE, stored=stored, problem=problem)
    try:
        manifest = decode(_read_small(store, manifest_name(name)))
    except (UnknownFormat, DamagedManifest, AccessDenied, InvalidURL, ObjectMissing) as error:
        state, problem = _unusable(error)
        return Entry(name=name, state=state, stored=stored, problem=problem)
    if stored is None:
        problem = "the manifest exists, but not the object: deleted by someone"
        return Entry(name=name, state=State.OBJECT_MISSING, stored=None, manifest=manifest, problem=problem)
    if stored.size != manifest.stored_size:
        problem = f"the object has {stored.size} bytes, not {manifest.stored_size}: damaged or replaced"
        return Entry(name=name, state=State.WRONG_SIZE, stored=stored, manifest=manifest, problem=problem)
    return Entry(name=name, state=State.COMPLETE, stored=stored, manifest=manifest)


def _unusable(error: Exception) -> tuple[State, str]:
    """What a name is whose manifest could not be read, and why in words."""
    if isinstance(error, UnknownFormat):
        return State.UNKNOWN_FORMAT, str(error)
    if isinstance(error, AccessDenied):
        return State.UNREADABLE, str(error)
    if isinstance(error, ObjectMissing):
        return State.INCOMPLETE, "the manifest was deleted just now"
    if isinstance(error, InvalidURL):
        return State.DAMAGED_MANIFEST, "no backup has such a name: nothing can be read under it"
    return State.DAMAGED_MANIFEST, str(error)


def _read_small(store: Store, name: str) -> bytes:
    data = b""
    for chunk in store.read(name):
        data += chunk
        if len(data) > MANIFEST_LIMIT:
            raise DamagedManifest(f"{name} has more than {MANIFEST_LIMIT} bytes: it is not a manifest")
    return data
