"""Growing, shrinking and replacing: whatever happens at any write, to Kubernetes and to etcd.

Crashes and lost replies; a view that lags from any one write on; events that are skipped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, ephemeral, persistent
from unit.passes.disturbance import DISTURBANCES, Disturbance, EachWrite, run_or_die, survives, survives_lag
from unit.passes.expected import assert_finished, expected_objects, member_names

DIES, UNKNOWN, LIVES = (
    "it dies after the reply",
    "the reply is lost and it dies",
    "the reply is lost and it lives on",
)


@dataclass(frozen=True)
class Change:
    """From a cluster of `size` to `to` members; `numbers` are those of the members that there are then.

    lost: the member whose pod (ephemeral) or claim (persistent) goes. joining: at the moment when it has
    just been made as a learner.
    """

    kind: Kind
    size: int
    to: int
    numbers: tuple[int, ...]
    lost: str = ""
    joining: bool = False

    def body(self) -> tuple[Kind, Json]:
        return ephemeral(size=self.size) if self.kind is COREOS else persistent(size=self.size)

    def begin(self, made: Bench) -> None:
        """With the operator dead."""
        if self.to != self.size:
            made.edit(self.kind, "c", {"spec": {"size" if self.kind is COREOS else "replicas": self.to}})
        if self.joining:
            made.start(dies_at=1, dies_on="/pods" if self.kind is COREOS else "/replicasets")
            assert not run_or_die(made, made.settle)
            made.world.settle()
            assert [member.name for member in made.etcd.etcd.members if member.is_learner] == [self.lost]
        if self.lost:
            lose = made.lose_claim if self.kind is IMPROBABLE else lambda name: made.delete(PODS, name)
            lose(self.lost)
            made.world.settle()

    def is_done(self, made: Bench) -> bool:
        """Whether there is nothing left to do but perhaps to report it."""
        names = [member_names(self.kind, number + 1)[-1] for number in self.numbers]
        voters = [member.name for member in made.etcd.etcd.members if not member.is_learner]
        is_whole = sorted(voters) == sorted(made.etcd.running) == names
        has_objects = made.objects() == expected_objects(self.kind, names)
        return is_whole and has_objects and made.is_settled(self.kind, "c")


CHANGES = {
    "an ephemeral cluster grows": Change(COREOS, 1, 3, (0, 1, 2)),
    "an ephemeral cluster shrinks": Change(COREOS, 3, 1, (2,)),
    "an ephemeral member is lost": Change(COREOS, 3, 3, (0, 2, 3), lost="c-0001"),
    "a persistent cluster grows": Change(IMPROBABLE, 1, 3, (0, 1, 2)),
    "a persistent cluster shrinks": Change(IMPROBABLE, 3, 1, (0,)),
}
LOSSES = {
    "an ephemeral learner is lost": Change(COREOS, 1, 2, (0, 2), lost="c-0001", joining=True),
    "a persistent learner is lost": Change(IMPROBABLE, 1, 2, (0, 1), lost="c-1", joining=True),
    "a persistent member is lost": Change(IMPROBABLE, 3, 3, (0, 1, 2), lost="c-1"),
}
LARGER = {
    "a larger ephemeral cluster grows": Change(COREOS, 3, 5, (0, 1, 2, 3, 4)),
    "a larger ephemeral cluster shrinks": Change(COREOS, 5, 3, (2, 3, 4)),
    "a larger persistent cluster grows": Change(IMPROBABLE, 3, 5, (0, 1, 2, 3, 4)),
    "a larger persistent cluster shrinks": Change(IMPROBABLE, 5, 3, (0, 1, 2)),
}


def assert_changed(made: Bench, change: Change) -> None:
    """As asked, with the data, in the same etcd cluster."""
    assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
    assert_finished(made, change.kind, len(change.numbers), change.numbers)


@pytest.mark.parametrize("change", LARGER.values(), ids=LARGER)
def test_a_larger_cluster_changes_its_size_and_keeps_its_data(change: Change) -> None:
    with bootstrapped(*change.body()) as made:
        change.begin(made)
        made.settle()
        assert_changed(made, change)


@pytest.mark.parametrize("name", ["a larger ephemeral cluster grows", "a larger persistent cluster shrinks"])
def test_a_leader_that_takes_its_peers_for_disconnected_holds_nothing_up(name: str) -> None:
    change = LARGER[name]
    with bootstrapped(*change.body()) as made:
        leader = made.etcd.etcd.leader
        assert leader is not None
        leader.is_misled = True
        change.begin(made)
        made.settle()
        assert_changed(made, change)


def test_what_etcd_does_not_allow_yet_is_reported_in_words() -> None:
    change = LARGER["a larger persistent cluster grows"]
    with bootstrapped(*change.body()) as made:
        for member in made.etcd.etcd.members:
            member.is_misled = True
        change.begin(made)
        made.run_until(lambda: "until they have been connected" in progressing(made))
        assert progressing(made).startswith("adding c-3; etcd refuses to change its members")
        for member in made.etcd.etcd.members:
            member.is_misled = False
        made.settle()
        assert_changed(made, change)


def progressing(made: Bench) -> str:
    message: str = made.condition(IMPROBABLE, "Progressing")["message"]
    return message


def cases(changes: dict[str, Change], *lost: str, is_long: bool = False) -> list[Any]:
    """Each change with each of these problems."""
    return [
        pytest.param(
            change, DISTURBANCES[what], id=f"{name}: {what}", marks=[pytest.mark.long] if is_long else []
        )
        for name, change in changes.items()
        for what in lost
    ]


def of(kind: Kind) -> dict[str, Change]:
    return {name: change for name, change in CHANGES.items() if change.kind is kind}


CASES = [
    *cases(of(COREOS), DIES, UNKNOWN, LIVES),
    *cases(of(IMPROBABLE), UNKNOWN),
    *cases(LOSSES, UNKNOWN),
    *cases(of(IMPROBABLE), DIES, LIVES, is_long=True),
    *cases(LARGER, UNKNOWN, is_long=True),
]


def assert_made_once(change: Change, meets: Callable[[Bench, int], bool]) -> None:
    """Make the change on a new cluster for each write, until `meets` (bench, write) finds none left."""
    writes = EachWrite()
    for write in writes:
        with bootstrapped(*change.body()) as made:
            made.kill()
            change.begin(made)
            writes.goes_on = meets(made, write)
            assert_changed(made, change)
    assert writes.runs >= 5


@pytest.mark.exhaustive
@pytest.mark.parametrize(("change", "disturbance"), CASES)
def test_a_change_is_made_once_whatever_happens_at_any_write(
    change: Change, disturbance: Disturbance
) -> None:
    assert_made_once(change, lambda made, write: survives(made, disturbance, write, lambda: None))


LATE, NEVER = False, True
LONG_LAGS = [
    *((name, change, NEVER) for name, change in {**CHANGES, **LOSSES}.items()),
    *((name, change, LATE) for name, change in {**LOSSES, **LARGER}.items()),
]
LAGS = [
    *(pytest.param(change, LATE, id=f"{name}-late") for name, change in CHANGES.items()),
    *(
        pytest.param(change, skips, id=f"{name}-{'never' if skips else 'late'}", marks=pytest.mark.long)
        for name, change, skips in LONG_LAGS
    ),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("change", "skips"), LAGS)
def test_a_change_is_made_once_though_events_from_any_write_on_come_late_or_never(
    change: Change, skips: bool
) -> None:
    assert_made_once(
        change, lambda made, write: survives_lag(made, write, partial(change.is_done, made), skips=skips)
    )
