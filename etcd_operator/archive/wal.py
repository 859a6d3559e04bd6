"""Reads whose log a write-ahead log of etcd is, and how far a member knows it to be committed.

    file     SEQUENCE-INDEX.wal, hexadecimal; frames, then zeros up to the size that was reserved
    frame    length (8 bytes, little-endian), of which 56 bits are the size of the record; if the highest bit
             is set, bits 56 to 58 count the bytes that follow the record; then the record
    record   protobuf: type (1), CRC (2), data (3); of the types, metadata is 1 and raft's hard state is 3

Each file begins with the metadata and the hard state, so only the newest one is read.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from etcd_operator.archive.errors import Damaged

_LENGTH = struct.Struct("<Q")
_SIZE_MASK = (1 << 56) - 1
_LARGEST = 1 << 30
_METADATA, _HARD_STATE = 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """Of one member. committed: the raft index up to which it knows the log to be committed."""

    cluster_id: int
    member_id: int
    committed: int


def newest_file(folder: Path) -> Path:
    """The file to which etcd appends. Raises `Damaged` if there is none."""
    files = sorted(folder.glob("*.wal"))
    if not files:
        raise Damaged(f"{folder} has no log of etcd")
    return files[-1]


def read_state(file: Path) -> LogState:
    """What the newest file records. Raises `Damaged`, and OSError.

    A frame that was not written completely ends the log, as it does for etcd.
    """
    ids: dict[int, int] | None = None
    state: dict[int, int] = {}
    with file.open("rb") as source:
        for kind, data in _records(source):
            if kind == _METADATA:
                ids = _numbers(data)
            elif kind == _HARD_STATE:
                state = _numbers(data)
    if ids is None:
        raise Damaged(f"{file.name} does not name a member of etcd")
    return LogState(member_id=ids.get(1, 0), cluster_id=ids.get(2, 0), committed=state.get(3, 0))


def _records(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Type and data of each record, but for entries, which are skipped where they are large."""
    while len(head := source.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        size = length & _SIZE_MASK
        padding = (length >> 56) & 7 if length >> 63 else 0
        if not 0 < size < _LARGEST:
            return
        record = source.read(size + padding)
        if len(record) < size:
            return
        try:
            fields = dict(_fields(record[:size]))
        except (IndexError, ValueError):
            return
        data = fields.get(3, b"")
        yield _number(fields.get(1, 0)), data if isinstance(data, bytes) else b""


def _numbers(data: bytes) -> dict[int, int]:
    """The integers of a message, by field. Raises `Damaged`."""
    try:
        return {field: _number(value) for field, value in _fields(data)}
    except (IndexError, ValueError) as error:
        raise Damaged("a record of the log cannot be read") from error


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("not a number")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protobuf message. Raises IndexError where it ends early, ValueError on other types."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
        elif key & 7 == 2:
            size, at = _varint(message, at)
            if at + size > len(message):
                raise IndexError
            yield key >> 3, message[at : at + size]
            at += size
        else:
            raise ValueError("neither a number nor bytes")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while message[at] & 0x80:
        value |= (message[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
    return value | message[at] << shift, at + 1
