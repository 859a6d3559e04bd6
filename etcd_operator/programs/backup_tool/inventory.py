"""What is stored in the folder of one cluster, the newest first, and what is more than wanted.

A bucket may have backups of another resource in the same folder: an EtcdCluster of the same namespace and
name in another Kubernetes cluster, or a deleted one. They are listed apart, and never counted, offered or
removed.

One name can have belonged to several etcd clusters. The one that runs now comes first, if it is known; for
the rest see `archive.retention`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from etcd_operator.archive.authenticity import is_authentic
from etcd_operator.archive.catalog import Entry, State, entries
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.retention import AHEAD, Stamp, former, newer, newest_first
from etcd_operator.formats import timestamp
from etcd_operator.pods.reports import BackupReport
from etcd_operator.storage.errors import AccessDenied
from etcd_operator.storage.protocol import Store

_NAME = re.compile(r"([0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*)_([0-9a-f]{16})(?:_([0-9a-f]{16}))?_etcd\.backup")


@dataclass(frozen=True, slots=True)
class Name:
    """A name in its parts: `<etcd version>_<revision, 16 hex digits>_etcd.backup`.

    With the ID of the key before `_etcd` if it is encrypted: what is stored of the same revision in another
    form does not take its name.
    """

    etcd_version: str
    revision: int  # etcd's at the moment of the snapshot
    key_id: str = ""  # of the key that encrypted it, else empty

    def __str__(self) -> str:
        key = f"_{self.key_id}" if self.key_id else ""
        return f"{self.etcd_version}_{self.revision:016x}{key}_etcd.backup"


def parse_name(text: str) -> Name | None:
    """The parts of a name; None if it is not one of these. Whether that backup exists, its manifest shows."""
    found = _NAME.fullmatch(text)
    return Name(found[1], int(found[2], 16), found[3] or "") if found is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBackup:
    """A complete backup."""

    path: str  # its name in the store
    name: Name
    manifest: Manifest
    modified: datetime  # when it came there, by the clock of the store
    is_own: bool = True  # whether it is known who stored it, see `load`
    refusal: str = ""  # why it is not read with the keys that are given; empty if it is

    @property
    def is_authentic(self) -> bool:
        """Whether it may be restored without a person."""
        return self.is_own and not self.refusal

    def report(self, *, age: float = 0.0, took: float = 0.0) -> BackupReport:
        """What the tool reports of it."""
        manifest = self.manifest
        return BackupReport(
            name=str(self.name),
            time=timestamp(manifest.time),
            revision=self.name.revision,
            etcd_version=manifest.etcd_version,
            cluster_id=manifest.cluster_id,
            size=manifest.size,
            sha256=manifest.sha256,
            key_id=manifest.key_id,
            is_authentic=self.is_authentic,
            refusal=self.refusal,
            corrupt_alarm=manifest.corrupt_alarm,
            age=age,
            took=round(took, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All that is in the folder under names of backups; what another resource has stored is in `others`."""

    backups: tuple[ToolBackup, ...] = ()  # the complete ones, the newest first; what is not authentic is last
    incomplete: tuple[str, ...] = ()  # paths of objects without a manifest
    bare: tuple[str, ...] = ()  # paths of objects that are gone, but for their manifests
    others: tuple[ToolBackup, ...] = ()  # complete backups that another resource has stored
    refused: ToolBackup | None = None  # the newest of `backups`, whoever stored it, if the keys refuse it

    @property
    def newest(self) -> ToolBackup | None:
        """The backup to restore; None if there is none."""
        return next(iter(self.backups), None)

    @property
    def unknown(self) -> ToolBackup | None:
        """What would be the newest if it were authentic; None if there is no such backup."""
        newest = self.newest
        for each in self.backups:
            if newest is None or each.is_authentic or each.manifest.cluster_id != newest.manifest.cluster_id:
                continue
            if each is newest or each.name.revision > newest.name.revision:
                return each
        return None

    @property
    def total_size(self) -> int:
        """Bytes that the complete backups take."""
        return sum(backup.manifest.stored_size for backup in self.backups)

    @property
    def foreign_owner(self) -> str | None:
        """The resource that stores backups here beside this one, as `Manifest.owner`; None if none does.

        A deleted cluster of this name has stored nothing since this one began. By the clock of the store.
        """
        begin = min((each.modified for each in self.backups), default=None)
        later = [each for each in self.others if begin is not None and each.modified > begin]
        return max(later, key=lambda each: each.modified).manifest.owner if later else None

    def newest_of(self, cluster_id: str) -> ToolBackup | None:
        """The newest authentic backup of one etcd cluster (16 hexadecimal digits)."""
        own = (each for each in self.backups if each.manifest.cluster_id == cluster_id)
        return next((each for each in own if each.is_authentic), None)

    def surplus(self, keep: int, *, running: str = "") -> tuple[ToolBackup, ...]:
        """Those after the newest `keep`, the oldest first; which of them count: see `archive.retention`.

        running: the etcd cluster that the caller takes for the one that runs. It may have been given up while
        it was cut off: what its successor has stored is no surplus.
        """
        if self.newest is None or self.newest.manifest.corrupt_alarm:
            return ()
        known = [each for each in self.backups if each.is_own]  # the rest is left to a person
        spared = (*self._of_successors(running), *former(known))
        counted = zip(known, newer(known), strict=True)
        old = [each for each, number in counted if number >= keep and each not in spared]
        return tuple(reversed(old))

    def _of_successors(self, running: str) -> tuple[ToolBackup, ...]:
        """Backups of etcd clusters that have replaced this one, and the one of its own that shows that.

        A successor begins with higher revisions, and after this cluster has stored something. Of a deleted
        cluster of the same name all backups are older than each one of this cluster.
        """
        known = [each for each in self.backups if each.is_own]
        own = [each for each in known if each.manifest.cluster_id == running]
        if not own:
            return ()
        highest, begin = own[0].name.revision, min(each.manifest.time for each in own)
        later = [
            each
            for each in known
            if each.manifest.cluster_id != running
            and each.name.revision > highest
            and each.manifest.time > begin
        ]
        first = min((each.manifest.time for each in later), default=begin)
        return (*later, *[each for each in own if each.manifest.time < first][:1])


NOTHING = Inventory()


def load(
    store: Store,
    folder: str,
    *,
    now: datetime,
    running: str = "",
    owner: str | None = None,
    key: EncryptionKey | None = None,
    keys: KeyRing | None = None,
) -> Inventory:
    """What is in `folder`; nothing below it, and nothing beside it. Raises the store's errors.

    Also for a single manifest that may not be read: without it nobody knows which backup is the newest.

    now: later times are mistakes. running: the ID of the etcd cluster that runs now, empty if that is not
    known. owner: the resource whose backups count; None for any. key: what authenticates its manifests; None
    where whoever can write there is trusted. keys: what encrypts its backups; if there are any, only what is
    encrypted with one of them is authentic.
    """
    ring = keys or KeyRing()
    found = [entry for entry in entries(store, folder) if _name(entry, folder) is not None]
    for entry in found:
        if entry.state is State.UNREADABLE:
            raise AccessDenied(entry.problem)
    backups = [backup for entry in found if (backup := _backup(entry, folder, key, ring)) is not None]
    own = [backup for backup in backups if _counts(backup.manifest, owner)]
    placed = _placed(own, latest=now + AHEAD, running=running)
    return Inventory(
        # Whoever wants another one to be restored gives it a higher revision. One that was stored with an
        # earlier key, or without one, has a lower one than those with the present key.
        backups=tuple(sorted(placed, key=lambda backup: not backup.is_authentic)),
        refused=next((backup for backup in placed[:1] if backup.refusal), None),
        incomplete=tuple(entry.name for entry in found if entry.state is State.INCOMPLETE),
        bare=tuple(
            entry.name
            for entry in found
            if entry.state is State.OBJECT_MISSING
            and entry.manifest is not None
            and _counts(entry.manifest, owner)
        ),
        others=tuple(backup for backup in backups if not _counts(backup.manifest, owner)),
    )


def find(store: Store, folder: str, name: str, *, owner: str | None = None) -> ToolBackup | None:
    """The complete backup of this name; reads no other manifest. Raises the store's errors.

    owner: as in `load`.
    """
    path = f"{folder}/{name}"
    for entry in entries(store, folder, lambda each: each == path):
        if entry.state is State.UNREADABLE:
            raise AccessDenied(entry.problem)
        found = _backup(entry, folder, None, KeyRing())
        return found if found is not None and _counts(found.manifest, owner) else None
    return None


def _counts(manifest: Manifest, owner: str | None) -> bool:
    """Whether a backup is one of `owner`, see `load`."""
    return owner in (None, manifest.owner)


def _placed(backups: Iterable[ToolBackup], *, latest: datetime, running: str) -> Sequence[ToolBackup]:
    """The newest first.

    Where the clock of a tool was ahead, its only backup would remain the newest until that time has come: a
    time after `latest` is replaced by that at which the store received it.
    """

    def stamp(backup: ToolBackup) -> Stamp:
        time = backup.manifest.time
        if time > latest:
            time = min(time, backup.modified)
        return Stamp(backup.manifest.cluster_id, backup.name.revision, time)

    placed = newest_first(backups, stamp, running=running, latest=latest)
    return [backup for _, backup in placed]


def _name(entry: Entry, folder: str) -> Name | None:
    return parse_name(entry.name.removeprefix(f"{folder}/"))


def _backup(entry: Entry, folder: str, key: EncryptionKey | None, keys: KeyRing) -> ToolBackup | None:
    name = _name(entry, folder)
    if name is None or entry.manifest is None or entry.stored is None or entry.state is not State.COMPLETE:
        return None
    why = refusal(entry.manifest.key_id, keys)
    if entry.manifest.key_id and not why:
        key = keys.find(entry.manifest.key_id)
    return ToolBackup(
        path=entry.name,
        name=name,
        manifest=entry.manifest,
        modified=entry.stored.modified,
        is_own=key is None or is_authentic(entry.name, entry.manifest, key),
        refusal=why,
    )


def refusal(key_id: str, keys: KeyRing) -> str:
    """Why a backup is not read with these keys, and what to do; empty if it is.

    key_id: of the key that encrypted it, else empty.
    """
    if key_id in (keys.ids or ("",)):
        return ""
    if key_id:
        return (
            f"it is encrypted with the key {key_id}, which is not in the Secret of "
            "spec.backup.encryption: add that key"
        )
    return (
        "it is not encrypted, although spec.backup.encryption names keys: anybody who can write to the store "
        "may have put it there; if you trust it, remove spec.backup.encryption to read it"
    )
