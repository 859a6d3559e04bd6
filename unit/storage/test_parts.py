"""Streams in parts of one size."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.storage.parts import cut


@given(st.lists(st.binary(max_size=40)), st.integers(1, 12))
def test_parts_are_the_stream(chunks: list[bytes], size: int) -> None:
    whole = b"".join(chunks)
    parts = list(cut(chunks, size))
    assert b"".join(part.data for part in parts) == whole
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert all(len(part.data) == size for part in parts[:-1])
    assert len(parts) == max(1, -(-len(whole) // size))
    assert [part.offset for part in parts] == [size * at for at in range(len(parts))]
    assert parts[-1].end == len(whole)


def test_a_part_waits_for_no_more_than_the_next_byte() -> None:
    taken: list[int] = []

    def chunks() -> Iterator[bytes]:
        for number in range(5):
            taken.append(number)
            yield b"xx"

    assert next(cut(chunks(), 4)).data == b"xxxx"
    assert taken == [0, 1, 2]
