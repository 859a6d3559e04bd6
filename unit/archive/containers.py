"""Stored forms of a snapshot, as `frames` makes and reads them."""

import random
from collections.abc import Iterator

import pytest

from etcd_operator.archive import frames
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import Cipher, Compression

KEY, OTHER = EncryptionKey(bytes(range(32))), EncryptionKey(bytes(range(100, 132)))
RING = KeyRing([KEY])

Form = tuple[Compression, Cipher]
FRAMED: list[Form] = [("zstd", ""), ("", "AES-256-GCM"), ("zstd", "AES-256-GCM")]
each_framed = pytest.mark.parametrize("form", FRAMED, ids="-".join)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def stored(data: bytes, form: Form, *, chunk: int = 70_000) -> bytes:
    compression, encryption = form
    return b"".join(frames.encode(cut(data, chunk), compression=compression, key=KEY if encryption else None))


def restored(data: bytes, form: Form, *, chunk: int = 70_000, keys: KeyRing = RING) -> bytes:
    compression, encryption = form
    return b"".join(frames.decode(cut(data, chunk), keys, compression=compression, encryption=encryption))


def noise(size: int) -> bytes:
    return random.Random(1).randbytes(size)


def parts(out: bytes) -> list[bytes]:
    """The header and the frames."""
    found, at = [out[: frames.HEADER_SIZE]], frames.HEADER_SIZE
    while at < len(out):
        size = 4 + (int.from_bytes(out[at : at + 4], "little") & 0x7FFFFFFF)
        found.append(out[at : at + size])
        at += size
    return found
