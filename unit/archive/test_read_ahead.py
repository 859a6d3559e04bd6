"""A stream that is read ahead: the same blocks, the same errors, and no thread that remains."""

import threading
from collections.abc import Iterator

import pytest

from etcd_operator.archive.streams import read_ahead
from etcd_operator.errors import Unavailable


def _readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("read-ahead")]


def test_all_blocks_come_in_their_order() -> None:
    blocks = [b"%d" % number for number in range(100)]
    assert list(read_ahead(iter(blocks))) == blocks
    assert list(read_ahead(iter([]))) == []


def test_the_next_blocks_are_read_while_one_is_used() -> None:
    has_read_second = threading.Event()

    def source() -> Iterator[bytes]:
        yield b"first"
        has_read_second.set()
        yield b"second"

    blocks = read_ahead(source())
    assert next(blocks) == b"first"
    assert has_read_second.wait(10)


def test_only_a_few_blocks_are_read_ahead() -> None:
    read: list[int] = []

    def source() -> Iterator[bytes]:
        for number in range(100):
            read.append(number)
            yield b"block"

    blocks = read_ahead(source())
    next(blocks)
    assert len(read) <= 6


def test_an_error_comes_behind_the_blocks_before_it() -> None:
    def source() -> Iterator[bytes]:
        yield b"first"
        raise Unavailable("gone")

    blocks = read_ahead(source())
    assert next(blocks) == b"first"
    with pytest.raises(Unavailable, match="gone"):
        next(blocks)


def test_who_stops_early_waits_for_no_source_and_leaves_no_thread() -> None:
    go_on = threading.Event()

    def source() -> Iterator[bytes]:
        yield b"first"
        go_on.wait(60)

    blocks = read_ahead(source())
    next(blocks)
    blocks.close()
    readers = _readers()
    assert readers
    go_on.set()
    for reader in readers:
        reader.join(60)
    assert not _readers()
