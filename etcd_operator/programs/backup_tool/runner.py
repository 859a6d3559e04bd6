"""One turn of the backup tool: store a backup if there is something new, then remove what is too much.

Promises:
- nothing is stored if etcd's revision has not grown since the newest backup of this etcd cluster, and the key
  is the same: so a cluster without new writes also gets a backup when its keys change;
- a backup with a revision that its etcd cluster has not reached is reported: what is stored then would count
  as older, and a recovery would restore that one;
- every manifest is authenticated with a key that nobody has who can only write to the store: what anybody
  else has stored displaces no backup, and no turn succeeds because of it;
- a backup is removed only right after another one was stored, only in the folder of this cluster, only what a
  manifest names, and in a bucket only what this very resource has stored by its manifest; the object goes
  first, so that a manifest is left to name what remains to be done;
- a listing may be late: nothing is removed because something else is missing in it, without a request for
  the missing object;
- nothing is removed while the newest backup was taken under an alarm CORRUPT;
- nothing is removed of an etcd cluster that has replaced this one, which may not know that;
- an object that was left without a manifest by a process that was killed is removed when this process has
  seen it for `LEFTOVER_SECONDS`, since it keeps its name from being used.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from etcd_operator.archive import source
from etcd_operator.archive.create import Options, create
from etcd_operator.archive.errors import NotReachable
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import manifest_name
from etcd_operator.archive.prune import remove, remove_bare
from etcd_operator.clock import Clock
from etcd_operator.errors import OperatorError
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.programs.backup_tool import inventory
from etcd_operator.programs.backup_tool.inventory import Inventory, Name, ToolBackup
from etcd_operator.programs.backup_tool.restorable_backups import Storing
from etcd_operator.programs.backup_tool.spool import spooled
from etcd_operator.storage.errors import NameTaken
from etcd_operator.storage.protocol import Store
from etcd_operator.storage.urls import STALL_SECONDS

LEFTOVER_SECONDS = 600.0

log = structlog.get_logger()


class Stopped(OperatorError):
    """The tool is being stopped."""


class RevisionBehind(OperatorError):
    """A backup of the etcd cluster that runs has a revision which that cluster has not reached."""


class UnknownBackup(OperatorError):
    """Something that this tool has not stored has the name of the backup that would be stored now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a turn has done. is_new: whether a backup was stored; took: seconds, if so."""

    inventory: Inventory
    is_new: bool
    took: float = 0.0


@dataclass(eq=False, kw_only=True)
class Runner:
    """Takes the backups of one cluster; for use by one thread."""

    open_store: Callable[[], Store]  # a store of its own for each caller
    folder: str  # of this cluster in the store
    owner: str  # the UID of the EtcdCluster
    is_exclusive: bool  # nobody else can write there: all that is there counts, whoever stored it
    manifest_key: Callable[[], EncryptionKey]  # of this cluster's tool; may raise
    keys: Callable[[], KeyRing]  # the newest of which encrypts; empty for plain backups; may raise
    endpoint: str  # where etcd is found (`host:port`)
    credentials: Callable[[], TlsCredentials | None]  # to reach it, as they are now; may raise
    keep: int  # how many backups
    scratch: Path  # a folder for one snapshot
    clock: Clock
    is_stopping: Callable[[], bool]
    storing: Storing
    _seen: dict[str, float] = field(default_factory=dict)

    def running(self) -> str:
        """The ID of the etcd cluster that answers now; empty if none does."""
        try:
            with closing(Channels(self.credentials())) as channels:
                return EtcdClient(channels, self.endpoint, deadline=source.PATIENCE).status().cluster_id
        except OperatorError:
            return ""

    def load(self, running: str = "") -> Inventory:
        """What is stored. running: the ID of the etcd cluster that runs. Raises the store's errors."""
        return self._listed(self.open_store(), running)

    def turn(self) -> Turn:
        """Store a backup if the revision has grown. Raises `OperatorError`."""
        begin = self.clock.monotonic()
        connected = closing(Channels(self.credentials()))
        with connected as channels, self.storing.of(lambda: self._choose(channels)) as chosen:
            running = chosen.status.cluster_id
            store = self.open_store()
            before = self._listed(store, running)
            self._remove_leftovers(store, before.incomplete)
            newest = before.newest_of(running)
            if newest is not None and newest.name.revision > chosen.status.revision:
                raise RevisionBehind(_behind(newest, chosen.status.revision))
            key = self.keys().newest
            is_same = newest is not None and newest.name.revision == chosen.status.revision
            if newest is not None and is_same and newest.manifest.key_id == _id(key):
                return Turn(inventory=before, is_new=False)
            # Where nothing is written, this is the next name: found to be taken before the snapshot is read.
            self._is_stored(Name(chosen.status.version, chosen.status.revision, _id(key)), running, before)
            is_new = self._store(store, channels, chosen, before, key)
            after = self._listed(store, running)
            if is_new:
                after = self._purged(store, after, running)
        return Turn(inventory=after, is_new=is_new, took=self.clock.monotonic() - begin)

    def clean(self) -> Inventory:
        """Remove all backups of this cluster, and what is left of others; what is there then.

        Raises the store's errors.
        """
        store = self.open_store()
        found = self._listed(store)
        for backup in reversed(found.backups):
            _remove(store, backup)
        # Without a manifest nobody knows who stores it.
        unmarked = found.incomplete if not found.others else ()
        for path in (*found.bare, *(each for each in unmarked if store.stat(manifest_name(each)) is None)):
            remove(store, path)
        return self._listed(store)

    def _listed(self, store: Store, running: str = "") -> Inventory:
        return inventory.load(
            store,
            self.folder,
            now=self.clock.now(),
            running=running,
            owner=self.counted_owner,
            key=None if self.is_exclusive else self.manifest_key(),
            keys=self.keys(),
        )

    @property
    def counted_owner(self) -> str | None:
        """Whose backups count; None for all that are there."""
        return None if self.is_exclusive else self.owner

    def _choose(self, channels: Channels) -> source.Source:
        """The best member; by the address of the Service if members cannot be reached by theirs."""
        self._require_running()
        found = source.members(channels, self.endpoint)
        if found:
            try:
                return source.choose(channels, found)
            except NotReachable as error:
                log.info("members_not_reachable", error=str(error))
        return source.choose(channels, [self.endpoint])

    def _store(
        self,
        store: Store,
        channels: Channels,
        chosen: source.Source,
        before: Inventory,
        key: EncryptionKey | None,
    ) -> bool:
        """Store a backup; false if there is one of the same revision already."""
        now, status = self.clock.now(), chosen.status
        snapshot = self._stoppable(source.read(channels, chosen, stall=STALL_SECONDS))
        with spooled(snapshot, self.scratch) as spool:
            name = Name(status.version, spool.summary.etcd_revision, _id(key))
            if self._is_stored(name, status.cluster_id, before):
                return False
            chunks = self._stoppable(spool.chunks())
            options = Options(owner=self.owner, key=key, manifest_key=self.manifest_key())
            create(store, f"{self.folder}/{name}", chunks, chosen, time=now, options=options)
        log.info("backup_stored", name=str(name), source=chosen.endpoint, size=spool.summary.size)
        return True

    def _is_stored(self, name: Name, cluster_id: str, before: Inventory) -> bool:
        """Whether there is a backup of that name. Raises `NameTaken` if it is none of this cluster's."""
        path = f"{self.folder}/{name}"
        taken = next((each for each in (*before.backups, *before.others) if each.path == path), None)
        if taken is None:
            return False
        if taken in before.others or taken.manifest.cluster_id != cluster_id:
            raise NameTaken(
                f"{name} is a backup of another etcd cluster of this name: the next write to this "
                "cluster gives its backup another name"
            )
        if not taken.is_authentic:
            raise UnknownBackup(_unknown(taken))
        return True

    def _stoppable(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._require_running()
            yield chunk

    def _require_running(self) -> None:
        if self.is_stopping():
            raise Stopped("the backup tool is being stopped")

    def _purged(self, store: Store, after: Inventory, running: str) -> Inventory:
        """What is left once the surplus is removed; a failure to remove does not fail the backup."""
        surplus = after.surplus(self.keep, running=running)
        if not surplus and not after.bare:
            return after
        try:
            for backup in surplus:
                _remove(store, backup)
            for path in after.bare:
                remove_bare(store, path)
            return self._listed(store, running)
        except OperatorError as error:
            log.warning("purge_failed", error=str(error))
            return after

    def _remove_leftovers(self, store: Store, incomplete: Iterable[str]) -> None:
        now = self.clock.monotonic()
        seen = {path: self._seen.get(path, now) for path in incomplete}
        self._seen.clear()
        for path, since in seen.items():
            if now - since < LEFTOVER_SECONDS:
                self._seen[path] = since
            elif _is_removed(store, path):
                log.warning("leftover_removed", name=path)


def _id(key: EncryptionKey | None) -> str:
    return key.id if key is not None else ""


def _behind(newest: ToolBackup, revision: int) -> str:
    return (
        f"the newest backup of this etcd cluster, {newest.name}, has revision {newest.name.revision}, and "
        f"etcd has only {revision}: somebody has put that backup there, or has restored older data by hand "
        "without a new cluster ID. Nothing is backed up until all such backups are moved away with their "
        "manifests"
    )


def _unknown(taken: ToolBackup) -> str:
    return (
        f"the name of the next backup is taken by {taken.name}, which this backup tool has not stored, or "
        "before the token in its Secret was replaced: if you do not know it, move it away with its manifest; "
        "the next write to this cluster is backed up in any case"
    )


def _is_removed(store: Store, path: str) -> bool:
    """Whether an object could be removed: if not, backups of other names can still be stored.

    A listing may be late: an object whose manifest the store has is a backup.
    """
    try:
        if store.stat(manifest_name(path)) is not None:
            return False
        store.delete(path)
    except OperatorError as error:
        log.warning("leftover_not_removed", name=path, error=str(error))
        return False
    return True


def _remove(store: Store, backup: ToolBackup) -> None:
    remove(store, backup.path)
    log.info("backup_removed", name=str(backup.name))
