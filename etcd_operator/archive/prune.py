"""Removes the backups of a series that are more than are kept.

Promises:
- only complete backups are removed, which their own manifest names, and only those of the given series; also
  what is left of one whose removal was interrupted: a manifest without its object;
- with keys, what was not stored with one of them is neither counted nor removed: whoever can write to the
  store could name the series in a manifest, and so displace real backups;
- the object goes first. If the removal ends in between, the manifest names what remains to be done; in the
  other order, an object would remain that nothing names;
- right before its removal, the manifest is read once more: nothing is removed that was stored meanwhile;
- a backup that cannot be removed does not keep others from being removed; it is an error at the end.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from etcd_operator.archive.authenticity import is_authentic
from etcd_operator.archive.catalog import Entry, State, entries, load
from etcd_operator.archive.errors import BackupError
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import Manifest, manifest_name
from etcd_operator.archive.retention import Policy, StoredBackup, surplus
from etcd_operator.storage.errors import BucketMissing, Stalled, StoreError, Unreachable
from etcd_operator.storage.protocol import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is stored of a series."""

    surplus: tuple[StoredBackup, ...]  # complete backups to be removed, the oldest first
    kept: int  # how many complete backups remain
    bare: tuple[tuple[str, Manifest], ...] = ()  # manifests without objects, by the names of these
    unknown: int = 0  # how many names of the series were left out: who stored them is not known


def find(  # noqa: PLR0913 -- where, of which backups, what is kept, by whose keys
    store: Store,
    prefix: str,
    policy: Policy,
    *,
    series: str,
    keep: Collection[str],
    keys: KeyRing,
    now: datetime,
    is_wanted: Callable[[str], bool] = lambda _name: True,
) -> Found:
    """What is to be removed of a series below a prefix ("" for all). Raises the store's errors.

    keep, is_wanted: by names in the store.
    """
    named = [
        (entry, entry.manifest)
        for entry in entries(store, prefix, is_wanted)
        if entry.manifest is not None and entry.manifest.series == series
    ]
    found = [(entry, manifest) for entry, manifest in named if _is_known(entry.name, manifest, keys)]
    backups = [backup for entry, manifest in found if (backup := _complete(entry, manifest)) is not None]
    old = surplus(backups, policy, keep=keep, now=now)
    return Found(
        surplus=old,
        kept=len(backups) - len(old),
        bare=tuple((entry.name, each) for entry, each in found if entry.state is State.OBJECT_MISSING),
        unknown=len(named) - len(found),
    )


def _is_known(name: str, manifest: Manifest, keys: KeyRing) -> bool:
    """Whether it is known who stored it, or nothing is: without keys."""
    if keys.newest is None:
        return True
    return manifest.key_id in keys.ids and is_authentic(name, manifest, keys.find(manifest.key_id))


def carry_out(
    store: Store, found: Found, on_progress: Callable[[int], None] = lambda _done: None
) -> list[StoredBackup]:
    """Remove what was found; the backups that were removed. Somebody else may have removed the others.

    on_progress: called with the bytes of the objects removed so far. Raises the store's errors, those of
    single backups after all others were tried.
    """
    removed: list[StoredBackup] = []
    failures: list[StoreError] = []
    for name, manifest in found.bare:
        with _collected(failures):
            _finish(store, name, manifest)
    for backup in found.surplus:
        with _collected(failures):
            if _is_unchanged(store, backup.name, backup.manifest):
                remove(store, backup.name)
                removed.append(backup)
                on_progress(sum(each.manifest.stored_size for each in removed))
    if failures:
        total = len(found.bare) + len(found.surplus)
        text = f"{len(failures)} of {total} old backups could not be removed: {failures[0]}"
        raise type(failures[0])(text) from failures[0]
    return removed


def remove(store: Store, name: str) -> None:
    """Remove object and manifest. Raises the store's errors."""
    store.delete(name)
    store.delete(manifest_name(name))


def remove_bare(store: Store, name: str) -> None:
    """Remove the manifest of an object that was not listed; a listing may be late, so the store is asked."""
    if store.stat(name) is None:
        store.delete(manifest_name(name))


def _complete(entry: Entry, manifest: Manifest) -> StoredBackup | None:
    if entry.stored is None or entry.state is not State.COMPLETE:
        return None
    return StoredBackup(name=entry.name, manifest=manifest, modified=entry.stored.modified)


def _finish(store: Store, name: str, manifest: Manifest) -> None:
    """Remove a manifest whose object is gone."""
    if store.stat(name) is None and _is_unchanged(store, name, manifest):
        store.delete(manifest_name(name))


def _is_unchanged(store: Store, name: str, manifest: Manifest) -> bool:
    try:
        return load(store, name) == manifest
    except BackupError:
        return False


@contextmanager
def _collected(failures: list[StoreError]) -> Iterator[None]:
    """Goes on after the failure of one backup; not if the store does not answer, or is gone."""
    try:
        yield
    except (BucketMissing, Unreachable, Stalled):
        raise
    except StoreError as error:
        failures.append(error)
