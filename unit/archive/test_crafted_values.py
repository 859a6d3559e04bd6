"""Values may contain images of pages, made by whoever writes to etcd: they cost no more than other values."""

import struct
import time
import tracemalloc
from collections.abc import Callable

import pytest

from unit.archive.databases import HEADER, IS_BUCKET, LEAF, Database, Leaf, revision, scanned

PAGE = 4096
LIMIT = 8.0
"""Seconds for 8 MB: many times what they take."""


def overlapping(number: int) -> bytes:
    """A page of buckets that all have the same value, in the pages that it claims to continue in."""
    count = 250
    data = HEADER.pack(number, LEAF, count, 15)
    for index in range(count):
        position = 16 * (count - index)
        data += struct.pack("<IIII", IS_BUCKET, position, 3, 15 * PAGE)
    data += b"key" + bytes(16) + HEADER.pack(0, LEAF, 3500, 0)
    return data.ljust(PAGE, b"\0")


def distinct(number: int) -> bytes:
    """A page of as many buckets as a page has, as far as bbolt would write them."""
    inline = Leaf([(struct.pack(">H", key), b"") for key in range(40)])
    values = [(name, bytes(16) + inline.page(16)) for name in (b"cluster", b"key", b"meta")]
    page = Leaf(values, is_root=True, number=number).page(PAGE)
    return page[:12] + struct.pack("<I", 15) + page[16:PAGE]


def far_away(number: int) -> bytes:
    """A page whose last key is at the end of all pages."""
    return (HEADER.pack(number, LEAF, 1, 2**32 - 1) + struct.pack("<IIII", 0, 2**32 - 1, 17, 0)).ljust(
        PAGE, b"\0"
    )


def many_children(number: int) -> bytes:
    return HEADER.pack(number, 1, 255, 0) + struct.pack("<IIQ", 0, 0, 7) * 255


IMAGES = pytest.mark.parametrize("image", [overlapping, distinct, far_away, many_children])


def with_images(image: Callable[[int], bytes], count: int) -> bytes:
    """A database with a value of so many images, before its root page."""
    value = Leaf([(revision(2), b"v" * count * PAGE)])
    file = bytearray(Database(buckets={b"key": value}, seed=3).file(has_hash=False))
    for number in range(value.number + 1, value.number + count):
        file[number * PAGE : (number + 1) * PAGE] = image(number)
    return bytes(file)


@IMAGES
def test_images_of_pages_in_a_value_cost_little(image: Callable[[int], bytes]) -> None:
    data = with_images(image, 2000)
    before = time.process_time()
    summary = scanned(data)
    assert (summary.revision, summary.keys) == (2, 1)
    assert time.process_time() - before < LIMIT


@IMAGES
def test_images_of_pages_need_little_memory(image: Callable[[int], bytes]) -> None:
    data = with_images(image, 500)
    tracemalloc.start()
    try:
        scanned(data, chunk=1 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
