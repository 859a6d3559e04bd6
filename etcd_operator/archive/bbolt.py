"""The pages of a bbolt file, and what etcd has in them.

A file is a sequence of pages of one size; numbers are little-endian, as on every machine that etcd supports.

    page     id (8), flags (2): branch 1, leaf 2; count of elements (2), overflow: pages that continue it (4)
    branch   elements of position (4), key size (4), child page (8)
    leaf     elements of flags (4): bucket 1; position (4), key size (4), value size (4)
    bucket   value of an element: root page (8), sequence (8); if the root is 0, a whole leaf page follows
    meta     pages 0 and 1: magic, version, page size, flags (4 each); root page, sequence, freelist,
             high-water mark, transaction, FNV-1a-64 of the bytes before (8 each)

Positions count from their element. bbolt writes elements in the order of their keys, one behind the other.
Keys of etcd's bucket `key` are revisions: 8 bytes main, `_`, 8 bytes sub, all big-endian, and `t` for a
deletion.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from etcd_operator.archive.errors import Damaged

PAGE = struct.Struct("<QHHI")
_BRANCH_CHILD = struct.Struct("<8xQ")
ELEMENT = struct.Struct("<IIII")
_BUCKET = struct.Struct("<QQ")
_META = struct.Struct("<IIIIQQQQQQ")
REVISION = struct.Struct(">Qc")

_MAGIC = 0xED0CDAED
_VERSION = 2
IS_BRANCH = 1
IS_LEAF = 2
IS_BUCKET = 1
MAX_PAGE = 1 << 16

META_END = PAGE.size + _META.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """A valid meta page: where the root bucket is, and how many pages the file has (its high-water mark)."""

    page_size: int
    root: int
    pages: int
    transaction: int

    @classmethod
    def parse(cls, page: bytes) -> Self | None:
        """The meta page that begins there; None if there is none, or one that was not written completely."""
        if len(page) < META_END:
            return None
        magic, version, page_size, _, root, _, _, pages, transaction, checksum = _META.unpack_from(
            page, PAGE.size
        )
        content = page[PAGE.size : META_END - 8]
        if (magic, version, checksum) != (_MAGIC, _VERSION, _fnv1a(content)):
            return None
        return cls(page_size=page_size, root=root, pages=pages, transaction=transaction)


def newest_meta(read: Callable[[int], bytes]) -> Meta:
    """The meta page of the last transaction: one of both may not have been written completely.

    read: the bytes at a position, `META_END` or more if the file has them. Raises `Damaged`.
    """
    places = (0, *(1 << shift for shift in range(10, MAX_PAGE.bit_length())))
    first = next(filter(None, (Meta.parse(read(at)) for at in places)), None)
    if first is None or not 1024 <= first.page_size <= MAX_PAGE or first.page_size & (first.page_size - 1):
        raise Damaged("this is not a database of etcd: it does not begin with a valid meta page")
    second = Meta.parse(read(first.page_size))
    return max(filter(None, (first, second)), key=lambda meta: meta.transaction)


def _fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


class Root(NamedTuple):
    """What the root bucket contains about the buckets of etcd, from one of its leaf pages.

    key: root page of the bucket `key`; 0 if it is inline, with that many entries up to the revision `last`;
    -1 if it is not in this page. compacted: the revision of the last compaction. version: of the cluster.
    """

    key: int = -1
    entries: int = 0
    last: int = 0
    compacted: int = 0
    version: bytes = b""


def malformed(page: int) -> Damaged:
    """The error about a page whose content cannot be right."""
    return Damaged(f"page {page} of the database is not what it should be")


def children(page: bytes) -> list[int]:
    """The child pages of a branch page. Raises `Damaged` if it counts more than it has."""
    return [_BRANCH_CHILD.unpack_from(page, at)[0] for at in _table(page)]


def _table(page: bytes) -> range:
    """Where the elements of a page begin, of 16 bytes each. Raises `Damaged` if they are not in it."""
    count = PAGE.unpack_from(page)[2] if len(page) >= PAGE.size else 0
    end = PAGE.size + count * ELEMENT.size
    if end > len(page):
        raise Damaged("a page of the database counts more elements than it has")
    return range(PAGE.size, end, ELEMENT.size)


def elements(page: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of the elements of a leaf page. Raises `Damaged`, also where elements share bytes."""
    table = _table(page)
    end = table.stop
    for at in table:
        _, position, key_size, value_size = ELEMENT.unpack_from(page, at)
        begin, value = at + position, at + position + key_size
        if begin < end or value + value_size > len(page):
            raise Damaged("an element of the database is not within its part of a page")
        end = value + value_size
        yield page[begin:value], page[value:end]


def bucket(value: bytes) -> tuple[int, bytes]:
    """Root page of the bucket whose element has this value; if that is 0, the leaf page that follows.

    Raises `Damaged` if the value is too short.
    """
    if len(value) < _BUCKET.size:
        raise Damaged("a bucket of the database is not complete")
    root, _ = _BUCKET.unpack_from(value)
    return root, value[_BUCKET.size :]


def root_of(page: bytes, largest: int) -> Root:
    """What a leaf page of the root bucket contains. Raises `Damaged`, `struct.error` if that makes no sense.

    largest: bytes of an inline bucket; bbolt inlines what fits in a quarter of a page.
    """
    record, before = Root(), b""
    for name, value in elements(page):
        root, inline = bucket(value)
        if name <= before or (not root and len(inline) > largest):
            raise Damaged("the root bucket of the database is not what it should be")
        before = name
        if name == b"key" and root:
            record = record._replace(key=root)
        elif name == b"key":
            keys = [key for key, _ in elements(inline)]
            last = REVISION.unpack_from(keys[-1])[0] if keys else 0
            record = record._replace(key=0, entries=len(keys), last=last)
        elif not root and name == b"cluster":
            record = record._replace(version=dict(elements(inline)).get(b"clusterVersion", b""))
        elif not root and name == b"meta":
            compacted = dict(elements(inline)).get(b"finishedCompactRev", bytes(REVISION.size))
            record = record._replace(compacted=REVISION.unpack_from(compacted)[0])
    return record
