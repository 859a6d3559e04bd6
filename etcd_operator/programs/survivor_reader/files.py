"""What the files of an etcd contain: whose they are, how far its log is committed, and who is listed.

Write-ahead log (SEQUENCE-INDEX.wal, hexadecimal): frames, then zeros up to the size that was reserved. A
frame is a length (8 bytes, little-endian), of which 56 bits are the size of the record; if the highest bit is
set, bits 56 to 58 count the bytes that follow the record; then the record. Each file begins with the metadata
and raft's hard state, so only the newest one is read.

Database: see `archive.bbolt`. In the bucket `members` the key is the ID, hexadecimal, and the value is JSON;
in the bucket `auth` the value of `authEnabled` is 1 if only users are answered. In the bucket `alarm` each
key is an alarm as etcd's API reports it.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec
from google.protobuf.message import DecodeError

from etcd_operator.archive import bbolt
from etcd_operator.archive.errors import Damaged
from etcd_operator.decoding import from_json
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.formats import hex_id
from etcd_operator.pods.reports import ListedVoter

_LENGTH = struct.Struct("<Q")
_SIZE_MASK = (1 << 56) - 1
_METADATA, _HARD_STATE = 1, 3

_LARGEST_OVERFLOW = 1 << 10
_DEEPEST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """What the log of one member names."""

    cluster_id: int
    member_id: int
    committed: int  # the raft index up to which the member knows the log to be committed


def newest_log(folder: Path) -> Path:
    """The file to which etcd appends. Raises `Damaged` if there is none."""
    files = sorted(folder.glob("*.wal"))
    if not files:
        raise Damaged(f"{folder} has no log of etcd")
    return files[-1]


def read_log(file: Path) -> LogState:
    """What the newest file records. Raises `Damaged`, and OSError.

    A frame that was not written completely ends the log, as it does for etcd.
    """
    owner, state = pb.LogMetadata(), pb.HardState()
    with file.open("rb") as source:
        try:
            for record in _records(source):
                if record.type == _METADATA:
                    owner = pb.LogMetadata.FromString(record.data)
                elif record.type == _HARD_STATE:
                    state = pb.HardState.FromString(record.data)
        except DecodeError as error:
            raise Damaged("a record of the log cannot be read") from error
    if not owner.node_id or not owner.cluster_id:
        raise Damaged(f"{file.name} does not name a member of etcd")
    return LogState(member_id=owner.node_id, cluster_id=owner.cluster_id, committed=state.commit)


def _records(source: BinaryIO) -> Iterator[pb.LogRecord]:
    left = os.fstat(source.fileno()).st_size
    while len(head := source.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        size = length & _SIZE_MASK
        padding = (length >> 56) & 7 if length >> 63 else 0
        left -= _LENGTH.size + size + padding
        if size == 0 or left < -padding:  # Python would allocate whatever is claimed
            return
        data = source.read(size + padding)
        if len(data) < size:
            return
        try:
            record = pb.LogRecord.FromString(data[:size])
        except DecodeError:
            return
        yield record


class _StoredMember(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: int
    peer_urls: tuple[str, ...] = msgspec.field(name="peerURLs", default=())
    name: str = ""
    is_learner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the database of one member says of its cluster."""

    members: tuple[ListedVoter, ...]
    requires_user: bool
    corrupt: tuple[str, ...]  # IDs of the members that alarms CORRUPT name, hexadecimal


def read_database(file: Path) -> Stored:
    """What it says. Raises `Damaged`, and OSError."""
    with file.open("rb") as source:
        tree = _Tree(source.fileno())
        buckets = dict(tree.elements(tree.root))
        try:
            found = [from_json(text, _StoredMember) for _, text in tree.bucket(buckets.get(b"members", b""))]
        except msgspec.DecodeError as error:
            raise Damaged("the list of members in the database cannot be read") from error
        corrupt = _corrupt(tree, buckets.get(b"alarm", b""))
        auth = buckets.get(b"auth", b"")
        requires_user = bool(auth) and dict(tree.bucket(auth)).get(b"authEnabled") == b"\x01"
    members = (
        ListedVoter(id=hex_id(m.id), name=m.name, peer_urls=m.peer_urls, is_learner=m.is_learner)
        for m in found
    )
    return Stored(members=tuple(members), requires_user=requires_user, corrupt=corrupt)


def _corrupt(tree: "_Tree", bucket: bytes) -> tuple[str, ...]:
    """Raises `Damaged`."""
    if not bucket:
        return ()
    try:
        alarms = [pb.AlarmMember.FromString(key) for key, _ in tree.bucket(bucket)]
    except DecodeError as error:
        raise Damaged("the alarms in the database cannot be read") from error
    return tuple(hex_id(alarm.memberID) for alarm in alarms if alarm.alarm == pb.AlarmType.CORRUPT)


class _Tree:
    """The pages of an open database, by random access."""

    def __init__(self, file: int) -> None:
        self._file = file
        meta = bbolt.newest_meta(lambda at: self._read(at, bbolt.META_END))
        self._size, self._pages, self.root = meta.page_size, meta.pages, meta.root
        self._seen: set[int] = set()

    def bucket(self, value: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of what is in a bucket, whose element has this value."""
        if not value:
            raise Damaged("the database has no list of members")
        root, inline = bbolt.bucket(value)
        yield from self.elements(root) if root else bbolt.elements(inline)

    def elements(self, page: int, depth: int = 0) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of all elements of the tree at that page, which is read once. Raises `Damaged`."""
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
        is_new = page < self._pages and page not in self._seen
        self._seen.add(page)
        head = self._read(page * self._size, bbolt.PAGE.size) if is_new else b""
        if len(head) < bbolt.PAGE.size:
            raise Damaged(f"the database refers to page {page}, which does not exist or is used twice")
        _, _, _, overflow = bbolt.PAGE.unpack(head)
        if overflow > _LARGEST_OVERFLOW:
            raise bbolt.malformed(page)
        return self._read(page * self._size, self._size * (overflow + 1))

    def _read(self, at: int, size: int) -> bytes:
        return os.pread(self._file, size, at)
