"""What every store promises (etcd_operator/storage/protocol.py), shown on each of them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from etcd_operator.storage.errors import BucketMissing, InvalidURL, NameTaken, NotFound
from etcd_operator.storage.names import PARTIAL_PREFIX
from unit.storage.cases import KINDS, PART, SECRET, Case, Cases

LARGE = bytes(range(256)) * 3 * (PART // 256) + b"end"  # three parts and a rest


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, cases: Cases) -> Case:
    return cases.fresh(request.param)


def names(case: Case, prefix: str = "") -> list[str]:
    return sorted(stored.name for stored in case.store.list(prefix))


def content(case: Case, name: str, offset: int = 0) -> bytes:
    return b"".join(case.store.read(name, offset))


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART, len(LARGE)])
def test_an_object_is_read_back_as_it_was_put(case: Case, size: int) -> None:
    data = LARGE[:size]
    case.store.put("a/b.db", (data[at : at + 100_000] for at in range(0, size, 100_000)))
    assert content(case, "a/b.db") == data
    stored = case.store.stat("a/b.db")
    assert stored is not None
    assert (stored.name, stored.size) == ("a/b.db", size)
    assert case.unfinished() == []


def test_chunks_may_have_any_size(case: Case) -> None:
    case.store.put("a", [b"", b"x", LARGE, b"", b"y" * 10])
    assert content(case, "a") == b"x" + LARGE + b"y" * 10


def test_an_object_is_read_from_an_offset(case: Case) -> None:
    case.store.put("a", [LARGE])
    for offset in (1, PART, len(LARGE) - 1, len(LARGE), len(LARGE) + 5):
        assert content(case, "a", offset) == LARGE[offset:]


def test_a_read_can_be_given_up(case: Case) -> None:
    case.store.put("a", [LARGE])
    reading = case.store.read("a")
    assert LARGE.startswith(next(reading))
    reading.close()  # type: ignore[attr-defined]  # the stores' iterators are generators
    assert content(case, "a") == LARGE


def test_a_name_that_is_taken_is_not_replaced(case: Case) -> None:
    case.store.put("a", [b"first"])
    for data in (b"second", LARGE):
        with pytest.raises(NameTaken, match="a exists already"):
            case.store.put("a", [data])
    assert content(case, "a") == b"first"
    assert case.unfinished() == []


@pytest.mark.parametrize("data", [b"mine", LARGE])
def test_of_two_writers_of_one_name_one_wins(case: Case, data: bytes) -> None:
    def chunks() -> Iterator[bytes]:
        yield data
        case.store.put("a", [b"other"])

    with pytest.raises(NameTaken):
        case.store.put("a", chunks())
    assert content(case, "a") == b"other"
    assert case.unfinished() == []


class SourceError(Exception):
    pass


@pytest.mark.parametrize("size", [0, 1, PART, PART + 1, len(LARGE)])
@pytest.mark.parametrize("kind", [SourceError, KeyboardInterrupt, OSError])
def test_an_error_of_the_source_leaves_nothing(case: Case, size: int, kind: type[BaseException]) -> None:
    def chunks() -> Iterator[bytes]:
        yield LARGE[:size]
        raise kind("source")

    with pytest.raises(kind, match="source"):
        case.store.put("a/b", chunks())
    assert names(case) == []
    assert case.store.stat("a/b") is None
    assert case.unfinished() == []


def test_an_object_is_not_visible_before_it_is_whole(case: Case) -> None:
    def chunks() -> Iterator[bytes]:
        yield LARGE
        assert case.store.stat("a") is None
        assert names(case) == []

    case.store.put("a", chunks())
    assert names(case) == ["a"]


def test_a_list_has_what_is_below_its_prefix(case: Case) -> None:
    for name in ("a", "a-b/c", "a.b", "b/a/c", "ab"):
        case.store.put(name, [b"x"])
    if case.store.stat("a") is not None and case.server is not None:
        case.store.put("a/c", [b"xy"])
        case.store.put("a/d/e", [b"x"])
        assert names(case, "a") == ["a/c", "a/d/e"]
        assert names(case, "a/") == ["a/c", "a/d/e"]
    assert names(case, "a-b") == ["a-b/c"]
    assert names(case, "b") == ["b/a/c"]
    assert names(case, "none") == []
    assert {"a", "a-b/c", "a.b", "ab", "b/a/c"} <= set(names(case))


def test_a_list_tells_size_and_time(case: Case) -> None:
    case.store.put("a/b", [b"four"])
    (stored,) = case.store.list("a")
    assert stored.size == 4
    assert stored.modified.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - stored.modified) < timedelta(minutes=5)
    assert stored == case.store.stat("a/b")


def test_names_with_unusual_characters_are_kept(case: Case) -> None:
    name = "a b/c+d%2F=é&?#/3.6.1_00000000000000ff_etcd.backup"
    case.store.put(name, [LARGE])
    assert names(case) == [name]
    assert content(case, name) == LARGE
    case.store.delete(name)
    assert names(case) == []


def test_what_does_not_exist(case: Case) -> None:
    assert case.store.stat("a") is None
    with pytest.raises(NotFound, match=r"a does not exist\. List"):
        content(case, "a")
    case.store.delete("a")


def test_a_deleted_object_is_gone(case: Case) -> None:
    case.store.put("a/b", [b"x"])
    case.store.delete("a/b")
    assert case.store.stat("a/b") is None
    assert names(case) == []
    case.store.put("a/b", [b"y"])
    assert content(case, "a/b") == b"y"


@pytest.mark.parametrize("size", [1, len(LARGE)])
def test_a_bucket_that_does_not_exist_is_reported(case: Case, size: int) -> None:
    store = case.open("missing", 20.0)
    operations = (
        lambda: store.put("a", [LARGE[:size]]),
        lambda: list(store.read("a")),
        lambda: list(store.list("a")),
        lambda: store.stat("a"),
    )
    for operation in operations:
        with pytest.raises(BucketMissing, match=r"does not exist\. Create it, or correct"):
            operation()


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "../a", "a/./b", "a\nb", f"a/{PARTIAL_PREFIX}1"])
def test_names_that_not_every_store_can_have_are_refused(case: Case, name: str) -> None:
    operations = (
        lambda: case.store.put(name, [b""]),
        lambda: content(case, name),
        lambda: case.store.stat(name),
        lambda: case.store.delete(name),
    )
    for operation in operations:
        with pytest.raises(InvalidURL):
            operation()


def test_no_store_shows_a_secret(case: Case) -> None:
    store = case.store
    list(store.list(""))
    assert SECRET not in repr(store)
    assert SECRET not in str(store)
