"""What every store promises (etcd_operator/storage/protocol.py), shown on each of them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from etcd_operator.storage.errors import BucketMissing, InvalidURL, NameTaken, ObjectMissing
from etcd_operator.storage.protocol import PARTIAL_PREFIX
from unit.storage.cases import KINDS, SECRET, Case, Cases
from unit.storage.real import REAL

SIZES = [(0, 0), (0, 1), (1, -1), (1, 0), (1, 1), (2, 0), (3, 3)]  # parts, and bytes more


@pytest.fixture(params=[*KINDS, *(pytest.param(kind, marks=pytest.mark.stores) for kind in REAL)])
def case(request: pytest.FixtureRequest, cases: Cases) -> Case:
    return cases.fresh(request.param)


def names(case: Case, prefix: str = "") -> list[str]:
    return sorted(stored.name for stored in case.store.list(prefix))


def content(case: Case, name: str, offset: int = 0) -> bytes:
    return b"".join(case.store.read(name, offset))


@pytest.mark.parametrize(("parts", "more"), SIZES)
def test_an_object_is_read_back_as_it_was_put(case: Case, parts: int, more: int) -> None:
    size = parts * case.part + more
    data = case.large[:size]
    case.store.put("a/b.db", (data[at : at + 100_000] for at in range(0, size, 100_000)))
    assert content(case, "a/b.db") == data
    stored = case.store.stat("a/b.db")
    assert stored is not None
    assert (stored.name, stored.size) == ("a/b.db", size)
    assert case.unfinished() == []


def test_chunks_may_have_any_size(case: Case) -> None:
    case.store.put("a", [b"", b"x", case.large, b"", b"y" * 10])
    assert content(case, "a") == b"x" + case.large + b"y" * 10


def test_an_object_is_read_from_an_offset(case: Case) -> None:
    case.store.put("a", [case.large])
    for offset in (1, case.part, len(case.large) - 1, len(case.large), len(case.large) + 5):
        assert content(case, "a", offset) == case.large[offset:]


def test_a_read_can_be_given_up(case: Case) -> None:
    case.store.put("a", [case.large])
    reading = case.store.read("a")
    assert case.large.startswith(next(reading))
    reading.close()  # type: ignore[attr-defined]  # the stores' iterators are generators
    assert content(case, "a") == case.large


def test_a_name_that_is_taken_is_not_replaced(case: Case) -> None:
    case.store.put("a", [b"first"])
    for data in (b"second", case.large):
        with pytest.raises(NameTaken, match="a exists already"):
            case.store.put("a", [data])
    assert content(case, "a") == b"first"
    assert case.unfinished() == []


@pytest.mark.parametrize("size", [4, None])
def test_of_two_writers_of_one_name_one_wins(case: Case, size: int | None) -> None:
    def chunks() -> Iterator[bytes]:
        yield case.large[:size]
        case.store.put("a", [b"other"])

    with pytest.raises(NameTaken):
        case.store.put("a", chunks())
    assert content(case, "a") == b"other"
    assert case.unfinished() == []


class SourceError(Exception):
    pass


@pytest.mark.parametrize(
    ("parts", "more", "kind"),
    [(0, 0, SourceError), (1, 0, SourceError), (1, 1, KeyboardInterrupt), (3, 3, OSError)],
)
def test_an_error_of_the_source_leaves_nothing(
    case: Case, parts: int, more: int, kind: type[BaseException]
) -> None:
    def chunks() -> Iterator[bytes]:
        yield case.large[: parts * case.part + more]
        raise kind("source")

    with pytest.raises(kind, match="source"):
        case.store.put("a/b", chunks())
    assert names(case) == []
    assert case.store.stat("a/b") is None
    assert case.unfinished() == []


def test_an_object_is_not_visible_before_it_is_whole(case: Case) -> None:
    def chunks() -> Iterator[bytes]:
        yield case.large
        assert case.store.stat("a") is None
        assert names(case) == []

    case.store.put("a", chunks())
    assert names(case) == ["a"]


def test_a_list_has_what_is_below_its_prefix(case: Case) -> None:
    for name in ("a", "a-b/c", "a.b", "b/a/c", "ab"):
        case.store.put(name, [b"x"])
    if case.is_flat:
        case.store.put("a/c", [b"xy"])
        case.store.put("a/d/e", [b"x"])
        assert names(case, "a") == ["a/c", "a/d/e"]
        assert names(case, "a/") == ["a/c", "a/d/e"]
    assert names(case, "a-b") == ["a-b/c"]
    assert names(case, "b") == ["b/a/c"]
    assert names(case, "none") == []
    assert {"a", "a-b/c", "a.b", "ab", "b/a/c"} <= set(names(case))


def test_a_list_has_size_and_time(case: Case) -> None:
    case.store.put("a/b", [b"four"])
    (stored,) = case.store.list("a")
    assert stored.size == 4
    assert stored.modified.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - stored.modified) < timedelta(minutes=5)
    assert stored == case.store.stat("a/b")


def test_names_with_unusual_characters_are_kept(case: Case) -> None:
    name = "a b/c+d%2F=é&?#/3.6.1_00000000000000ff_etcd.backup"
    case.store.put(name, [case.large])
    assert names(case) == [name]
    assert content(case, name) == case.large
    case.store.delete(name)
    assert names(case) == []


def test_what_does_not_exist(case: Case) -> None:
    assert case.store.stat("a") is None
    with pytest.raises(ObjectMissing, match=r"a does not exist\. List"):
        content(case, "a")
    case.store.delete("a")


def test_a_deleted_object_is_gone(case: Case) -> None:
    case.store.put("a/b", [b"x"])
    case.store.delete("a/b")
    assert case.store.stat("a/b") is None
    assert names(case) == []
    case.store.put("a/b", [b"y"])
    assert content(case, "a/b") == b"y"


@pytest.mark.parametrize("size", [1, None])
def test_a_bucket_that_does_not_exist_is_reported(case: Case, size: int | None) -> None:
    store = case.open("missing", 20.0)
    operations = (
        lambda: store.put("a", [case.large[:size]]),
        lambda: list(store.read("a")),
        lambda: list(store.list("a")),
        lambda: store.stat("a"),
    )
    for operation in operations:
        with pytest.raises(BucketMissing, match=r"does not exist\. Create it, or correct"):
            operation()


BAD = ["", "/a", "a/", "a//b", "../a", "a/./b", "a\nb", "a\0b", "x" * 256, f"a/{PARTIAL_PREFIX}1"]


@pytest.mark.parametrize("name", BAD)
def test_names_that_not_every_store_can_have_are_refused(case: Case, name: str) -> None:
    operations = (
        lambda: case.store.put(name, [b""]),
        lambda: content(case, name),
        lambda: case.store.stat(name),
        lambda: case.store.delete(name),
    )
    for operation in operations:
        with pytest.raises(InvalidURL, match="Choose another name"):
            operation()


def test_no_store_shows_a_secret(case: Case) -> None:
    store = case.store
    list(store.list(""))
    assert SECRET not in repr(store)
    assert SECRET not in str(store)
