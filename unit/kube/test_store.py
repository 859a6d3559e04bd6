"""The cache: what it accepts, what it reports, in which order."""

import threading
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.keys import Key
from etcd_operator.kube.decode import Unreadable
from etcd_operator.kube.store import Store
from unit.kube.things import Thing, in_thread, thing

A = Key("default", "a")
Reported = list[tuple[Thing | None, Thing | None]]


def by_cluster(value: Thing) -> Iterable[str]:
    return (value.metadata.labels[name] for name in ("cluster", "other") if name in value.metadata.labels)


def store_and_reports() -> tuple[Store[Thing], Reported]:
    reported: Reported = []
    return Store(
        indexes={"cluster": by_cluster}, on_change=lambda old, new: reported.append((old, new))
    ), reported


def test_additions_changes_and_deletions_are_reported_as_old_and_new() -> None:
    store, reported = store_and_reports()
    one, two = thing("a", 1), thing("a", 2)
    store.put(one)
    store.put(two)
    assert store.get(A) == two
    store.remove(A, "3")
    assert reported == [(None, one), (one, two), (two, None)]
    assert store.get(A) is None
    assert store.values() == ()


def test_a_change_is_stored_before_it_is_reported() -> None:
    seen: list[Thing | None] = []
    store: Store[Thing] = Store(on_change=lambda old, new: seen.append(store.get(A)))
    store.put(thing("a", 1))
    store.replace([thing("a", 2)], "2")
    store.remove(A, "3")
    assert seen == [thing("a", 1), thing("a", 2), None]


@pytest.mark.parametrize("uid", ["uid-a", "another"])
def test_an_older_version_never_overwrites_nor_removes_a_newer_one(uid: str) -> None:
    store, reported = store_and_reports()
    store.put(thing("a", 10))
    store.put(thing("a", 9, uid))
    store.remove(A, "9")
    assert store.get(A) == thing("a", 10)
    assert len(reported) == 1
    assert store.version == "10"


def test_versions_are_compared_as_numbers_and_taken_when_they_are_none() -> None:
    store, _ = store_and_reports()
    store.put(thing("a", 9))
    store.put(thing("a", 10))
    assert store.get(A) == thing("a", 10)
    store.put(thing("a", "opaque"))
    assert store.get(A) == thing("a", "opaque")
    store.put(thing("a", 3))
    assert store.get(A) == thing("a", 3)


def test_what_is_known_already_is_not_reported_again() -> None:
    store, reported = store_and_reports()
    store.put(thing("a", 1))
    store.put(thing("a", 1))
    store.replace([thing("a", 1)], "5")
    assert len(reported) == 1


def test_the_same_name_with_another_uid_is_a_deletion_and_an_addition() -> None:
    store, reported = store_and_reports()
    first, second, third = thing("a", 1, "u1"), thing("a", 2, "u2"), thing("a", 3, "u3")
    store.put(first)
    store.put(second)
    store.replace([third], "3")
    assert reported[1:] == [(first, None), (None, second), (second, None), (None, third)]


def test_replace_reports_the_difference_with_deletions() -> None:
    store, reported = store_and_reports()
    for value in (thing("a", 1), thing("b", 2), thing("c", 3)):
        store.put(value)
    reported.clear()
    store.replace([thing("b", 2), thing("c", 5), thing("d", 6)], "7")
    assert reported == [
        (thing("a", 1), None),
        (thing("c", 3), thing("c", 5)),
        (None, thing("d", 6)),
    ]
    assert store.version == "7"


def odd(name: str) -> Unreadable:
    return Unreadable(key=Key("default", name), labels={}, error="no")


def test_replace_keeps_what_exists_but_could_not_be_read() -> None:
    store, reported = store_and_reports()
    store.put(thing("a", 1))
    store.replace([], "5", unreadable=[odd("never-seen"), odd("a")])
    assert store.values() == (thing("a", 1),)
    assert store.unreadable == (odd("a"), odd("never-seen"))
    assert reported[1:] == [(thing("a", 1), thing("a", 1))]
    store.replace([], "6", unreadable=[odd("a")])
    assert list(store.unreadable) == [odd("a")]
    assert len(reported) == 2


def test_what_turns_unreadable_is_reported_and_remembered_until_it_is_read_again_or_gone() -> None:
    store, reported = store_and_reports()
    store.put(thing("a", 1))
    for version, name in (("2", "a"), ("3", "b"), ("4", "c")):
        store.turned_unreadable(odd(name), version)
    assert (store.version, store.values()) == ("4", (thing("a", 1),))
    assert reported[1:] == [(thing("a", 1), thing("a", 1))]
    store.put(thing("a", 5))
    store.remove(Key("default", "b"), "6")
    assert store.unreadable == (odd("c"),)
    store.replace([], "7")
    assert not store.unreadable


def test_an_object_that_was_never_read_is_reported_when_it_exists_and_when_it_is_gone() -> None:
    changes: Reported = []
    keys: list[str] = []
    store = Store[Thing](
        on_change=lambda old, new: changes.append((old, new)), on_unreadable=lambda key: keys.append(key.name)
    )
    store.put(thing("a", 1))
    changes.clear()
    store.replace([], "5", unreadable=[odd("c"), odd("b"), odd("a")])
    assert (keys, changes) == (["b", "c"], [(thing("a", 1), thing("a", 1))])
    store.turned_unreadable(odd("d"), "6")
    store.turned_unreadable(odd("a"), "7")
    assert keys == ["b", "c", "d"]
    store.replace([thing("c", 8)], "9", unreadable=[odd("d"), odd("a")])
    assert (keys, changes[-1]) == (["b", "c", "d", "b"], (None, thing("c", 8)))
    store.remove(Key("default", "d"), "10")
    store.remove(A, "11")
    store.remove(Key("default", "never-known"), "12")
    assert (keys, changes[-1]) == (["b", "c", "d", "b", "d"], (thing("a", 1), None))


def test_what_is_read_again_is_reported_although_it_has_not_changed() -> None:
    """The definition had another schema meanwhile: what is stored, and its version, are the same."""
    store, reported = store_and_reports()
    store.put(thing("a", 1))
    store.replace([], "5", unreadable=[odd("a")])
    store.replace([thing("a", 1)], "6")
    assert not store.unreadable
    assert reported[1:] == [(thing("a", 1), thing("a", 1))] * 2
    store.replace([thing("a", 1)], "7")
    assert len(reported) == 3


def test_what_is_known_of_an_unreadable_object_is_found_by_its_key() -> None:
    store, _ = store_and_reports()
    store.put(thing("a", 1))
    assert store.unreadable_at(A) is None
    store.turned_unreadable(odd("a"), "2")
    assert store.unreadable_at(A) == odd("a")
    store.put(thing("a", 3))
    assert store.unreadable_at(A) is None


def test_replace_is_the_truth_even_when_versions_went_back() -> None:
    store, _ = store_and_reports()
    store.put(thing("a", 100))
    store.replace([thing("a", 7)], "8")
    assert store.get(A) == thing("a", 7)
    assert store.version == "8"


def test_an_index_follows_additions_changes_and_deletions() -> None:
    store, _ = store_and_reports()
    store.put(thing("b", 1, cluster="x", other="y"))
    store.put(thing("a", 2, cluster="x"))
    store.put(thing("c", 3))
    assert store.by_index("cluster", "x") == (
        thing("a", 2, cluster="x"),
        thing("b", 1, cluster="x", other="y"),
    )
    assert [value.metadata.name for value in store.by_index("cluster", "y")] == ["b"]
    store.put(thing("a", 4, cluster="z"))
    store.remove(Key("default", "b"), "5")
    assert store.by_index("cluster", "x") == ()
    assert store.by_index("cluster", "z") == (thing("a", 4, cluster="z"),)
    assert store.by_index("cluster", "unknown") == ()


def test_the_store_has_reached_what_any_event_bookmark_or_list_shows() -> None:
    store, _ = store_and_reports()
    assert not store.reached(1)
    store.replace([], "5")
    assert store.reached(5)
    assert not store.reached(6)
    store.put(thing("a", 6))
    assert store.reached(6)
    store.remove(A, "8")
    assert store.reached(8)
    store.remove(A, "9")
    assert store.reached(9)
    store.advance("20")
    assert store.reached(20)
    store.advance("19")
    assert store.version == "20"


def test_a_reader_may_ask_while_changes_are_reported() -> None:
    answers: list[int] = []

    def ask(_old: Thing | None, _new: Thing | None) -> None:
        thread = in_thread(lambda: answers.append(len(store.values())))
        thread.join(30)

    store: Store[Thing] = Store(on_change=ask)
    store.put(thing("a", 1))
    assert answers == [1]


def test_readers_in_other_threads_always_see_index_and_values_agree() -> None:
    store, _ = store_and_reports()
    done = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not done.is_set():
            wrong.extend(
                value for value in store.by_index("cluster", "x") if "cluster" not in value.metadata.labels
            )

    readers = [in_thread(read) for _ in range(3)]
    for version in range(1, 2000):
        name = f"p{version % 5}"
        store.put(thing(name, version, cluster="x") if version % 3 else thing(name, version))
    done.set()
    for reader in readers:
        reader.join(30)
    assert wrong == []


names = st.sampled_from("abc")
labels = st.sampled_from(["x", "y", ""])


@given(st.lists(st.tuples(st.sampled_from(["put", "remove", "replace"]), names, labels, st.integers(1, 2))))
def test_what_is_reported_always_adds_up_to_what_is_stored(
    steps: list[tuple[str, str, str, int]],
) -> None:
    store, reported = store_and_reports()
    for version, (step, name, label, uid) in enumerate(steps, 1):
        value = thing(name, version, f"{name}{uid}", **({"cluster": label} if label else {}))
        if step == "put":
            store.put(value)
        elif step == "remove":
            store.remove(Key("default", name), str(version))
        else:
            store.replace([value], str(version))
    mirror: dict[str, Thing] = {}
    for old, new in reported:
        name = (old or new).metadata.name  # type: ignore[union-attr]
        assert mirror.pop(name, None) == old
        if new is not None:
            mirror[name] = new
    assert tuple(mirror[name] for name in sorted(mirror)) == store.values()
    for label in "xy":
        wanted = tuple(value for value in store.values() if value.metadata.labels.get("cluster") == label)
        assert store.by_index("cluster", label) == wanted
