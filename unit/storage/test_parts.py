"""Streams in parts of one size."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.storage.parts import Part, cut, transfer


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


def test_a_part_is_sent_while_the_next_one_is_filled() -> None:
    sending, filled = threading.Event(), threading.Event()

    def chunks() -> Iterator[bytes]:
        yield b"aab"
        assert sending.wait(30)
        filled.set()
        yield b"b"

    def send(part: Part) -> bytes:
        sending.set()
        assert filled.wait(30)
        return part.data

    assert transfer(cut(chunks(), 2), send) == [b"aa", b"bb"]


def test_parts_are_never_sent_at_the_same_time_or_out_of_order() -> None:
    sent: list[str] = []

    def send(part: Part) -> None:
        sent.append(f"begin {part.number}")
        sent.append(f"end {part.number}")

    transfer(cut([b"abcdef"], 2), send)
    assert sent == ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"]


def test_nothing_is_sent_after_a_part_has_failed() -> None:
    sent: list[int] = []

    def send(part: Part) -> None:
        sent.append(part.number)
        raise ConnectionError(part.number)

    with pytest.raises(ConnectionError, match="1"):
        transfer(cut([b"abcdef"], 2), send)
    assert sent == [1]


def test_an_error_of_the_source_waits_for_the_part_in_flight() -> None:
    """Otherwise it could arrive after the transfer was discarded."""
    failed = threading.Event()
    sent: list[bytes] = []

    def chunks() -> Iterator[bytes]:
        yield b"aab"
        failed.set()
        raise ZeroDivisionError

    def send(part: Part) -> None:
        assert failed.wait(30)
        sent.append(part.data)

    with pytest.raises(ZeroDivisionError):
        transfer(cut(chunks(), 2), send)
    assert sent == [b"aa"]
