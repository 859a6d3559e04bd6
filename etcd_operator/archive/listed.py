"""Reads from a database of etcd which members it lists, and whether it requires a user.

By random access: the file is on a disk, not a stream. The formats are in `archive.bbolt`.

Bucket `members`: the key is the ID, hexadecimal; the value is JSON.
Bucket `auth`: `authEnabled` is 1 if only users are answered.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from etcd_operator.archive import bbolt
from etcd_operator.archive.errors import Damaged
from etcd_operator.decoding import decoder

_LARGEST_PAGE = 1 << 16
_LARGEST_OVERFLOW = 1 << 10
_DEEPEST = 16


class ListedMember(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An entry of etcd's list; the name is empty until the member has started."""

    id: int
    peer_urls: tuple[str, ...] = msgspec.field(name="peerURLs", default=())
    name: str = ""
    is_learner: bool = False


def listed_members(file: Path) -> tuple[ListedMember, ...]:
    """The members in the database. Raises `Damaged`, and OSError."""
    with file.open("rb") as source:
        tree = _Tree(source.fileno())
        buckets = dict(tree.elements(tree.root))
        value = buckets.get(b"members", b"")
        decode = decoder(ListedMember).decode
        try:
            return tuple(decode(text) for _, text in tree.bucket(value))
        except (msgspec.DecodeError, struct.error) as error:
            raise Damaged("the list of members in the database cannot be read") from error


def requires_user(file: Path) -> bool:
    """Whether etcd's authentication is enabled in the database. Raises `Damaged`, and OSError."""
    with file.open("rb") as source:
        tree = _Tree(source.fileno())
        auth = dict(tree.elements(tree.root)).get(b"auth", b"")
        return bool(auth) and dict(tree.bucket(auth)).get(b"authEnabled") == b"\x01"


class _Tree:
    """The pages of an open file."""

    def __init__(self, file: int) -> None:
        self._file = file
        sizes = (0, *(1 << shift for shift in range(12, _LARGEST_PAGE.bit_length())))
        found = next(filter(None, (bbolt.Meta.parse(self._read(at, bbolt.META_END)) for at in sizes)), None)
        if found is None:
            raise Damaged("this is not a database of etcd: it does not begin with a valid meta page")
        self._size = found.page_size
        metas = (bbolt.Meta.parse(self._read(at, bbolt.META_END)) for at in (0, self._size))
        self.root = max(filter(None, metas), key=lambda meta: meta.transaction).root

    def bucket(self, value: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of what is in a bucket, whose element has this value."""
        try:
            root, inline = bbolt.bucket(value)
        except struct.error:
            raise Damaged("the database has no list of members") from None
        yield from self.elements(root) if root else bbolt.elements(inline)

    def elements(self, page: int, depth: int = 0) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of all elements of the tree at that page. Raises `Damaged`."""
        content = self._page(page)
        _, flags, _, _ = bbolt.PAGE.unpack_from(content)
        if flags == bbolt.IS_LEAF:
            yield from bbolt.elements(content)
        elif flags == bbolt.IS_BRANCH and depth < _DEEPEST:
            for child in bbolt.children(content):
                yield from self.elements(child, depth + 1)
        else:
            raise bbolt.malformed(page)

    def _page(self, page: int) -> bytes:
        head = self._read(page * self._size, bbolt.PAGE.size)
        if len(head) < bbolt.PAGE.size:
            raise Damaged(f"the database refers to page {page}, which does not exist")
        _, _, _, overflow = bbolt.PAGE.unpack(head)
        if overflow > _LARGEST_OVERFLOW:
            raise bbolt.malformed(page)
        return self._read(page * self._size, self._size * (overflow + 1))

    def _read(self, at: int, size: int) -> bytes:
        return os.pread(self._file, size, at)
