"""Reads a snapshot while it passes: revision, number of keys and hash, without a second reading."""

import hashlib
from dataclasses import dataclass

from etcd_operator.archive.bbolt import MAX_PAGE, META_END, Meta, newest_meta
from etcd_operator.archive.errors import Damaged
from etcd_operator.archive.pages import Pages

_HASH_SIZE = 32
_SECTOR = 512
"""Databases are a multiple of this, so a rest of `_HASH_SIZE` is etcd's hash."""

_BEGIN = 2 * MAX_PAGE
"""With so many bytes both meta pages have come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSummary:
    """What is in a snapshot."""

    revision: int  # of the last entry, as `etcdutl snapshot status` reports it; 0 if there is none
    keys: int  # entries of the bucket `key`: one for each revision of a key that is not compacted
    # The revision of the last compaction, 0 before the first. It is higher than `revision` if an old version
    # of etcd compacted the last entry, too; a member that is started on it has the higher one of both.
    compacted: int
    cluster_version: str  # as etcd recorded it; empty if it has not
    size: int  # of all bytes, with etcd's hash
    sha256: str  # of the same
    has_hash: bool  # whether the bytes end with etcd's hash, which matches

    @property
    def last_revision(self) -> int:
        """Of the last entry, or of a later compaction: it removes deleted keys with what deleted them."""
        return max(self.revision, self.compacted)

    @property
    def etcd_revision(self) -> int:
        """The revision with which etcd starts on it: etcd counts from 1."""
        return max(self.last_revision, 1)


def is_whole(size: int) -> bool:
    """Whether a database without etcd's hash can have `size` bytes."""
    return size % _SECTOR == 0


class DatabaseScan:
    """Fed with the chunks of a snapshot, of any size and in order."""

    def __init__(self) -> None:
        self._size = 0
        self._digest = hashlib.sha256()
        self._held = b""
        self._rest = b""
        self._found: tuple[Meta, Pages] | None = None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes. Raises `Damaged` if they cannot be a database."""
        self._size += len(chunk)
        self._hash(chunk)
        self._rest = self._rest + chunk if self._rest else chunk
        if self._found or len(self._rest) >= _BEGIN:
            self._note()

    def finish(self) -> DatabaseSummary:
        """Check the whole. Raises `Damaged` if the snapshot is truncated, changed or no database of etcd."""
        meta, pages = self._note()
        has_hash = self._size % _SECTOR == _HASH_SIZE
        if has_hash and self._digest.digest() != self._held:
            raise Damaged(f"the snapshot of {self._size} bytes does not match the hash that etcd appended")
        self._digest.update(self._held)
        if len(pages) < meta.pages:
            raise Damaged(f"the database is truncated: it has {len(pages)} of {meta.pages} pages")
        return self._summary(meta, pages, has_hash=has_hash)

    def _hash(self, chunk: bytes) -> None:
        """Leave out the last bytes, which may be etcd's hash."""
        if len(chunk) < _HASH_SIZE:
            chunk = self._held + chunk
        else:
            self._digest.update(self._held)
        self._digest.update(memoryview(chunk)[:-_HASH_SIZE])
        self._held = bytes(chunk[-_HASH_SIZE:])

    def _note(self) -> tuple[Meta, Pages]:
        """Note all whole pages that have come."""
        if self._found is None:
            meta = newest_meta(lambda at: self._rest[at : at + META_END])
            self._found = meta, Pages(meta)
        meta, pages = self._found
        whole = len(self._rest) // meta.page_size * meta.page_size
        pages.add(self._rest[:whole])
        self._rest = self._rest[whole:]
        return meta, pages

    def _summary(self, meta: Meta, pages: Pages, *, has_hash: bool) -> DatabaseSummary:
        roots = list(pages.roots(meta.root))
        keys = next((root for root in roots if root.key >= 0), None)
        if keys is None:
            raise Damaged("this is not a database of etcd: it has no bucket `key`")
        count, last = pages.revisions(keys.key) if keys.key else (keys.entries, keys.last)
        return DatabaseSummary(
            revision=last,
            keys=count,
            compacted=max(root.compacted for root in roots),
            cluster_version=max(root.version for root in roots).decode("ascii", "replace"),
            size=self._size,
            sha256=self._digest.hexdigest(),
            has_hash=has_hash,
        )
