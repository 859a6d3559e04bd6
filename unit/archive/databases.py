"""Makes bbolt files as etcd's are, in every layout that the format allows: the order of pages is random."""

import hashlib
import math
import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from etcd_operator.archive.database import DatabaseScan, DatabaseSummary

Entries = Sequence[tuple[bytes, bytes]]

HEADER = struct.Struct("<QHHI")
BRANCH, LEAF, META, IS_BUCKET = 1, 2, 4, 1


def revision(main: int, sub: int = 0, *, is_deletion: bool = False) -> bytes:
    """The key of an entry of the bucket `key`."""
    return struct.pack(">QcQ", main, b"_", sub) + (b"t" if is_deletion else b"")


def entries(count: int, *, first: int = 2, size: int = 40) -> list[tuple[bytes, bytes]]:
    return [(revision(main), b"v" * size) for main in range(first, first + count)]


@dataclass(slots=True, eq=False)
class Leaf:
    """A leaf page; `is_root` if its values are buckets."""

    elements: Entries = ()
    is_root: bool = False
    number: int = 0

    def content(self) -> bytes:
        table, data = b"", b""
        start = 16 * len(self.elements)
        for index, (key, value) in enumerate(self.elements):
            position = start - 16 * index + len(data)
            table += struct.pack("<IIII", IS_BUCKET if self.is_root else 0, position, len(key), len(value))
            data += key + value
        return table + data

    def page(self, size: int) -> bytes:
        content = self.content()
        overflow = self.length(size) - 1
        header = HEADER.pack(self.number, LEAF, len(self.elements), overflow)
        return (header + content).ljust(size * (overflow + 1), b"\0")

    def length(self, size: int) -> int:
        return math.ceil((16 + sum(16 + len(key) + len(value) for key, value in self.elements)) / size)


@dataclass(slots=True, eq=False)
class Branch:
    """A branch page; its children are named by their first keys."""

    children: "Sequence[tuple[bytes, Leaf | Branch]]"
    number: int = 0

    def page(self, size: int) -> bytes:
        table, data = b"", b""
        start = 16 * len(self.children)
        for index, (key, child) in enumerate(self.children):
            table += struct.pack("<IIQ", start - 16 * index + len(data), len(key), child.number)
            data += key
        return (HEADER.pack(self.number, BRANCH, len(self.children), 0) + table + data).ljust(size, b"\0")

    def length(self, size: int) -> int:
        return 1


Node = Leaf | Branch
T = TypeVar("T")


def tree(values: Entries, *, per_leaf: int, per_branch: int = 3, is_root: bool = False) -> Node:
    """A tree with that many elements in each page."""
    level: list[tuple[bytes, Node]] = [
        (part[0][0], Leaf(part, is_root=is_root)) for part in _parts(values, per_leaf)
    ]
    while len(level) > 1:
        level = [(part[0][0], Branch(part)) for part in _parts(level, per_branch)]
    return level[0][1] if level else Leaf()


def nodes(root: Node) -> Iterator[Node]:
    yield root
    if isinstance(root, Branch):
        for _, child in root.children:
            yield from nodes(child)


def bucket(root: int, inline: Entries | None = None) -> bytes:
    """The value that stands for a bucket in the root bucket: its root page, or all of it."""
    begin = struct.pack("<QQ", root, 0)
    return begin if inline is None else begin + Leaf(inline).page(16)


@dataclass(slots=True, kw_only=True)
class Database:
    """A file with these buckets: inline if they are entries, else trees.

    roots: elements of each page of the root bucket. stale: nodes of earlier transactions, in free pages;
    other pages follow those that claim to continue.
    """

    buckets: Mapping[bytes, Node | Entries]
    stale: Sequence[Node] = ()
    page_size: int = 4096
    roots: int = 100
    seed: int = 1

    def file(self, *, has_hash: bool = True) -> bytes:
        """The bytes, as the stream of a snapshot has them."""
        root = self._root()
        trees = [node for node in self.buckets.values() if isinstance(node, Leaf | Branch)]
        live = [node for top in (root, *trees) for node in nodes(top)]
        count = self._place(live)
        self._fill(root)
        pages = bytearray(count * self.page_size)
        for node in live:
            self._write(pages, node.number, node.page(self.page_size))
        for node in self.stale:
            self._write(pages, node.number, node.page(self.page_size)[: self.page_size])
        for number in (0, 1):
            self._write(pages, number, meta(self.page_size, root.number, count, 8 - number, number))
        return bytes(pages) + (hashlib.sha256(pages).digest() if has_hash else b"")

    def _root(self) -> Node:
        values = [(name, self._value(name)) for name in sorted(self.buckets)]
        return tree(values, per_leaf=self.roots, is_root=True)

    def _value(self, name: bytes) -> bytes:
        content = self.buckets[name]
        return bucket(content.number) if isinstance(content, Leaf | Branch) else bucket(0, content)

    def _place(self, live: Sequence[Node]) -> int:
        """Number all nodes in a random order; the count of all pages."""
        places = [(node, node.length(self.page_size)) for node in live] + [(node, 1) for node in self.stale]
        random.Random(self.seed).shuffle(places)
        count = 2
        for node, length in places:
            node.number = count
            count += length
        return count

    def _fill(self, root: Node) -> None:
        """The root pages of the buckets are known now."""
        for leaf in nodes(root):
            if isinstance(leaf, Leaf):
                leaf.elements = [(name, self._value(name)) for name, _ in leaf.elements]

    def _write(self, pages: bytearray, number: int, data: bytes) -> None:
        pages[number * self.page_size : number * self.page_size + len(data)] = data


def meta(page_size: int, root: int, pages: int, transaction: int, number: int) -> bytes:
    """A meta page."""
    content = struct.pack("<IIIIQQQQQ", 0xED0CDAED, 2, page_size, 0, root, 0, 2**64 - 1, pages, transaction)
    checksum = 0xCBF29CE484222325
    for byte in content:
        checksum = (checksum ^ byte) * 0x100000001B3 % 2**64
    return HEADER.pack(number, META, 0, 0) + content + struct.pack("<Q", checksum)


def scanned(data: bytes, *, chunk: int = 32768) -> DatabaseSummary:
    scan = DatabaseScan()
    for at in range(0, len(data), chunk):
        scan.feed(data[at : at + chunk])
    return scan.finish()


def found(database: Database, *, chunk: int = 32768) -> tuple[int, int]:
    """Revision and keys."""
    summary = scanned(database.file(), chunk=chunk)
    return summary.revision, summary.keys


def _parts(values: Sequence[T], size: int) -> list[Sequence[T]]:
    return [values[at : at + size] for at in range(0, len(values), size)]
