"""Old backups are removed from every store: what is removed, what is not, and from where it goes on."""

from datetime import UTC, datetime

import pytest

from etcd_operator.archive.catalog import State
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import SUFFIX, manifest_name
from etcd_operator.archive.prune import carry_out, find
from etcd_operator.archive.retention import Policy
from etcd_operator.storage.errors import AccessDenied, BucketMissing, StoreError, Unreachable
from etcd_operator.storage.protocol import Store
from unit.archive.samples import FaultyStore, counted, states
from unit.storage.cases import KINDS, Case, Cases
from unit.storage.real import REAL

OURS = "team/nightly/uid-1"
ONE = Policy(max_count=1)
NO_KEYS = KeyRing()


@pytest.fixture(params=[*KINDS, *(pytest.param(kind, marks=pytest.mark.stores) for kind in REAL)])
def case(request: pytest.FixtureRequest, cases: Cases) -> Case:
    return cases.fresh(request.param)


def whole(*names: str) -> dict[str, State]:
    return dict.fromkeys(names, State.COMPLETE)


def pruned(store: Store, count: int = 2, *, prefix: str = "a", keep: tuple[str, ...] = ()) -> list[str]:
    """The names that were removed."""
    policy, now = Policy(max_count=count), datetime.now(UTC)
    found = find(store, prefix, policy, series=OURS, keep=keep, keys=NO_KEYS, now=now)
    return [backup.name for backup in carry_out(store, found)]


def several(store: Store) -> None:
    """Revisions 9, 10, 100 and 101 under names whose order as text is another one."""
    for number, revision in enumerate((9, 10, 100, 101)):
        counted(store, f"a/b-{revision}.db", revision, series=OURS, minutes=number)


def test_the_newest_are_kept_by_revision_not_by_name(case: Case) -> None:
    several(case.store)
    assert pruned(case.store, prefix="a") == ["a/b-9.db", "a/b-10.db"]
    assert states(case.store) == whole("a/b-100.db", "a/b-101.db")
    assert pruned(case.store) == []


def test_what_is_not_of_the_series_is_neither_counted_nor_removed(case: Case) -> None:
    store = case.store
    several(store)
    counted(store, "a/by-hand.db", 5)
    counted(store, "a/former.db", 6, series="team/nightly/uid-0")
    counted(store, "a/other.db", 7, series="team/hourly/uid-2")
    counted(store, "a-b/b-8.db", 8, series=OURS)
    store.put("a/notes.txt", [b"mine"])
    store.put(f"a/foreign{SUFFIX}", [b"{}"])
    others = {name: state for name, state in states(store).items() if not name.startswith("a/b-")}
    assert len(others) == 6
    assert pruned(store, 1) == ["a/b-9.db", "a/b-10.db", "a/b-100.db"]
    assert states(store) == others | whole("a/b-101.db")


def test_what_is_not_whole_is_left_alone_and_does_not_count(case: Case) -> None:
    store = case.store
    several(store)
    counted(store, "a/b-110.db", 110, series=OURS)
    store.delete("a/b-110.db")
    store.put("a/b-110.db", [b"something else"])
    counted(store, "a/b-111.db", 111, series=OURS)
    store.delete(manifest_name("a/b-111.db"))
    pruned(store)
    left = {"a/b-110.db": State.WRONG_SIZE, "a/b-111.db": State.INCOMPLETE}
    assert states(store) == left | whole("a/b-100.db", "a/b-101.db")


class Stop(BaseException):
    """The process is killed."""


def at_call(store: FaultyStore, number: int, error: BaseException) -> list[str]:
    """Fail the n-th deletion, before it has an effect; the names of all that were tried."""
    calls: list[str] = []

    def fail(method: str, name: str) -> None:
        if method == "delete":
            calls.append(name)
            if len(calls) == number:
                raise error

    store.before = fail
    return calls


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_one_that_is_killed_at_any_deletion_is_finished_by_the_next(case: Case, number: int) -> None:
    several(case.store)
    store = FaultyStore(case.store)
    at_call(store, number, Stop())
    with pytest.raises(Stop):
        pruned(store)
    seen = states(case.store)
    assert set(seen.values()) <= {State.COMPLETE, State.OBJECT_MISSING}, (
        "no object is left without its manifest"
    )
    assert list(seen.values()).count(State.OBJECT_MISSING) <= 1
    pruned(case.store)
    assert states(case.store) == whole("a/b-100.db", "a/b-101.db")


@pytest.mark.parametrize("number", [1, 2])
def test_one_that_cannot_be_removed_does_not_keep_the_others(case: Case, number: int) -> None:
    several(case.store)
    store = FaultyStore(case.store)
    at_call(store, number, AccessDenied("the object is locked"))
    with pytest.raises(AccessDenied, match="1 of 2 old backups could not be removed: the object is locked"):
        pruned(store)
    assert len([state for state in states(case.store).values() if state is State.COMPLETE]) <= 3
    assert states(case.store).items() >= whole("a/b-100.db", "a/b-101.db").items()
    pruned(case.store)
    assert states(case.store) == whole("a/b-100.db", "a/b-101.db")


@pytest.mark.parametrize("error", [Unreachable("gone"), BucketMissing("gone")])
def test_a_store_that_is_gone_is_not_asked_again_and_again(case: Case, error: StoreError) -> None:
    several(case.store)
    store = FaultyStore(case.store)
    calls = at_call(store, 1, error)
    with pytest.raises(type(error), match="gone"):
        pruned(store)
    assert calls == ["a/b-9.db"]


def test_what_somebody_else_removed_or_stored_meanwhile_is_left_alone(case: Case) -> None:
    store = case.store
    several(store)
    found = find(store, "a", ONE, series=OURS, keep=(), keys=NO_KEYS, now=datetime.now(UTC))
    for name in ("a/b-9.db", "a/b-10.db"):
        store.delete(name)
        store.delete(manifest_name(name))
    counted(store, "a/b-10.db", 50)
    assert [each.name for each in carry_out(store, found)] == ["a/b-100.db"]
    assert states(store) == whole("a/b-10.db", "a/b-101.db")


def test_a_manifest_whose_object_is_there_again_is_kept(case: Case) -> None:
    store = case.store
    counted(store, "a/b-9.db", 9, series=OURS)
    data = b"".join(store.read("a/b-9.db"))
    store.delete("a/b-9.db")
    found = find(store, "a", ONE, series=OURS, keep=(), keys=NO_KEYS, now=datetime.now(UTC))
    assert [name for name, _ in found.bare] == ["a/b-9.db"]
    store.put("a/b-9.db", [data])
    carry_out(store, found)
    assert states(store) == whole("a/b-9.db")
