"""Small databases of etcd, made without etcd, and stores that fail on purpose."""

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from etcd_operator.archive.create import Options, create
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.source import Source
from etcd_operator.etcd.values import Status
from etcd_operator.formats import hex_id
from etcd_operator.storage.directory import Directory
from etcd_operator.storage.protocol import Store, Stored

PAGE = 4096
NOW = datetime(2026, 11, 22, 14, 0, 0, tzinfo=UTC)


def source(version: str = "3.6.16", *, cluster_id: str = "c0ffee", revision: int = 0) -> Source:
    """The member that sends a snapshot."""
    status = replace(STATUS, version=version, cluster_id=cluster_id, member_id="1001", revision=revision)
    return Source(endpoint="etcd:2379", status=status, has_quorum=True)


def snapshot(keys: int = 5, *, value: int = 3000, fill: bytes = b"v", begin: int = 2) -> bytes:
    """A database with `keys` entries (at most 120), revisions from `begin` on, and etcd's hash behind it."""
    pages: list[bytes] = []
    leaves: list[tuple[bytes, int]] = []
    first = 5 if keys else 4
    for index in range(keys):
        key = struct.pack(">Q", index + begin) + b"_" + bytes(8)
        number = first + sum(len(page) for page in pages) // PAGE
        pages.append(_leaf(number, [(0, key, fill * value)], PAGE))
        leaves.append((key, number))
    keys_root = _branch(4, leaves, PAGE) if keys else _leaf(4, [], PAGE)
    root = _leaf(3, [(1, b"key", struct.pack("<QQ", 4, 0))], PAGE)
    body = root + keys_root + b"".join(pages)
    count = 3 + len(body) // PAGE
    head = _meta(0, count, PAGE) + _meta(1, count, PAGE) + _page(2, 16, 0, b"", PAGE)
    data = head + body
    return data + hashlib.sha256(data).digest()


def chunks(data: bytes, size: int = 32 * 1024) -> Iterator[bytes]:
    """The bytes in pieces, as etcd sends them."""
    return (data[at : at + size] for at in range(0, len(data), size))


def folder(path: Path) -> Directory:
    """A folder as a store."""
    path.mkdir(exist_ok=True)
    return Directory(path)


def stored(store: Store, name: str, data: bytes | None = None, options: Options | None = None) -> Manifest:
    """A backup of `data`, stored."""
    data = snapshot() if data is None else data
    return create(store, name, chunks(data), source(), time=NOW, options=options)


def counted(
    store: Store, name: str, revision: int, *, series: str = "", minutes: float = 0.0, cluster: int = 0xC0FFEE
) -> Manifest:
    """A backup whose snapshot has this revision, taken `minutes` after `NOW`."""
    return create(
        store,
        name,
        chunks(snapshot(1, begin=revision)),
        source(cluster_id=hex_id(cluster)),
        time=NOW + timedelta(minutes=minutes),
        options=Options(series=series),
    )


class FaultyStore:
    """A store whose calls can be replaced: `before` and `after` get method and name, and may raise."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.before: Callable[[str, str], None] = lambda _method, _name: None
        self.after: Callable[[str, str], None] = lambda _method, _name: None

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        self.before("put", name)
        self.inner.put(name, chunks)
        self.after("put", name)

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        self.before("read", name)
        yield from self.inner.read(name, offset)
        self.after("read", name)

    def list(self, prefix: str) -> Iterator[Stored]:
        self.before("list", prefix)
        yield from self.inner.list(prefix)

    def stat(self, name: str) -> Stored | None:
        self.before("stat", name)
        return self.inner.stat(name)

    def delete(self, name: str) -> None:
        self.before("delete", name)
        self.inner.delete(name)


def _page(number: int, flags: int, count: int, body: bytes, page_size: int) -> bytes:
    size = -(-(16 + len(body)) // page_size) * page_size
    header = struct.pack("<QHHI", number, flags, count, size // page_size - 1)
    return (header + body).ljust(size, b"\0")


def _meta(number: int, pages: int, page_size: int) -> bytes:
    fields = struct.pack("<IIIIQQQQQ", 0xED0CDAED, 2, page_size, 0, 3, 0, 2, pages, number + 1)
    checksum = 0xCBF29CE484222325
    for byte in fields:
        checksum = (checksum ^ byte) * 0x100000001B3 % 2**64
    return _page(number, 4, 0, fields + struct.pack("<Q", checksum), page_size)


def _leaf(number: int, elements: list[tuple[int, bytes, bytes]], page_size: int) -> bytes:
    headers, data = b"", b""
    for index, (flags, key, value) in enumerate(elements):
        position = 16 * (len(elements) - index) + len(data)
        headers += struct.pack("<IIII", flags, position, len(key), len(value))
        data += key + value
    return _page(number, 2, len(elements), headers + data, page_size)


def _branch(number: int, children: list[tuple[bytes, int]], page_size: int) -> bytes:
    headers, data = b"", b""
    for index, (key, child) in enumerate(children):
        position = 16 * (len(children) - index) + len(data)
        headers += struct.pack("<IIQ", position, len(key), child)
        data += key
    body = _page(number, 1, len(children), headers + data, page_size)
    assert len(body) == page_size, "too many keys for one branch page"
    return body


STATUS = Status(
    cluster_id="c1",
    member_id="1",
    version="3.6.16",
    leader="1",
    is_learner=False,
    raft_index=100,
    raft_applied_index=100,
    revision=50,
    db_size=4096,
    errors=(),
)
"""Of a voter that leads."""
