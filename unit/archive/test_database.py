"""The scan of a snapshot: what it finds in every layout of the file."""

import hashlib
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcd_operator.archive.database import DatabaseScan
from unit.archive.databases import (
    HEADER,
    LEAF,
    Branch,
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


# What is found


def test_a_new_database_has_no_keys() -> None:
    assert found(Database(buckets={b"key": (), b"meta": ()})) == (0, 0)


def test_the_keys_may_be_inline() -> None:
    assert found(Database(buckets={b"key": entries(7), b"meta": ()})) == (8, 7)


def test_an_emptied_bucket_may_have_an_empty_page() -> None:
    assert found(Database(buckets={b"key": Leaf()})) == (0, 0)


@pytest.mark.parametrize("count", [1, 30, 31, 500, 5000])
def test_keys_are_counted_in_trees_of_any_height(count: int) -> None:
    assert found(Database(buckets={b"key": tree(entries(count), per_leaf=30)})) == (count + 1, count)


@pytest.mark.parametrize("size", [4000, 5000, 8_000, 70_000, 300_000])
@pytest.mark.parametrize("chunk", [4096, 32768, 33333])
def test_large_values_continue_in_other_pages(size: int, chunk: int) -> None:
    """The last key of the page is then in one of those, and may begin in one and end in the next."""
    values = tree(entries(8, size=size), per_leaf=2)
    assert found(Database(buckets={b"key": values}), chunk=chunk) == (9, 8)


@pytest.mark.parametrize("before", range(40 * PAGE - 16 - 32 - 17 - 20, 40 * PAGE - 16 - 32 - 17 + 1))
def test_a_key_may_lie_across_two_pages(before: int) -> None:
    """Which arrive one after the other: more than the scan needs before it begins."""
    values = Leaf([(revision(2), b"v" * before), (revision(2**62 + 3), b"v")])
    assert found(Database(buckets={b"key": values}), chunk=PAGE) == (2**62 + 3, 2)


def test_the_root_bucket_may_have_several_pages() -> None:
    names = [b"alarm", b"auth", b"lease", b"members", b"zzz"]
    others: dict[bytes, Node | Sequence[tuple[bytes, bytes]]] = {name: [(b"a", b"x" * 900)] for name in names}
    keys = {b"key": tree(entries(100), per_leaf=10)}
    facts = {b"cluster": [(b"clusterVersion", b"3.7.0")], b"meta": [(b"finishedCompactRev", revision(9))]}
    summary = scanned(Database(buckets=others | keys | facts, roots=2).file())
    assert (summary.revision, summary.keys) == (101, 100)
    assert (summary.compacted, summary.cluster_version) == (9, "3.7.0")


def test_a_page_of_the_root_bucket_may_continue() -> None:
    """bbolt does not split a page of four elements, and inline buckets may have 1 KiB each."""
    others = {name: [(b"a", b"x" * 990)] for name in (b"a", b"b", b"c")}
    keys = entries(17)
    assert found(Database(buckets=others | {b"key": keys}), chunk=PAGE) == (18, 17)


@pytest.mark.parametrize(
    ("last_entry", "compacted", "etcd"), [(6, 0, 6), (6, 4, 6), (6, 9, 9), (0, 0, 1), (0, 3, 3)]
)
def test_a_compaction_may_have_removed_the_last_entry(last_entry: int, compacted: int, etcd: int) -> None:
    summary = scanned(Database(buckets={b"key": entries(7)}).file())
    assert replace(summary, revision=last_entry, compacted=compacted).etcd_revision == etcd


# Free pages


def test_free_pages_do_not_count() -> None:
    old_keys = tree(entries(5000, first=10_000), per_leaf=30)
    old_root = Leaf([(b"key", bucket(0, entries(9, first=20_000)))], is_root=True)
    stale = [old_root, *nodes(old_keys)]
    assert found(Database(buckets={b"key": tree(entries(50), per_leaf=10)}, stale=stale)) == (51, 50)


@pytest.mark.parametrize("seed", range(10))
def test_a_free_page_does_not_hide_those_that_it_once_continued_in(seed: int) -> None:
    stale = [Leaf([(revision(9), b"v" * 100_000)]) for _ in range(10)]
    database = Database(buckets={b"key": tree(entries(50), per_leaf=10)}, stale=stale, seed=seed)
    assert found(database, chunk=PAGE) == (51, 50)


def test_a_value_may_look_like_pages() -> None:
    """Each page that continues the value claims to be a leaf page, of revisions or of buckets."""
    value = Leaf([(revision(2), b"v" * 10 * PAGE)])
    file = bytearray(Database(buckets={b"key": value}).file(has_hash=False))
    fakes: list[Node] = [
        Leaf(entries(20, first=500)),
        Leaf([(b"key", bucket(0, entries(9)))], is_root=True),
        Branch([]),
    ]
    for number in range(value.number + 1, value.number + 10):
        fake = fakes[number % len(fakes)]
        fake.number = number
        file[number * PAGE : (number + 1) * PAGE] = fake.page(PAGE)
    summary = scanned(bytes(file))
    assert (summary.revision, summary.keys) == (2, 1)


@st.composite
def databases(draw: st.DrawFn) -> tuple[Database, tuple[int, int]]:
    """Any layout, with its last revision and count of entries."""
    mains = draw(st.lists(st.integers(1, 2**62), unique=True, max_size=60).map(sorted))
    sizes = st.sampled_from([0, 10, 700, 3000, 9000])
    values = [(revision(main, is_deletion=draw(st.booleans())), b"v" * draw(sizes)) for main in mains]
    keys = tree(values, per_leaf=draw(st.integers(1, 4)), per_branch=draw(st.integers(2, 5)))
    names = draw(st.sets(st.sampled_from([b"alarm", b"auth", b"lease", b"meta", b"zzz"])))
    stale = list(nodes(tree(entries(draw(st.integers(0, 30)), size=draw(sizes)), per_leaf=3)))
    database = Database(
        buckets={b"key": keys} | {name: [(b"a", b"b")] for name in names},
        stale=stale,
        page_size=draw(st.sampled_from([1024, 4096, 16384, 65536])),
        roots=draw(st.integers(1, 4)),
        seed=draw(st.integers(0, 1000)),
    )
    return database, (mains[-1] if mains else 0, len(mains))


@given(databases(), st.sampled_from([999, 4096, 32768, 1 << 20]))
@settings(max_examples=100)
def test_every_layout_is_read(made: tuple[Database, tuple[int, int]], chunk: int) -> None:
    database, expected = made
    assert found(database, chunk=chunk) == expected


# Size and hash


def test_size_and_hash_are_those_of_all_bytes() -> None:
    data = Database(buckets={b"key": entries(7)}).file()
    summary = scanned(data)
    assert summary.has_hash
    assert (summary.size, summary.sha256) == (len(data), hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("chunk", [1, 31, 32, 33, 4096 + 7, 100_000])
def test_the_sizes_of_chunks_do_not_matter(chunk: int) -> None:
    data = Database(buckets={b"key": entries(7)}).file()
    assert scanned(data, chunk=chunk) == scanned(data)


def test_a_copy_of_a_data_folder_has_no_hash() -> None:
    data = Database(buckets={b"key": entries(7)}).file(has_hash=False)
    summary = scanned(data + bytes(PAGE))  # the file may be longer than the database
    assert not summary.has_hash
    assert summary.sha256 == hashlib.sha256(data + bytes(PAGE)).hexdigest()


# Meta pages


@pytest.mark.parametrize("size", [1024, 4096, 65536])
@pytest.mark.parametrize("broken", [0, 1])
def test_one_valid_meta_page_is_enough(size: int, broken: int) -> None:
    data = bytearray(Database(buckets={b"key": entries(7)}, page_size=size).file(has_hash=False))
    data[broken * size + 32] ^= 1  # the root page
    assert scanned(bytes(data)).keys == 7


def test_the_meta_page_of_the_last_transaction_counts() -> None:
    keys = tree(entries(50), per_leaf=10)
    data = bytearray(Database(buckets={b"key": keys}).file(has_hash=False))
    count = len(data) // PAGE
    late = Leaf([(b"key", bucket(0, entries(3, first=100)))], is_root=True, number=count)
    data += late.page(PAGE)
    data[PAGE : PAGE + 80] = meta(PAGE, count, count + 1, 9, 1)
    assert scanned(bytes(data)).revision == 102


# Memory


@pytest.mark.parametrize("is_root", [True, False])
def test_a_free_page_that_claims_to_continue_without_end_costs_nothing(is_root: bool) -> None:
    """What it once was is long overwritten; the bytes that follow are not collected for it."""
    free = Leaf([(b"key", bucket(0, ()))] if is_root else [(revision(7), b"v")], is_root=is_root, number=2)
    page = HEADER.pack(2, LEAF, 1, 2**32 - 1) + free.page(PAGE)[16:]
    scan = DatabaseScan()
    scan.feed(meta(PAGE, 3, 10_000, 1, 0).ljust(2 * PAGE, b"\0") + page)
    block = bytes(1 << 20)
    tracemalloc.start()
    for _ in range(16):
        scan.feed(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(block)


def test_the_memory_grows_by_little_for_each_page() -> None:
    """16 MiB of leaf pages; what is kept of them must be a few bytes each."""
    database = Database(buckets={b"key": tree(entries(4000, size=3000), per_leaf=1, per_branch=100)})
    data = database.file()
    tracemalloc.start()
    scan = DatabaseScan()
    for at in range(0, len(data), 32768):
        scan.feed(data[at : at + 32768])
    kept, _ = tracemalloc.get_traced_memory()
    assert scan.finish().keys == 4000
    tracemalloc.stop()
    assert kept < 30 * len(data) // PAGE + 20_000
