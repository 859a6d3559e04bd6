"""The container: every byte comes back, in bounded memory, and nothing of it is shown."""

import itertools
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.archive import frames
from etcd_operator.archive.errors import Damaged
from etcd_operator.archive.keys import KeyRing
from unit.archive.containers import (
    FRAMED,
    KEY,
    OTHER,
    RING,
    Form,
    each_framed,
    noise,
    parts,
    restored,
    stored,
)


@each_framed
@pytest.mark.parametrize(
    "size", [0, 1, frames.FRAME_SIZE - 1, frames.FRAME_SIZE, frames.FRAME_SIZE + 1, 3_000_000]
)
@pytest.mark.parametrize("make", [noise, bytes], ids=["noise", "zeros"])
def test_every_byte_comes_back(form: Form, size: int, make: type[bytes]) -> None:
    data = make(size)
    assert restored(stored(data, form), form) == data


@given(st.binary(max_size=3000), st.sampled_from(FRAMED), st.integers(1, 3000), st.integers(1, 3000))
def test_the_sizes_of_chunks_do_not_matter(data: bytes, form: Form, first: int, second: int) -> None:
    assert restored(stored(data, form, chunk=first), form, chunk=second) == data


def test_compression_makes_it_smaller() -> None:
    assert len(stored(bytes(3_000_000), ("zstd", "AES-256-GCM"))) < 1000


def test_what_cannot_be_compressed_hardly_grows() -> None:
    assert len(stored(noise(3_000_000), ("zstd", "AES-256-GCM"))) < 3_001_000


def test_an_encrypted_backup_shows_nothing_of_the_snapshot() -> None:
    out = stored(b"the secret of the snapshot" * 1000, ("", "AES-256-GCM"))
    assert b"secret" not in out
    assert KEY.secret not in out


def test_the_same_snapshot_is_never_stored_alike() -> None:
    """A key stream used twice would show what differs. Of zeros it is what is stored, but for the tag."""
    first, second = (parts(stored(bytes(100), ("", "AES-256-GCM")))[1] for _ in range(2))
    assert first[4:-16] != second[4:-16]


def test_frames_of_one_object_are_not_alike() -> None:
    _, first, second, _ = parts(stored(bytes(2 * frames.FRAME_SIZE), ("", "AES-256-GCM")))
    assert first[4:-16] != second[4:-16]


def test_an_error_of_the_source_passes_through() -> None:
    def failing() -> Iterator[bytes]:
        yield b"x" * 3_000_000
        raise ConnectionError("gone")

    taken: list[bytes] = []
    with pytest.raises(ConnectionError, match="gone"):
        taken.extend(frames.encode(failing(), compression="zstd", key=None))
    with pytest.raises(Damaged, match="truncated"):
        restored(b"".join(taken), ("zstd", ""))


# Keys


def test_any_key_of_the_ring_decrypts() -> None:
    out = stored(b"snapshot", ("", "AES-256-GCM"))
    assert restored(out, ("", "AES-256-GCM"), keys=KeyRing([OTHER, KEY, OTHER])) == b"snapshot"


def test_an_object_that_names_another_key_is_damaged() -> None:
    out = bytearray(stored(b"snapshot", ("", "AES-256-GCM")))
    out[12:20] = bytes.fromhex(OTHER.id)
    with pytest.raises(Damaged, match="frame 0"):
        restored(bytes(out), ("", "AES-256-GCM"), keys=KeyRing([KEY, OTHER]))


# Memory


@each_framed
def test_the_memory_does_not_grow_with_the_snapshot(form: Form) -> None:
    chunk = noise(32768)
    compression, encryption = form
    key = KEY if encryption else None
    coded = frames.encode(itertools.repeat(chunk, 640), compression=compression, key=key)
    tracemalloc.start()
    size = sum(map(len, frames.decode(coded, RING, compression=compression, encryption=encryption)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == 640 * len(chunk)
    assert peak < 10 << 20
