"""Damaged databases are refused, and nothing worse happens."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcd_operator.archive.errors import Damaged
from unit.archive.databases import (
    HEADER,
    LEAF,
    Database,
    Leaf,
    Node,
    bucket,
    entries,
    found,
    meta,
    nodes,
    revision,
    scanned,
    tree,
)

PAGE = 4096


@pytest.mark.parametrize("data", [b"", b"\0" * 31, b"\0" * 8192, b"\0" * (1 << 19), b"\x93etcdbk\n" * 9000])
def test_what_is_no_database_is_refused(data: bytes) -> None:
    with pytest.raises(Damaged, match="does not begin with a valid meta page"):
        scanned(data)


def test_a_page_size_that_bbolt_never_uses_is_refused() -> None:
    with pytest.raises(Damaged, match="does not begin with a valid meta page"):
        scanned(meta(5000, 2, 3, 1, 0).ljust(20_000, b"\0"))


def test_a_database_of_something_else_is_refused() -> None:
    with pytest.raises(Damaged, match="has no bucket `key`"):
        scanned(Database(buckets={b"keys": entries(7)}).file())


def test_bytes_that_do_not_match_the_hash_are_refused() -> None:
    data = bytearray(Database(buckets={b"key": tree(entries(50), per_leaf=10)}).file())
    for position in (2 * PAGE + 3000, len(data) - 1):
        changed = data.copy()
        changed[position] ^= 1
        with pytest.raises(Damaged, match="does not match the hash"):
            scanned(bytes(changed))


@pytest.mark.parametrize("lost", [1, 2])
def test_a_truncated_database_is_refused(lost: int) -> None:
    data = Database(buckets={b"key": tree(entries(50), per_leaf=10)}).file(has_hash=False)
    with pytest.raises(Damaged, match="is truncated"):
        scanned(data[: -lost * PAGE])


def some_keys() -> tuple[bytearray, list[Node]]:
    """A database, and the nodes of its tree of keys."""
    keys = tree(entries(50), per_leaf=10)
    return bytearray(Database(buckets={b"key": keys}).file(has_hash=False)), list(nodes(keys))


@pytest.mark.parametrize("keys", [[(b"x" * 17, b"v")], [(b"short", b"v")], [(b"k", bucket(0, ()))]])
def test_keys_that_are_no_revisions_are_refused(keys: list[tuple[bytes, bytes]]) -> None:
    values = Leaf(keys, is_root=keys[0][0] == b"k")
    with pytest.raises(Damaged, match="is not what it should be"):
        found(Database(buckets={b"key": values}))


def test_a_last_key_outside_of_its_page_is_refused() -> None:
    values = Leaf([(revision(2), b"v")])
    data = bytearray(Database(buckets={b"key": values}, stale=[Leaf()] * 50).file(has_hash=False))
    last = values.number * PAGE + 16
    data[last + 4 : last + 8] = struct.pack("<I", PAGE - 16)  # counted from its element
    data[(values.number + 1) * PAGE : (values.number + 1) * PAGE + 17] = revision(7)
    with pytest.raises(Damaged, match=f"page {values.number} "):
        scanned(bytes(data))


def test_a_branch_of_more_children_than_fit_is_refused() -> None:
    data, pages = some_keys()
    root = pages[0].number
    data[root * PAGE : root * PAGE + 16] = HEADER.pack(root, 1, 60_000, 0)
    with pytest.raises(Damaged, match=f"page {root} "):
        scanned(bytes(data))


@pytest.mark.parametrize("flags", [0, 1, 4, 16])
def test_a_reachable_page_of_another_kind_is_refused(flags: int) -> None:
    data, pages = some_keys()
    number = next(node.number for node in pages if isinstance(node, Leaf))
    data[number * PAGE : number * PAGE + 16] = HEADER.pack(number, flags, 10, 0)
    with pytest.raises(Damaged):
        scanned(bytes(data))


def test_a_reachable_page_of_another_number_is_refused() -> None:
    data, pages = some_keys()
    first, second = [node.number for node in pages if isinstance(node, Leaf)][:2]
    data[first * PAGE : (first + 1) * PAGE] = data[second * PAGE : (second + 1) * PAGE]
    with pytest.raises(Damaged, match=f"page {first} "):
        scanned(bytes(data))


@pytest.mark.parametrize("child", [None, 10_000, 2**40], ids=["itself", "beyond the end", "beyond all"])
def test_a_child_that_does_not_exist_or_is_used_twice_is_refused(child: int | None) -> None:
    data, pages = some_keys()
    root = pages[0].number
    data[root * PAGE + 16 + 8 : root * PAGE + 16 + 16] = struct.pack("<Q", root if child is None else child)
    with pytest.raises(Damaged):
        scanned(bytes(data))


@given(st.data())
@settings(max_examples=300)
def test_damage_leads_to_no_other_error(data: st.DataObject) -> None:
    """Without a hash, some damage goes unnoticed; but the scan ends, with a summary or with `Damaged`."""
    database = Database(buckets={b"key": tree(entries(60), per_leaf=10), b"meta": [(b"a", b"b")]})
    file = bytearray(database.file(has_hash=False))
    for _ in range(data.draw(st.integers(1, 20))):
        page = data.draw(st.integers(0, len(file) // PAGE - 1))
        position = data.draw(st.integers(0, 300))
        file[page * PAGE + position] = data.draw(st.integers(0, 255))
    try:
        summary = scanned(bytes(file))
    except Damaged:
        return
    assert summary.size == len(file)


def test_an_invalid_page_may_be_of_a_kind_that_never_existed() -> None:
    header = HEADER.pack(2, LEAF | 1, 1, 0)
    data = meta(PAGE, 2, 3, 1, 0).ljust(2 * PAGE, b"\0") + header.ljust(PAGE, b"\0")
    with pytest.raises(Damaged, match="page 2 "):
        scanned(data)
