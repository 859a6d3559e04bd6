"""No change of the stored bytes goes unnoticed, and nothing worse happens."""

import itertools
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.archive import frames
from etcd_operator.archive.errors import Damaged, UnknownFormat, WrongKey
from unit.archive.containers import FRAMED, RING, Form, each_framed, noise, parts, restored, stored

DATA = noise(2_500_000)


@each_framed
def test_an_object_cut_at_any_boundary_is_truncated(form: Form) -> None:
    out = stored(DATA, form)
    pieces = parts(out)
    assert len(pieces) == 4
    boundaries = [sum(map(len, pieces[:count])) for count in range(len(pieces) + 1)]
    ends = {boundary + offset for boundary in boundaries for offset in (-1, 0, 1, 4, 5)}
    for end in ends & set(range(len(out))):
        with pytest.raises(Damaged):
            restored(out[:end], form)


@each_framed
def test_moved_repeated_and_missing_frames_are_found(form: Form) -> None:
    header, *pieces = parts(stored(DATA, form))
    first, second, last = pieces
    for arrangement in (
        [second, first, last],
        [first, first, last],
        [first, last],
        [last],
        [first, second, second, last],
        [first, second, last, last],
        [first, second, last, first],
        [],
    ):
        with pytest.raises(Damaged):
            restored(header + b"".join(arrangement), form)
    assert restored(header + b"".join(pieces), form) == DATA


@each_framed
def test_frames_and_headers_of_another_object_are_found(form: Form) -> None:
    """Even of the same snapshot, which was stored a second time."""
    header, first, *rest = parts(stored(DATA, form))
    other_header, other_first, *other_rest = parts(stored(DATA, form))
    for mixed in ([header, other_first, *rest], [header, first, *other_rest], [other_header, first, *rest]):
        with pytest.raises(Damaged):
            restored(b"".join(mixed), form)


@each_framed
def test_the_last_frame_cannot_be_made_one_in_the_middle_nor_the_reverse(form: Form) -> None:
    header, first, second, last = parts(stored(DATA, form))
    early = bytearray(second)
    early[3] ^= 0x80
    late = bytearray(last)
    late[3] ^= 0x80
    for changed in (header + first + early, header + first + second + late):
        with pytest.raises(Damaged):
            restored(changed, form)


@each_framed
def test_every_flipped_bit_is_found(form: Form) -> None:
    whole = stored(b"snapshot" * 9, form)
    for position in range(len(whole)):
        for bit in range(8):
            out = bytearray(whole)
            out[position] ^= 1 << bit
            with pytest.raises((Damaged, UnknownFormat, WrongKey)):
                restored(bytes(out), form)


@given(st.sampled_from(FRAMED), st.binary(max_size=300), st.booleans())
def test_no_bytes_lead_to_another_error(form: Form, data: bytes, has_header: bool) -> None:
    begin = stored(b"", form)[: frames.HEADER_SIZE] if has_header else b""
    with pytest.raises((Damaged, UnknownFormat, WrongKey)):
        restored(begin + data, form)


@pytest.mark.parametrize("data", [b"", b"\x93etcdbk", bytes(100), b"<html></html>"], ids=range(4))
def test_something_else_is_not_a_container(data: bytes) -> None:
    with pytest.raises(Damaged, match="begins differently"):
        restored(data, ("zstd", ""))


def test_a_later_version_of_the_container_is_named_as_such() -> None:
    out = bytearray(stored(b"snapshot", ("zstd", "")))
    out[len(frames.MAGIC)] = frames.VERSION + 1
    with pytest.raises(UnknownFormat, match="newer etcd-operator"):
        restored(bytes(out), ("zstd", ""))


@pytest.mark.parametrize(("form", "claimed"), list(itertools.permutations(FRAMED, 2)))
def test_an_object_that_is_not_as_its_manifest_describes_is_damaged(form: Form, claimed: Form) -> None:
    """Above all one that is not encrypted, in the place of one that is."""
    with pytest.raises(Damaged, match="the header differs"):
        restored(stored(b"snapshot", form), claimed)


def test_a_frame_that_claims_to_be_huge_is_not_waited_for() -> None:
    def endless() -> Iterator[bytes]:
        yield stored(b"", ("zstd", ""))[: frames.HEADER_SIZE] + b"\xff\xff\xff\x7f"
        pytest.fail("asked for more")

    with pytest.raises(Damaged, match="larger than frames can be"):
        list(frames.decode(endless(), RING, compression="zstd", encryption=""))


def test_a_frame_that_unpacks_to_more_than_a_frame_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes of zstd can stand for gigabytes, and without encryption anyone can make them."""
    monkeypatch.setattr(frames, "FRAME_SIZE", 100 << 20)
    bomb = stored(bytes(32 << 20), ("zstd", ""), chunk=1 << 20)
    monkeypatch.undo()
    tracemalloc.start()
    with pytest.raises(Damaged, match="frame 0: it claims to be larger"):
        restored(bomb, ("zstd", ""))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def _of_unknown_size(plain: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(plain * 20_000)


@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        lambda plain: zstandard.compress(plain) + b"more",
        lambda plain: zstandard.compress(plain)[:-1],
        _of_unknown_size,
    ],
    ids=["not compressed", "bytes behind", "cut", "of unknown size"],
)
def test_a_frame_that_was_packed_in_another_way_is_refused(
    monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(frames, "_packer", lambda _: pack)
    made = stored(noise(100), ("zstd", ""))
    with pytest.raises(Damaged, match="frame 0: it cannot be decompressed"):
        restored(made, ("zstd", ""))
