"""The container: every byte comes back, and no change of the stored bytes goes unnoticed."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.backup import frames
from etcd_operator.backup.keys import Key, KeyRing
from etcd_operator.backup.manifest import Compression, Encryption

KEY, OTHER = Key(bytes(range(32))), Key(bytes(range(100, 132)))
RING = KeyRing([KEY])

Form = tuple[Compression, Encryption]
FRAMED: list[Form] = [("zstd", ""), ("", "AES-256-GCM"), ("zstd", "AES-256-GCM")]
FORMS: list[Form] = [("", ""), *FRAMED]
each_form = pytest.mark.parametrize("form", FORMS, ids="-".join)
each_framed = pytest.mark.parametrize("form", FRAMED, ids="-".join)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def stored(data: bytes, form: Form, *, chunk: int = 70_000) -> bytes:
    compression, encryption = form
    return b"".join(frames.encode(cut(data, chunk), compression=compression, key=KEY if encryption else None))


def restored(data: bytes, form: Form, *, chunk: int = 70_000, keys: KeyRing = RING) -> bytes:
    compression, encryption = form
    return b"".join(frames.decode(cut(data, chunk), keys, compression=compression, encryption=encryption))


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


@each_form
@pytest.mark.parametrize(
    "size", [0, 1, frames.FRAME_SIZE - 1, frames.FRAME_SIZE, frames.FRAME_SIZE + 1, 3_000_000]
)
@pytest.mark.parametrize("make", [noise, bytes], ids=["noise", "zeros"])
def test_every_byte_comes_back(form: Form, size: int, make: type[bytes]) -> None:
    data = make(size)
    assert restored(stored(data, form), form) == data


@given(st.binary(max_size=3000), st.sampled_from(FORMS), st.integers(1, 3000), st.integers(1, 3000))
def test_the_sizes_of_chunks_do_not_matter(data: bytes, form: Form, first: int, second: int) -> None:
    assert restored(stored(data, form, chunk=first), form, chunk=second) == data
