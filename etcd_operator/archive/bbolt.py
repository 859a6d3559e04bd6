"""What a stream of the pages of a bbolt file leaves behind: enough to walk the trees of etcd at its end.

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

Free pages keep what they had when they were last used, and the pages that continue a large value may contain
anything. So each page is noted as if it stood alone, and counts only if it is reachable from a root. Whoever
writes values to etcd may have made what they contain: nothing that is noted costs more than a page has bytes.
"""

import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple, Self

from etcd_operator.archive.errors import Damaged

PAGE = struct.Struct("<QHHI")
_BRANCH_CHILD = struct.Struct("<8xQ")
_ELEMENT = struct.Struct("<IIII")
_BUCKET = struct.Struct("<QQ")
_META = struct.Struct("<IIIIQQQQQQ")
_REVISION = struct.Struct(">Qc")

_MAGIC = 0xED0CDAED
_VERSION = 2
IS_BRANCH = 1
IS_LEAF = 2
_IS_BUCKET = 1
_REVISION_SIZES = (17, 18)
_MAX_ROOT_OVERFLOW = 15
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


_ROOT = struct.Struct("<qQQQ16s")

_OTHER, _BRANCH, _LEAF, _REVISIONS, _ROOTS = range(5)


class Pages:
    """Fed with all pages in order; takes some 11 bytes for each, and 4 for each child of a branch."""

    def __init__(self, meta: Meta) -> None:
        self._size, self._root = meta.page_size, meta.root
        self._end = meta.pages * meta.page_size
        self._header = struct.Struct(f"<QHHI{meta.page_size - PAGE.size}x")
        self._kinds = bytearray()
        self._counts = array("H")
        # Of a branch the place of its children; of a leaf the last revision, or the place of its record.
        self._values = array("Q")
        self._children = array("I")
        self._roots = bytearray()
        # Bytes that are still to come: position, the page that needs them, their size, those that have come.
        self._late: list[tuple[int, int, int, bytes]] = []
        self._begin = 0

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, block: bytes) -> None:
        """Note the next pages; `block` is any number of whole ones."""
        self._begin = len(self) * self._size
        at = 0
        for number, flags, count, overflow in self._header.iter_unpack(block):
            kind = value = 0
            if number == len(self._kinds):
                if flags == IS_LEAF:
                    kind, value = self._leaf(block, at, count, overflow)
                elif flags == IS_BRANCH:
                    kind, value = self._branch(block[at : at + self._size])
            self._kinds.append(kind)
            self._counts.append(count)
            self._values.append(value)
            at += self._size
        self._read_late(block)

    def roots(self, page: int) -> Iterator[Root]:
        """The records of the root bucket whose tree begins at that page. Raises `Damaged`."""
        for leaf in self._leaves(page, _ROOTS):
            root = Root(*_ROOT.unpack_from(self._roots, self._values[leaf] * _ROOT.size))
            yield root._replace(version=root.version.rstrip(b"\0"))

    def revisions(self, page: int) -> tuple[int, int]:
        """Count of entries and last revision of the tree of revisions at that page. Raises `Damaged`."""
        count = last = 0
        for leaf in self._leaves(page, _REVISIONS):
            count += self._counts[leaf]
            last = self._values[leaf]
        return count, last

    def _leaves(self, page: int, kind: int) -> Iterator[int]:
        """The leaf pages of a tree in the order of their keys; all must be of that kind, or empty."""
        seen = bytearray(len(self))
        waiting = [page]
        while waiting:
            page = waiting.pop()
            if page >= len(self) or seen[page]:
                raise Damaged(f"the database refers to page {page}, which does not exist or is used twice")
            seen[page] = 1
            found, count = self._kinds[page], self._counts[page]
            if found == _BRANCH:
                first = self._values[page]
                waiting.extend(reversed(self._children[first : first + count]))
            elif found == kind:
                yield page
            elif found != _LEAF or count:
                raise malformed(page)

    def _branch(self, page: bytes) -> tuple[int, int]:
        place = len(self._children)
        try:
            self._children.extend(array("I", children(page)))
        except (OverflowError, Damaged):
            return _OTHER, 0
        return _BRANCH, place

    def _leaf(self, block: bytes, at: int, count: int, overflow: int) -> tuple[int, int]:
        """Kind and value of the leaf page at `at`; some follow later, if it is continued in other pages."""
        if not 0 < count < self._size // _ELEMENT.size:
            return _LEAF, 0
        element = at + _ELEMENT.size * count
        flags, position, key_size, _ = _ELEMENT.unpack_from(block, element)
        size = self._size * (overflow + 1)
        if flags & _IS_BUCKET and overflow <= _MAX_ROOT_OVERFLOW:
            return self._known(block, at, size) if self._may_be_of_root() else (_LEAF, 0)
        key = element + position
        if key_size in _REVISION_SIZES and key + key_size <= min(at + size, self._end - self._begin):
            return self._known(block, key, _REVISION.size)
        return _LEAF, 0

    def _may_be_of_root(self) -> bool:
        """Whether the next page may be of the root bucket: it has only one page if that is a leaf."""
        number = len(self)
        return self._root >= number or self._kinds[self._root] == _BRANCH

    def _known(self, block: bytes, at: int, size: int) -> tuple[int, int]:
        """Kind and value by the bytes at `at`, or those of an unusable page until all bytes have come."""
        data = block[at : at + size]
        if len(data) == size:
            return self._judge(data)
        heappush(self._late, (self._begin + at, len(self), size, b""))
        return _LEAF, 0

    def _read_late(self, block: bytes) -> None:
        """Complete what was left open in earlier pages and is in this block."""
        end = self._begin + len(block)
        while self._late and self._late[0][0] < end:
            position, page, size, data = heappop(self._late)
            at = position - self._begin
            data += block[at : at + size - len(data)]
            if len(data) < size:
                heappush(self._late, (end, page, size, data))
            else:
                self._kinds[page], self._values[page] = self._judge(data)

    def _judge(self, data: bytes) -> tuple[int, int]:
        """Kind and value of a leaf page by the begin of its last key; if that is a bucket, by the page."""
        if len(data) == _REVISION.size:
            main, mark = _REVISION.unpack(data)
            return (_REVISIONS, main) if mark == b"_" else (_LEAF, 0)
        try:
            record = _ROOT.pack(*_root(data, self._size))
        except (Damaged, struct.error):  # a free page that was overwritten in part
            return _LEAF, 0
        self._roots += record
        return _ROOTS, len(self._roots) // _ROOT.size - 1


def malformed(page: int) -> Damaged:
    """The error about a page whose content cannot be right."""
    return Damaged(f"page {page} of the database is not what it should be")


def children(page: bytes) -> list[int]:
    """The child pages of a branch page. Raises `Damaged` if it counts more than it has."""
    return [_BRANCH_CHILD.unpack_from(page, at)[0] for at in _table(page)]


def _table(page: bytes) -> range:
    """Where the elements of a page begin, of 16 bytes each. Raises `Damaged` if they are not in it."""
    count = PAGE.unpack_from(page)[2] if len(page) >= PAGE.size else 0
    end = PAGE.size + count * _ELEMENT.size
    if end > len(page):
        raise Damaged("a page of the database counts more elements than it has")
    return range(PAGE.size, end, _ELEMENT.size)


def elements(page: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of the elements of a leaf page. Raises `Damaged`, also where elements share bytes."""
    table = _table(page)
    end = table.stop
    for at in table:
        _, position, key_size, value_size = _ELEMENT.unpack_from(page, at)
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


def _root(page: bytes, largest: int) -> Root:
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
            last = _REVISION.unpack_from(keys[-1])[0] if keys else 0
            record = record._replace(key=0, entries=len(keys), last=last)
        elif not root and name == b"cluster":
            record = record._replace(version=dict(elements(inline)).get(b"clusterVersion", b""))
        elif not root and name == b"meta":
            compacted = dict(elements(inline)).get(b"finishedCompactRev", bytes(_REVISION.size))
            record = record._replace(compacted=_REVISION.unpack_from(compacted)[0])
    return record
