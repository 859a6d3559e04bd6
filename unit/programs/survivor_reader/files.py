"""Data directories as etcd leaves them."""

import json
import struct
from collections.abc import Sequence
from pathlib import Path

from unit.archive.databases import Database, Entries, Node, entries, tree

METADATA, ENTRY, STATE, CRC = 1, 2, 3, 4

MEMBERS = (
    {"id": 0xA1, "peerURLs": ["http://a:2380"], "name": "a", "clientURLs": ["http://a:2379"]},
    {"id": 0xB2, "peerURLs": ["http://b:2380"], "isLearner": True},
)


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def message(*numbers: int) -> bytes:
    """A protobuf message of integers, its fields numbered from 1."""
    return b"".join(varint(field << 3) + varint(number) for field, number in enumerate(numbers, 1))


def record(kind: int, data: bytes) -> bytes:
    """A frame of a log, padded to 8 bytes as etcd does it."""
    body = message(kind, 77) + varint(3 << 3 | 2) + varint(len(data)) + data
    padding = -len(body) % 8
    length = len(body) | ((0x80 | padding) << 56 if padding else 0)
    return struct.pack("<Q", length) + body + bytes(padding)


def log(*, committed: int = 9) -> bytes:
    """A log with a state that is outdated, an entry, and the last state; then reserved space."""
    return (
        record(CRC, b"")
        + record(METADATA, message(0xA1, 0xC0DE))
        + record(STATE, message(2, 0xA1, 3))
        + record(ENTRY, b"x" * 300)
        + record(STATE, message(2, 0xA1, committed))
        + bytes(512)
    )


def database(
    layout: str = "inline",
    values: Sequence[bytes] | None = None,
    *,
    auth: bytes | None = None,
    alarms: Sequence[bytes] = (),
) -> bytes:
    """A database whose list of members is inline, in one page, or in a tree of pages."""
    texts = [json.dumps(each).encode() for each in MEMBERS] if values is None else values
    listed = [(f"{number:x}".encode(), text) for number, text in enumerate(texts)]
    buckets: dict[bytes, Node | Entries] = {b"key": tree(entries(3), per_leaf=100), b"members": listed}
    if alarms:
        buckets[b"alarm"] = [(each, b"") for each in alarms]
    if auth is not None:
        buckets[b"auth"] = [(b"authEnabled", auth), (b"authRevision", b"1")]
    if layout != "inline":
        buckets[b"members"] = tree(listed, per_leaf=100 if layout == "page" else 1)
    return Database(buckets=buckets, roots=1 if layout == "tree" else 100).file(has_hash=False)


def data_dir(folder: Path) -> Path:
    """A data directory with that log and database."""
    for name, content in (("wal/0-0.wal", b""), ("wal/1-9.wal", log()), ("snap/db", database())):
        file = folder / "member" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder
