"""Growing, shrinking and replacing: crash after every write, to Kubernetes and to etcd, and lost replies."""

from dataclasses import dataclass

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import PODS
from unit.reconcile.bench import COREOS, IMPROBABLE, Bench, born, ephemeral, persistent
from unit.reconcile.expected import assert_finished
from unit.reconcile.trouble import TROUBLES, Trouble, survives

LOST = ("it dies after the reply", "the reply is lost and it dies", "the reply is lost and it lives on")


@dataclass(frozen=True)
class Change:
    """From a cluster of `size`: to `to` members, or one pod less; `numbers` are those of the members left."""

    kind: Kind
    size: int
    to: int
    numbers: tuple[int, ...]
    lost_pod: str = ""

    def body(self) -> tuple[Kind, Json]:
        return ephemeral(size=self.size) if self.kind is COREOS else persistent(size=self.size)

    def begin(self, made: Bench) -> None:
        if self.lost_pod:
            made.delete(PODS, self.lost_pod)
            made.world.settle()
        else:
            made.edit(self.kind, "c", {"spec": {"size" if self.kind is COREOS else "replicas": self.to}})


CHANGES = {
    "an ephemeral cluster grows": Change(COREOS, 1, 3, (0, 1, 2)),
    "an ephemeral cluster shrinks": Change(COREOS, 3, 1, (2,)),
    "an ephemeral member is lost": Change(COREOS, 3, 3, (0, 2, 3), lost_pod="c-0001"),
    "a persistent cluster grows": Change(IMPROBABLE, 1, 3, (0, 1, 2)),
    "a persistent cluster shrinks": Change(IMPROBABLE, 3, 1, (0,)),
}
LARGER = {
    "an ephemeral cluster grows": Change(COREOS, 3, 5, (0, 1, 2, 3, 4)),
    "an ephemeral cluster shrinks": Change(COREOS, 5, 3, (2, 3, 4)),
    "a persistent cluster grows": Change(IMPROBABLE, 3, 5, (0, 1, 2, 3, 4)),
    "a persistent cluster shrinks": Change(IMPROBABLE, 5, 3, (0, 1, 2)),
}


def assert_changed(made: Bench, change: Change) -> None:
    """As asked, with the data, in the same etcd cluster."""
    assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
    assert_finished(made, change.kind, len(change.numbers), change.numbers)


@pytest.mark.parametrize("change", LARGER.values(), ids=LARGER)
def test_a_larger_cluster_changes_its_size_and_keeps_its_data(change: Change) -> None:
    with born(*change.body()) as made:
        change.begin(made)
        made.settle()
        assert_changed(made, change)


@pytest.mark.parametrize("name", ["an ephemeral cluster grows", "a persistent cluster shrinks"])
def test_a_leader_that_takes_its_peers_for_disconnected_holds_nothing_up(name: str) -> None:
    change = LARGER[name]
    with born(*change.body()) as made:
        leader = made.etcd.etcd.leader
        assert leader is not None
        leader.is_misled = True
        change.begin(made)
        made.settle()
        assert_changed(made, change)


CASES = [
    pytest.param(change, TROUBLES[lost], id=f"{name}: {lost}")
    for name, change in CHANGES.items()
    for lost in (LOST[1:] if name == "a persistent cluster grows" else LOST)  # by far the longest
]


@pytest.mark.parametrize(("change", "trouble"), CASES)
def test_a_change_is_made_once_whatever_happens_at_any_write(change: Change, trouble: Trouble) -> None:
    write, goes_on = 1, True
    while goes_on:
        with born(*change.body()) as made:
            made.kill()
            change.begin(made)
            goes_on = survives(made, trouble, write, lambda: None)
            assert_changed(made, change)
            write += 1
    assert write > 5
