"""What a stream of the pages of a bbolt file leaves behind: enough to walk the trees of etcd at its end.

Free pages keep what they had when they were last used, and the pages that continue a large value may contain
anything. So each page is noted as if it stood alone, and counts only if it is reachable from a root. Whoever
writes values to etcd may have made what they contain: nothing that is noted costs more than a page has bytes.
"""

import struct
from array import array
from collections.abc import Iterator
from heapq import heappop, heappush

from etcd_operator.archive.bbolt import (
    ELEMENT,
    IS_BRANCH,
    IS_BUCKET,
    IS_LEAF,
    PAGE,
    REVISION,
    Meta,
    Root,
    children,
    malformed,
    root_of,
)
from etcd_operator.archive.errors import Damaged

_REVISION_SIZES = (17, 18)
_MAX_ROOT_OVERFLOW = 15

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
        if not 0 < count < self._size // ELEMENT.size:
            return _LEAF, 0
        element = at + ELEMENT.size * count
        flags, position, key_size, _ = ELEMENT.unpack_from(block, element)
        size = self._size * (overflow + 1)
        if flags & IS_BUCKET and overflow <= _MAX_ROOT_OVERFLOW:
            return self._known(block, at, size) if self._may_be_of_root() else (_LEAF, 0)
        key = element + position
        if key_size in _REVISION_SIZES and key + key_size <= min(at + size, self._end - self._begin):
            return self._known(block, key, REVISION.size)
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
        if len(data) == REVISION.size:
            main, mark = REVISION.unpack(data)
            return (_REVISIONS, main) if mark == b"_" else (_LEAF, 0)
        try:
            record = _ROOT.pack(*root_of(data, self._size))
        except (Damaged, struct.error):  # a free page that was overwritten in part
            return _LEAF, 0
        self._roots += record
        return _ROOTS, len(self._roots) // _ROOT.size - 1
